package streams

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// The attack: an admin keeps their binding hidden from the hub, so that it does not see
// it go when they are demoted, and opens a watch anew as soon as theirs is cut.
func TestAWatchThatIsOpenedAnewOfAHiddenBindingIsCutToo(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root)
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	framework.SignUp(t, hub, "bob")
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	hub.Enters(t, "bob", cluster)
	out, errOut, err := kcp.Kubectl(t, "", cluster, "get", "apibindings.v1alpha2.apis.kcp.io", "-o", "json")
	require.NoError(t, err, errOut)
	var list kcpapisv1alpha2.APIBindingList
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	at := slices.IndexFunc(list.Items, func(b kcpapisv1alpha2.APIBinding) bool { return b.Spec.Reference.Export.Name == tenancy.ExportAccess })
	require.GreaterOrEqual(t, at, 0)
	b := list.Items[at]
	hidden, err := json.Marshal(map[string]any{"spec": map[string]any{"permissionClaims": slices.DeleteFunc(b.Spec.PermissionClaims,
		func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool { return c.Resource == "clusterrolebindings" })}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for range 3 {
		running.Go(func() {
			for code := http.StatusOK; ctx.Err() == nil && code != http.StatusForbidden; {
				a, err := hub.Try(call{As: "bob", Method: http.MethodPatch, Path: "/clusters/" + cluster + "/apis/apis.kcp.io/v1alpha2/apibindings/" + b.Name,
					Body: string(hidden), Header: http.Header{"Content-Type": {"application/merge-patch+json"}}})
				if err == nil {
					code = a.Code
				}
			}
		})
	}
	// What the hub saw go when it was hidden is looked after by then.
	began := time.Now()
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(time.Since(began) > 7*time.Second, "he has not hidden it for long")
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub.URL+"/clusters/"+cluster+"/apis/certificates.k8s.io/v1/certificatesigningrequests?watch=true", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+framework.Token("bob"))
	client, w := watchClient(t, hub, true), &reopened{}
	running.Go(func() { w.run(ctx, client, request) })
	framework.Eventually(t, framework.Long, func() error {
		_, last, open := w.state()
		return framework.Check(open, "the admin's watch is not open: %d", last)
	})
	hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, org, ws, "/members/bob", framework.WithRole("member")), http.StatusOK)
	require.Equal(t, tenancy.ClusterRoleMember, kcp.Platform(t, root).RolesIn(t, cluster, "bob")[0])
	framework.Eventually(t, framework.Long, func() error {
		_, last, open := w.state()
		return framework.Check(!open && last == http.StatusForbidden, "the member's watch: open %v, %d", open, last)
	})
}
