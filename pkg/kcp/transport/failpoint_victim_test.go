package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

const (
	pointFile = "KEDGE_FAIL_POINT_FILE"
	victimOf  = "KEDGE_TEST_VICTIM_OF"
)

// steps are the writes of the victim in order, as the log names them.
var steps = []string{
	"POST users", "PATCH users/status", "DELETE users", "POST namespaces", "PUT namespaces/finalize", "PATCH memberships",
}

// TestVictim is the process that is killed, not a test: it writes its steps to the kcp at
// the URL in the environment and reports each that is done.
func TestVictim(t *testing.T) {
	t.Parallel()
	url := os.Getenv(victimOf)
	if url == "" {
		t.Skip("not started as a victim")
	}
	ctx, clients := t.Context(), newClients(t, &rest.Config{Host: url})
	patch := []byte(`{"kind":"User","apiVersion":"tenancy.kedge.faros.sh/v1alpha1"}`)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "secret-name"}}
	for i, step := range []func(c *kcp.Clients) error{
		func(c *kcp.Clients) error {
			_, err := c.Users("c").Create(ctx, aUser(), metav1.CreateOptions{})
			return err
		},
		func(c *kcp.Clients) error {
			_, err := c.Users("c").Patch(ctx, "secret-name", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			return err
		},
		func(c *kcp.Clients) error { return c.Users("c").Delete(ctx, "u", metav1.DeleteOptions{}) },
		func(c *kcp.Clients) error {
			_, err := c.Namespaces("c").Create(ctx, namespace, metav1.CreateOptions{})
			return err
		},
		func(c *kcp.Clients) error {
			return c.Namespaces("c").GetClient().Put().Resource("namespaces").Name("secret-name").SubResource("finalize").Body(namespace).Do(ctx).Error()
		},
		func(c *kcp.Clients) error {
			_, err := c.Memberships("c").Patch(ctx, "secret-name", types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	} {
		// Neither counts: a read and a renewal.
		_, err := clients.Users("c").Get(ctx, "u", metav1.GetOptions{})
		require.NoError(t, err)
		_, err = clients.Leases("c").Leases("default").Update(ctx, lease, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, step(clients))
		fmt.Fprintf(os.Stderr, "done %d\n", i+1)
	}
}

// run starts a victim with a fail point. It returns how many of its steps kcp received, how
// many the victim saw answered, and the log. killed tells how the victim ended.
func run(t *testing.T, point string) (came, known int, logged []string, killed bool) {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodGet || r.Method == http.MethodDelete {
			body = []byte(`{"apiVersion":"tenancy.kedge.faros.sh/v1alpha1","kind":"User","metadata":{"name":"u"}}`)
		}
		if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "leases") {
			mu.Lock()
			came++
			mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	defer server.Close()
	program, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "point")
	victim := exec.CommandContext(t.Context(), program, "-test.run=^TestVictim$", "-test.v")
	victim.Env = append(os.Environ(), victimOf+"="+server.URL)
	if point != "-" {
		victim.Env = append(victim.Env, pointFile+"="+file)
	}
	if point != "" {
		require.NoError(t, os.WriteFile(file, []byte(point+"\n"), 0o600))
	}
	out, err := victim.CombinedOutput()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit, "%s", out)
		status, ok := exit.Sys().(syscall.WaitStatus)
		require.True(t, ok)
		require.True(t, status.Signaled(), "%s", out)
		require.Equal(t, syscall.SIGKILL, status.Signal())
		killed = true
	}
	if raw, err := os.ReadFile(file + ".log"); err == nil {
		logged = strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	}
	return came, strings.Count(string(out), "done "), logged, killed
}
