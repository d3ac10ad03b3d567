package tenancy

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/doubles/pgtest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// sharedRecords gives hubs one records database.
func sharedRecords(t *testing.T) func(*server.Options) {
	t.Helper()
	url := pgtest.Records(t)
	return func(o *server.Options) { o.Records.Database, o.Records.UsageInterval = url, 10*time.Second }
}

// requireAudited checks that every hub has the outcome of each request once, whichever hub had the request.
func requireAudited(t *testing.T, hubs []*framework.Hub, org string, codes map[string]int) {
	t.Helper()
	require.NotEmpty(t, codes)
	for _, hub := range hubs {
		// A hub waits for its own events, and the others store theirs within a moment.
		framework.Eventually(t, framework.Long, func() error {
			found := map[string]int{}
			for after := ""; ; {
				a, err := hub.Try(framework.InOrg("alice", http.MethodGet, org, "/audit?limit=200&continue="+after, nil))
				if err = errors.Join(err, framework.Equal(http.StatusOK, a.Code)); err != nil {
					return err
				}
				if replicas := a.JSON["replicas"].([]any); len(replicas) != len(hubs) {
					return fmt.Errorf("the answer says how far behind %v is", replicas)
				}
				for _, item := range a.JSON["items"].([]any) {
					e := item.(map[string]any)
					id := e["id"].(string)
					if code, asked := codes[id]; !asked || e["stage"] != "outcome" {
						continue
					} else if e["code"] != float64(code) {
						return fmt.Errorf("%v: answered %d", e, code)
					}
					if found[id]++; found[id] > 1 {
						return fmt.Errorf("%s is there twice", id)
					}
				}
				if after = a.Text("continue"); after == "" {
					break
				}
			}
			return framework.Equal(len(codes), len(found))
		})
	}
}

// requireUsed checks that every hub adds up what all hubs have counted in a Workspace, and what the leader has measured.
func requireUsed(t *testing.T, hubs []*framework.Hub, org string) {
	t.Helper()
	const each = 3
	ws := hubs[0].CreateWorkspace(t, "alice", org, "used")
	cluster := ws.Text("clusterID")
	for i, hub := range hubs {
		hub.Enters(t, "alice", cluster)
		for n := range each {
			made := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": fmt.Sprintf("used-%d-%d", i, n)}}
			hub.Do(t, call{As: "alice", Method: http.MethodPost, Path: "/clusters/" + cluster + "/api/v1/namespaces/default/configmaps", Body: made}, http.StatusCreated)
		}
	}
	for _, hub := range hubs {
		for name, read := range map[string]call{
			"workspace":    framework.InWorkspace("alice", http.MethodGet, org, ws.Text("uuid"), "/usage", nil),
			"organization": framework.InOrg("alice", http.MethodGet, org, "/usage?step=day", nil),
		} {
			framework.Eventually(t, framework.Long, func() error {
				a, err := hub.Try(read)
				if err = errors.Join(err, framework.Equal(http.StatusOK, a.Code)); err != nil {
					return err
				}
				// The test may run at the end of an hour or a day.
				writes, out, objects, people := 0.0, 0.0, 0.0, 0.0
				for _, item := range a.JSON["items"].([]any) {
					i := item.(map[string]any)
					writes += i["requests"].(map[string]any)["write"].(float64)
					out += i["bytesOut"].(float64)
					objects, people = max(objects, i["objects"].(float64)), max(people, i["people"].(float64))
				}
				return errors.Join(framework.Equal(each*len(hubs), int(writes)), framework.Equal(1, int(people)),
					framework.Check(out > 0 && objects > 0, "the %s has %v bytes of answers and stores %v objects", name, out, objects),
					framework.Equal(len(hubs), len(a.JSON["replicas"].([]any))))
			})
		}
	}
}
