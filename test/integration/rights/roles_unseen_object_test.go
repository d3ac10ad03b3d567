package rights

import (
	"net/http"
	"slices"
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// An admin makes an object that kcp cannot show the hub, because it believes what the
// object says of its version, and has kcp show the hub all roles anew. That object aside
// the hub sees all, and nobody waits for it, in the Workspace or in its Org.
func TestAnObjectThatKCPCannotShowTheHubKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	errOut, err := s.kubectl(t, "bob", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"x","annotations":{"kcp.io/original-api-version":"a/b/c"}}}`, "create -f -")
	require.NoError(t, err, errOut)
	b := s.accessBinding(t)
	b.Spec.PermissionClaims = slices.DeleteFunc(b.Spec.PermissionClaims, func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool { return c.Resource == "clusterroles" })
	s.replaces(t, "bob", b)
	framework.Eventually(t, framework.Long, func() error {
		claims := len(s.accessBinding(t).Spec.PermissionClaims)
		return framework.Check(claims == len(b.Spec.PermissionClaims)+1, "%d claims are accepted", claims)
	})
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/dave", framework.WithRole("admin")), http.StatusOK)
	s.hub.Do(t, framework.InOrg("alice", http.MethodPost, s.org, "/members", framework.Adding("erin", "member")), http.StatusCreated)
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, s.org, s.ws, "/members/bob", nil), http.StatusNoContent)
	// The hub sees what is altered.
	errOut, err = s.kubectl(t, "alice", "", "delete clusterrole kedge:workspace:viewer")
	require.NoError(t, err, errOut)
	framework.Eventually(t, framework.Long, func() error {
		errOut, err := s.kubectl(t, "alice", "", "get clusterrole kedge:workspace:viewer")
		return framework.Check(err == nil, "%v %s", err, errOut)
	})
}
