package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// After kill -9 during creates and a restart with the same data, everything acknowledged is
// there and Ready, and nothing incomplete stays (O-11). A backup that was made meanwhile has all that was acknowledged
// before it began.
func TestKill_duringCreatesLosesNothing(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), freePort(t)
	h := startHub(t, dir, port)
	home := h.CreateOrg(t, "alice", "Home")

	const rounds = 3
	var mu sync.Mutex
	orgs, workspaces := map[string]string{home: "alice"}, map[string]bool{}
	savedOrgs, savedWorkspaces, saved := map[string]string{}, map[string]bool{}, ""
	for round := range rounds {
		people := framework.People()[:5]
		var creating sync.WaitGroup
		acknowledged := make(chan struct{}, 64)
		for i, person := range people {
			creating.Go(func() {
				// Until the hub is gone, so that some creates are always in progress.
				for n := 0; ; n++ {
					name := fmt.Sprintf("%d-%d-%d", round, i, n)
					c := framework.Call{As: person, Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": name}}
					if person == "alice" {
						c.Path, c.Org = "/api/orgs/"+home+"/workspaces", home
					}
					a, err := h.Try(c)
					if err != nil || a.Code == http.StatusForbidden {
						return
					}
					if a.Code == http.StatusCreated || a.Code == http.StatusAccepted {
						mu.Lock()
						if person == "alice" {
							workspaces[a.Text("uuid")] = true
						} else {
							orgs[a.Text("uuid")] = person
						}
						mu.Unlock()
						acknowledged <- struct{}{}
					}
				}
			})
		}
		for range 3 {
			select {
			case <-acknowledged:
			case <-time.After(framework.Long):
				require.Fail(t, "nothing is acknowledged", "%s", h.Output)
			}
		}
		if round == rounds-1 {
			mu.Lock()
			savedOrgs, savedWorkspaces = maps.Clone(orgs), maps.Clone(workspaces)
			mu.Unlock()
			saved = backUp(t, h)
		}
		h.Kill()
		go func() {
			creating.Wait()
			close(acknowledged)
		}()
		for range acknowledged {
		}
		h = startHub(t, dir, port)
	}
	t.Logf("%d rounds of kill -9: %d organizations and %d workspaces acknowledged", rounds, len(orgs), len(workspaces))
	areReady := func(h *hub, orgs map[string]string, workspaces map[string]bool) {
		framework.Eventually(t, framework.Long, func() error {
			for uuid, person := range orgs {
				if err := ready(h, framework.Call{As: person, Path: "/api/orgs/" + uuid, Org: uuid}); err != nil {
					return err
				}
			}
			for uuid := range workspaces {
				if err := ready(h, framework.Call{As: "alice", Path: "/api/orgs/" + home + "/workspaces/" + uuid, Org: home, Workspace: uuid}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	areReady(h, orgs, workspaces)
	// Objects that were not acknowledged are complete or absent too: no list keeps showing
	// an incomplete one.
	framework.Eventually(t, framework.Long, func() error {
		for _, person := range framework.People() {
			for _, c := range []framework.Call{{As: person, Path: "/api/orgs"}, {As: "alice", Path: "/api/orgs/" + home + "/workspaces", Org: home}} {
				c.Method = http.MethodGet
				a, err := h.Try(c)
				if err != nil || a.Code != http.StatusOK {
					return fmt.Errorf("%s: %d %w", c.Path, a.Code, err)
				}
				for _, item := range a.JSON["items"].([]any) {
					if o := item.(map[string]any); o["phase"] != "Ready" {
						return fmt.Errorf("%v is %v: %v", o["uuid"], o["phase"], o["conditions"])
					}
				}
			}
		}
		return nil
	})
	a := h.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/orgs/" + home + "/workspaces", Org: home}, http.StatusOK)
	one := a.JSON["items"].([]any)[0].(map[string]any)
	h.Enters(t, "alice", one["clusterID"].(string))
	_, errOut, err := h.Kubectl(t, "alice", one["clusterID"].(string), "get", "namespaces")
	require.NoError(t, err, errOut)

	h.Kill()
	h = startRestored(t, saved, port)
	areReady(h, savedOrgs, savedWorkspaces)
	a = h.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: "/api/orgs/" + home + "/workspaces", Org: home}, http.StatusOK)
	h.Enters(t, "alice", a.JSON["items"].([]any)[0].(map[string]any)["clusterID"].(string))
	h.CreateOrg(t, "alice", "After")
	framework.Eventually(t, framework.Long, func() error {
		if code, out := verifies(t, h.dir); code != 0 {
			return fmt.Errorf("kedge-hub verify ends with %d: %s", code, out)
		}
		return nil
	})
}

func ready(h *hub, c framework.Call) error {
	c.Method = http.MethodGet
	a, err := h.Try(c)
	if err == nil && (a.Code != http.StatusOK || a.Text("phase") != "Ready") {
		err = fmt.Errorf("%s: %d %s", c.Path, a.Code, a.Raw)
	}
	return err
}
