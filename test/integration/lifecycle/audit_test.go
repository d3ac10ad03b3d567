package lifecycle

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/doubles/otlptest"
	"github.com/faroshq/kedge-hub/test/doubles/pgtest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// The audit log of one hub is on a full disk, that of the other one in a file. People take rights
// away through the first and give them through the second only.
func TestAudit_aFullDiskRefusesWhatGivesRights(t *testing.T) {
	t.Parallel()
	root, file, database := framework.NewRoot(), filepath.Join(t.TempDir(), "audit.log"), pgtest.Records(t)
	collector := otlptest.New(t)
	recording := func(o *server.Options) { o.Records.Database = database }
	hub := framework.StartHub(t, kcp, root, auditing(file), tracing(collector), recording)
	framework.SignUp(t, hub, "alice", "bob", "carol")
	org := hub.CreateOrg(t, "alice", "Org")
	ws := hub.CreateWorkspace(t, "alice", org, "Workspace")
	uuid, maps := ws.Text("uuid"), "/clusters/"+ws.Text("clusterID")+"/api/v1/namespaces/default/configmaps"
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	configMap := func(name string) call {
		return call{As: "alice", Method: http.MethodPost, Path: maps, Body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`}
	}
	hub.Do(t, configMap("kept"), http.StatusCreated)

	full := framework.StartHub(t, kcp, root, auditing("/dev/full"))
	list := call{As: "alice", Method: http.MethodGet, Path: maps}
	for name, c := range map[string]call{
		"a member":      framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("carol", "member")),
		"an Org":        {As: "carol", Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName":"Another"}`},
		"a Workspace":   framework.InOrg("alice", http.MethodPost, org, "/workspaces", `{"displayName":"Another"}`),
		"a bot":         framework.InWorkspace("alice", http.MethodPost, org, uuid, "/serviceaccounts", `{"displayName":"CI","role":"member"}`),
		"a setting":     framework.InOrg("alice", http.MethodPatch, org, "", `{"defaultAccess":"view"}`),
		"a sign-up":     {As: "dave", Method: http.MethodGet, Path: "/api/users/me"},
		"a proxied one": configMap("refused"),
		"an exec":       {As: "alice", Method: http.MethodGet, Path: strings.TrimSuffix(maps, "configmaps") + "pods/a/exec"},
		"a raise":       framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("admin")),
		"an undelete":   {As: "bob", Method: http.MethodPost, Path: "/api/users/me/undelete"},
	} {
		a := full.Do(t, c, http.StatusServiceUnavailable)
		require.Equal(t, "10", a.Header.Get("Retry-After"), name)
		require.Contains(t, a.Text("message"), "audit log", name)
	}
	require.Len(t, full.Do(t, list, http.StatusOK).JSON["items"], 2, "that of kcp and the one that was kept")
	full.Do(t, framework.InOrg("alice", http.MethodGet, org, "/members", nil), http.StatusOK)
	full.Do(t, framework.InOrg("alice", http.MethodGet, org, "/audit", nil), http.StatusNotImplemented)

	full.Do(t, call{As: "alice", Method: http.MethodDelete, Path: maps + "/kept"}, http.StatusOK)
	full.Do(t, framework.InOrg("alice", http.MethodPatch, org, "", `{"defaultAccess":"none"}`), http.StatusOK)
	full.Do(t, framework.InOrg("alice", http.MethodPatch, org, "/members/bob", framework.WithRole("member")), http.StatusOK)
	full.Do(t, framework.InOrg("alice", http.MethodDelete, org, "/members/bob", nil), http.StatusNoContent)
	full.Do(t, framework.InWorkspace("alice", http.MethodDelete, org, uuid, "", nil), http.StatusOK)
	full.Do(t, call{As: "carol", Method: http.MethodDelete, Path: "/api/users/me"}, http.StatusAccepted)

	details, err := framework.Readiness(full.Metrics)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, details.Code, "reading goes on")
	require.Regexp(t, `\[-\]audit log[^\n]*no space left on device`, string(details.Raw))
	metrics, err := (&framework.Client{URL: full.Metrics, HTTP: http.DefaultClient}).Try(call{Method: http.MethodGet})
	require.NoError(t, err)
	require.Regexp(t, `(?m)^kedge_audit_lost_total [1-9]`, string(metrics.Raw))

	// The other hub has what it did, and nothing of what the first one refused.
	framework.Eventually(t, framework.Long, func() error {
		said := map[string]bool{}
		a, err := hub.Try(framework.InOrg("alice", http.MethodGet, org, "/audit", nil))
		if err := errors.Join(err, framework.Equal(http.StatusOK, a.Code)); err != nil {
			return err
		}
		for _, item := range a.JSON["items"].([]any) {
			e := item.(map[string]any)
			said[e["stage"].(string)+" "+e["action"].(string)] = true
		}
		return framework.Check(said["intent POST /api/orgs/{org}/members"] && said["outcome kubernetes create"], "the answer has %v", said)
	})
	for _, e := range framework.AuditEvents(t, file) {
		require.NotEqual(t, http.StatusServiceUnavailable, e.Code)
		require.NotEqual(t, audit.ActorAnonymous, e.Actor.Kind)
	}
	hub.Do(t, framework.InOrg("alice", http.MethodGet, org, "/members/carol", nil), http.StatusNotFound)
	require.NotContains(t, full.Log.String(), framework.Token("alice"))
	hub.Stop(t)
	requireTraces(t, collector)
}
