package server

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/verify"
)

// verifying returns the configuration of a hub with an embedded kcp, in a folder whose path a socket can have.
func verifying(t *testing.T, change ...func(*Options)) Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "verify") //nolint:usetesting // the path of a socket has to be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	o := NewOptions()
	o.DataDir = dir
	for _, f := range change {
		f(o)
	}
	c, err := o.Complete()
	require.NoError(t, err)
	return c
}

// serving answers on the socket of a hub.
func serving(t *testing.T, c Config, answer http.HandlerFunc) {
	t.Helper()
	listener, err := listenLocal(t.Context(), localSocket(c))
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(answer)
	require.NoError(t, s.Listener.Close())
	s.Listener = listener
	s.Start()
	t.Cleanup(s.Close)
}

func TestVerify_printsWhatTheRunningHubFound(t *testing.T) {
	t.Parallel()
	c := verifying(t)
	report := verify.Report{Compared: 3, Differences: []verify.Difference{}}
	method := ""
	serving(t, c, func(w http.ResponseWriter, r *http.Request) {
		method = r.Method + " " + r.URL.String()
		_ = json.NewEncoder(w).Encode(verified{Report: report})
	})
	run := func(o VerifyOptions) (string, error) {
		out := &strings.Builder{}
		o.Timeout = 5 * time.Second
		err := Verify(t.Context(), c, o, out)
		return out.String(), err
	}
	out, err := run(VerifyOptions{})
	require.NoError(t, err)
	require.Equal(t, "3 objects compared, 0 differences\n", out)
	require.Equal(t, "GET /verify?timeout=5s", method)

	report.Differences = []verify.Difference{{Kind: verify.KindIndex, Place: "p", Name: "n", Wanted: "w", Found: "f", Heals: "membershipindex"}}
	out, err = run(VerifyOptions{JSON: true, Repair: true})
	require.ErrorIs(t, err, errDifferences)
	require.NotErrorIs(t, err, verify.ErrNotLooked)
	require.Equal(t, "POST /verify?timeout=5s", method)
	require.JSONEq(t, `{"compared":3,"differences":[{"kind":"index","place":"p","name":"n","wanted":"w","found":"f","heals":"membershipindex"}]}`, out)
}

func TestVerify_saysWhyItCannotLook(t *testing.T) {
	t.Parallel()
	external := func(o *Options) {
		o.KCPKubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(o.KCPKubeconfig, []byte(strings.ReplaceAll(`
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1/clusters/root"}}]
users: [{name: u, user: {token: t}}]
`, "\t", "")), 0o600))
	}
	for name, c := range map[string]struct {
		change []func(*Options)
		answer http.HandlerFunc
		repair bool
		says   string
	}{
		"no hub with an embedded kcp":  {says: "start the hub"},
		"no hub, and kcp is not there": {change: []func(*Options){external}, says: "--kcp-kubeconfig"},
		"no hub for a repair":          {change: []func(*Options){external}, repair: true, says: "--repair needs a running hub"},
		"a hub that cannot": {says: "kcp did not list everything", answer: func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(verified{Failure: "kcp did not list everything"})
		}},
		"an answer that is none": {says: "404", answer: http.NotFound},
		"a hub that hangs":       {says: "timeout", answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := verifying(t, c.change...)
			if c.answer != nil {
				serving(t, config, c.answer)
			}
			began := time.Now()
			err := Verify(t.Context(), config, VerifyOptions{Repair: c.repair, Timeout: time.Second}, &strings.Builder{})
			require.ErrorIs(t, err, verify.ErrNotLooked)
			require.ErrorContains(t, err, c.says)
			require.Less(t, time.Since(began), 10*time.Second)
		})
	}
}

// The socket gives all of kcp away: no other user of the machine gets at it.
func TestListenLocal_isForTheUserOfTheHubAlone(t *testing.T) {
	t.Parallel()
	path := localSocket(verifying(t))
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o755))
	first, err := listenLocal(t.Context(), path)
	require.NoError(t, err)
	for file, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), file)
	}
	_, err = listenLocal(t.Context(), path)
	require.ErrorContains(t, err, "another hub uses it")

	// A hub that was killed leaves its socket.
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, first.Close())
	require.FileExists(t, path)
	second, err := listenLocal(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, second.Close())
}

func TestAssembly_looksOnceAtATime(t *testing.T) {
	t.Parallel()
	a := &assembly{}
	ask := func(query string) verified {
		answer := httptest.NewRecorder()
		a.verify(answer, httptest.NewRequest(http.MethodGet, verifyPath+query, http.NoBody), false)
		require.Equal(t, http.StatusOK, answer.Code)
		var v verified
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&v))
		return v
	}
	require.Contains(t, ask("").Failure, "timeout")
	require.Contains(t, ask("?timeout=-1s").Failure, "timeout")
	a.looking.Lock()
	require.Contains(t, ask("?timeout=1s").Failure, "another look is under way")
}

func TestAssembly_repairEnqueuesAtTheControllerThatHeals(t *testing.T) {
	t.Parallel()
	metrics, err := controller.NewMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	var enqueued []string
	named := func(name string) *controller.Controller {
		return controller.New(controller.Options{Name: name, OnEnqueue: func(name string, key controller.Key) {
			enqueued = append(enqueued, name+" "+key.String())
		}}, metrics, nil)
	}
	a := &assembly{leading: []*controller.Controller{named("access"), named("bot")}, spares: named("spare")}
	require.NoError(t, a.repair(verify.Difference{Heals: "bot", Key: controller.Key{Cluster: "c", Name: "b"}}))
	require.NoError(t, a.repair(verify.Difference{Heals: "spare", Key: controller.Key{Cluster: "c"}}))
	require.Equal(t, []string{"bot c|b", "spare c|"}, enqueued)
	require.ErrorContains(t, a.repair(verify.Difference{Heals: "nobody"}), "no controller nobody")
}
