package rights

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// accessBinding is the binding through which the hub sees into a Workspace, by the
// export that it is of, whatever its name.
func (s workspaceScene) accessBinding(t testing.TB) kcpapisv1alpha2.APIBinding {
	t.Helper()
	out, errOut, err := kcp.Kubectl(t, "", s.cluster, "get", "apibindings.v1alpha2.apis.kcp.io", "-o", "json")
	require.NoError(t, err, errOut)
	var list kcpapisv1alpha2.APIBindingList
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	at := slices.IndexFunc(list.Items, func(b kcpapisv1alpha2.APIBinding) bool { return b.Spec.Reference.Export.Name == tenancy.ExportAccess })
	require.GreaterOrEqual(t, at, 0)
	return list.Items[at]
}

// An admin takes from the hub what it sees of a Workspace, so that it does not see what
// of theirs is to go when they are demoted. What is to go goes, and the hub sees again.
func TestADemotedAdminWhoHidesTheBindingsFromTheHubKeepsNothing(t *testing.T) {
	t.Parallel()
	bindings := func(b kcpapisv1alpha2.APIBinding) int {
		return slices.IndexFunc(b.Spec.PermissionClaims, func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool { return c.Resource == "clusterrolebindings" })
	}
	for name, hide := range map[string]func(t *testing.T, s workspaceScene, b kcpapisv1alpha2.APIBinding){
		"takes the claim out": func(t *testing.T, s workspaceScene, b kcpapisv1alpha2.APIBinding) {
			b.Spec.PermissionClaims = slices.Delete(b.Spec.PermissionClaims, bindings(b), bindings(b)+1)
			s.replaces(t, "bob", b)
		},
		"takes verbs out": func(t *testing.T, s workspaceScene, b kcpapisv1alpha2.APIBinding) {
			b.Spec.PermissionClaims[bindings(b)].Verbs = []string{"get"}
			s.replaces(t, "bob", b)
		},
		"rejects it": func(t *testing.T, s workspaceScene, b kcpapisv1alpha2.APIBinding) {
			b.Spec.PermissionClaims[bindings(b)].State = kcpapisv1alpha2.ClaimRejected
			s.replaces(t, "bob", b)
		},
		"says that kcp has taken nothing from it": func(t *testing.T, s workspaceScene, b kcpapisv1alpha2.APIBinding) {
			b.Spec.PermissionClaims = slices.Delete(b.Spec.PermissionClaims, bindings(b), bindings(b)+1)
			s.replaces(t, "bob", b)
			errOut, err := s.kubectl(t, "bob", "", "patch --subresource=status apibindings.v1alpha2.apis.kcp.io "+b.Name+` --type=merge -p {"status":{"appliedPermissionClaims":[]}}`)
			require.Error(t, err)
			require.Contains(t, errOut, "Forbidden")
		},
		"removes the binding and holds it": func(t *testing.T, s workspaceScene, b kcpapisv1alpha2.APIBinding) {
			b.Finalizers = append(b.Finalizers, "example.com/held")
			s.replaces(t, "bob", b)
			errOut, err := s.kubectl(t, "bob", "", "delete --wait=false apibindings.v1alpha2.apis.kcp.io "+b.Name)
			require.NoError(t, err, errOut)
		},
		"removes the binding and takes its name": func(t *testing.T, s workspaceScene, b kcpapisv1alpha2.APIBinding) {
			errOut, err := s.kubectl(t, "bob", `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIBinding","metadata":{"name":"`+tenancy.ExportAccess+`"},
				"spec":{"reference":{"export":{"path":"root","name":"topology.kcp.io"}}}}`, "create -f -")
			require.NoError(t, err, errOut)
			errOut, err = s.kubectl(t, "bob", "", "delete apibindings.v1alpha2.apis.kcp.io "+b.Name)
			require.NoError(t, err, errOut)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWorkspaceScene(t)
			before := s.accessBinding(t)
			hide(t, s, *before.DeepCopy())
			s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws, "/members/bob", framework.WithRole("member")), http.StatusOK)
			require.Equal(t, "ClusterRoleBinding/kedge:workspace:member:user:bob=User:bob,", s.naming(t, "bob"))
			// The hub sees again: what is altered comes back.
			errOut, err := s.kubectl(t, "alice", "", "delete clusterrolebinding kedge:workspace:member:user:dave")
			require.NoError(t, err, errOut)
			framework.Eventually(t, framework.Long, func() error {
				named := s.naming(t, "dave")
				return framework.Check(named == "ClusterRoleBinding/kedge:workspace:member:user:dave=User:dave,", "dave is in %s", named)
			})
			framework.Eventually(t, framework.Long, func() error {
				after := s.accessBinding(t)
				missing := slices.DeleteFunc(before.Spec.PermissionClaims, func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool {
					return slices.ContainsFunc(after.Spec.PermissionClaims, func(a kcpapisv1alpha2.AcceptablePermissionClaim) bool { return reflect.DeepEqual(a, c) })
				})
				return framework.Check(len(missing) == 0 && after.DeletionTimestamp == nil, "%v are not accepted", missing)
			})
		})
	}
}

// replaces writes a binding as it was read, but for what was changed in it.
func (s workspaceScene) replaces(t testing.TB, as string, b kcpapisv1alpha2.APIBinding) {
	t.Helper()
	b.ManagedFields, b.ResourceVersion = nil, ""
	b.APIVersion, b.Kind = kcpapisv1alpha2.SchemeGroupVersion.String(), "APIBinding"
	raw, err := json.Marshal(b)
	require.NoError(t, err)
	errOut, err := s.kubectl(t, as, string(raw), "replace -f -")
	require.NoError(t, err, errOut)
}
