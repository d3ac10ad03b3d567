package integration

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
	s := newWorkspaceScene(t)
	b := s.accessBinding(t)
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
				a, err := s.hub.Try(call{As: "bob", Method: http.MethodPatch, Path: "/clusters/" + s.cluster + "/apis/apis.kcp.io/v1alpha2/apibindings/" + b.Name,
					Body: string(hidden), Header: http.Header{"Content-Type": {"application/merge-patch+json"}}})
				if err == nil {
					code = a.Code
				}
			}
		})
	}
	// What the hub saw go when it was hidden is looked after by then.
	began := time.Now()
	framework.Eventually(t, framework.Long, func() error { return told(time.Since(began) > 7*time.Second, "he has not hidden it for long") })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.hub.URL+"/clusters/"+s.cluster+"/apis/certificates.k8s.io/v1/certificatesigningrequests?watch=true", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+framework.Token("bob"))
	client, w := watchClient(t, s.hub, true), &reopened{}
	running.Go(func() { w.run(ctx, client, request) })
	framework.Eventually(t, framework.Long, func() error {
		_, last, open := w.state()
		return told(open, "the admin's watch is not open: %d", last)
	})
	s.hub.Do(t, inWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/bob", role("member")), http.StatusOK)
	require.Equal(t, tenancy.ClusterRoleMember, s.p.roles(t, s.cluster, "bob")[0])
	framework.Eventually(t, framework.Long, func() error {
		_, last, open := w.state()
		return told(!open && last == http.StatusForbidden, "the member's watch: open %v, %d", open, last)
	})
}
