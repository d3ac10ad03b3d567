package streams

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// reopened is a watch that is opened again as soon as it ends.
type reopened struct {
	mu    sync.Mutex
	times int
	// last is the status code of the last answer, open whether it is still open.
	last int
	open bool
}

func (w *reopened) state() (times, last int, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.times, w.last, w.open
}

func (w *reopened) set(last int, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.open = last, open
	if open {
		w.times++
	}
}

func (w *reopened) run(ctx context.Context, client *http.Client, request *http.Request) {
	for ctx.Err() == nil {
		response, err := client.Do(request.Clone(ctx))
		if err != nil {
			continue
		}
		w.set(response.StatusCode, response.StatusCode == http.StatusOK)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		w.set(response.StatusCode, false)
	}
}

// The attack: a person with a lower role than before opens their watch again as soon as it is
// cut, before the binding in kcp is removed. The gate still admits them with the lower role.
func TestRevocation_cutsAWatchReopenedMeanwhile(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	framework.SignUp(t, hub, "bob")
	// Without a Membership in the Workspace bob is a viewer of it.
	hub.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", map[string]string{"defaultAccess": "view"}), http.StatusOK)
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	// Viewers may not watch these objects.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub.URL+"/clusters/"+cluster+"/api/v1/secrets?watch=true", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+framework.Token("bob"))
	client := watchClient(t, hub, true)
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		w := &reopened{}
		var running sync.WaitGroup
		running.Go(func() { w.run(ctx, client, request) })
		framework.Eventually(t, framework.Long, func() error {
			_, last, open := w.state()
			return framework.Check(open, "the member's watch is not open: %d", last)
		})
		hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, ws, "/members/bob", nil), http.StatusNoContent)
		began := time.Now()
		framework.Eventually(t, framework.Long, func() error {
			_, last, open := w.state()
			return framework.Check(!open && last == http.StatusForbidden, "the viewer's watch: open %v, %d", open, last)
		})
		times, _, _ := w.state()
		t.Logf("opened %d times, refused for good %s after the answer", times, time.Since(began).Round(time.Millisecond))
		cancel()
		running.Wait()
		hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
	}
}
