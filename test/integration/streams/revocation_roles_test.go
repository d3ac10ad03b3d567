package streams

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// A stream that an extra role permits ends with that role, on every replica. Streams of others
// stay open.
func TestRevocation_ofAnExtraRoleCutsItsStreams(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	// The admin role does not cover auditor, so that nothing else gives what it permits.
	hubs := framework.StartHubs(t, kcp, root, 2, func(o *server.Options) { o.BindableClusterRoles = []string{"auditor"} })
	org := hubs[0].CreateOrg(t, "alice", "ACME")
	made := hubs[0].CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	framework.SignUp(t, hubs[0], "bob", "carol")
	_, errOut, err := kcp.Kubectl(t, "", cluster, "create", "clusterrole", "auditor", "--verb=get,list,watch", "--resource=certificatesigningrequests")
	require.NoError(t, err, errOut)
	_, errOut, err = hubs[0].Kubectl(t, "alice", cluster, "create", "clusterrole", "other", "--verb=get", "--resource=configmaps")
	require.NoError(t, err, errOut)
	for _, user := range []string{"bob", "carol"} {
		body := framework.Adding(user, "member")
		body["roles"] = []map[string]string{{"name": "auditor"}, {"name": "other"}}
		hubs[0].Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", body), http.StatusCreated)
	}
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	var theirs, others []*stream
	for _, hub := range hubs {
		for _, user := range []string{"bob", "carol"} {
			get := call{As: user, Method: http.MethodGet, Path: "/clusters/" + cluster + path}
			framework.Eventually(t, framework.Long, func() error {
				a, err := hub.Try(get)
				return framework.Check(err == nil && a.Code == http.StatusOK, "%v %s", err, a.Raw)
			})
		}
		for _, kind := range streamKinds {
			theirs = append(theirs, open(t, hub, kind, "bob", cluster, path, nil))
			others = append(others, open(t, hub, kind, "carol", cluster, path, nil))
		}
	}
	patch := func(body string) {
		t.Helper()
		hubs[0].Do(t, framework.InWorkspace("alice", http.MethodPatch, org, ws, "/members/bob", body), http.StatusOK)
	}
	// More roles, or the same in another order, cut nothing.
	patch(`{"roles":[{"name":"other"},{"name":"auditor"},{"name":"later"}]}`)
	for _, o := range theirs {
		require.True(t, o.isOpen(), o.name)
	}
	patch(`{"roles":[{"name":"other"}]}`)
	over := time.Now()
	for _, o := range theirs {
		select {
		case <-o.ended:
			t.Logf("%s ended %s behind the answer", o.name, o.at.Sub(over))
		case <-time.After(framework.Long):
			require.Fail(t, "still open", o.name)
		}
	}
	for _, o := range others {
		require.True(t, o.isOpen(), o.name)
	}
	for _, hub := range hubs {
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(call{As: "bob", Method: http.MethodGet, Path: "/clusters/" + cluster + path})
			return framework.Check(err == nil && a.Code == http.StatusForbidden, "%v %s", err, a.Raw)
		})
	}
}
