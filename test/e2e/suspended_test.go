package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// late is how much later than the end of a right a stream may end: ends are published five times a second.
const late = 2 * time.Second

// A hub that is suspended while a membership ends, as a virtual machine is while it moves, refuses the requests
// that waited meanwhile, and ends the watch that was open.
func TestExpiry_isNotMissedByASuspendedHub(t *testing.T) {
	t.Parallel()
	h := startHub(t, t.TempDir(), freePort(t))
	for _, person := range []string{"alice", "bob"} {
		h.Do(t, framework.Call{As: person, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	}
	org := h.CreateOrg(t, "alice", "ACME")
	made := h.CreateWorkspace(t, "alice", org, "dev")
	configMaps := "/clusters/" + made.Text("clusterID") + "/api/v1/namespaces/default/configmaps"
	ends := time.Now().Add(70 * time.Second).Truncate(time.Second)
	body := framework.Adding("bob", "member")
	body["expiresAt"] = ends.UTC().Format(time.RFC3339)
	h.Do(t, framework.InWorkspace("alice", http.MethodPost, org, made.Text("uuid"), "/members", body), http.StatusCreated)
	h.Enters(t, "bob", made.Text("clusterID"))

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+configMaps+"?watch=true", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+framework.Token("bob"))
	response, err := h.HTTP.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	// latest is the creation of the newest object that the watch delivered, in Unix time.
	var latest atomic.Int64
	seen, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for events := json.NewDecoder(bufio.NewReader(response.Body)); ; {
			var event struct {
				Object struct {
					Metadata struct{ CreationTimestamp time.Time }
				}
			}
			if events.Decode(&event) != nil {
				return
			}
			latest.Store(max(latest.Load(), event.Object.Metadata.CreationTimestamp.Unix()))
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	}()
	// alice writes all the time: her requests wait in the sockets of the suspended hub.
	go func() {
		for i := 0; t.Context().Err() == nil; i++ {
			object := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"made-%d"}}`, i)
			_, _ = h.Try(framework.Call{As: "alice", Method: http.MethodPost, Path: configMaps, Body: object})
		}
	}()
	<-seen

	<-time.After(time.Until(ends.Add(-2 * time.Second)))
	require.Greater(t, latest.Load(), ends.Add(-time.Minute).Unix(), "the watch delivers")
	read := framework.Call{As: "bob", Method: http.MethodGet, Path: configMaps + "?limit=1"}
	h.Do(t, read, http.StatusOK)
	require.NoError(t, h.Signal(syscall.SIGSTOP))
	waiting := make(chan framework.Answer, 8)
	for range cap(waiting) {
		go func() {
			a, _ := h.Try(read)
			waiting <- a
		}()
	}
	<-time.After(time.Until(ends.Add(3 * time.Second)))
	resumed := time.Now()
	require.NoError(t, h.Signal(syscall.SIGCONT))

	for range cap(waiting) {
		a := <-waiting
		require.Equal(t, http.StatusForbidden, a.Code, "%s", a.Raw)
	}
	select {
	case <-ended:
	case <-time.After(framework.Long):
		require.Fail(t, "the watch stays open")
	}
	require.LessOrEqual(t, latest.Load(), resumed.Add(late).Unix(), "the watch delivered what came long after")
	framework.Eventually(t, framework.Long, func() error {
		a, err := h.Try(framework.InWorkspace("alice", http.MethodGet, org, made.Text("uuid"), "/members/bob", nil))
		return framework.Check(err == nil && a.Code == http.StatusNotFound, "%v %s", err, a.Raw)
	})
	h.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: configMaps + "?limit=1"}, http.StatusOK)
}
