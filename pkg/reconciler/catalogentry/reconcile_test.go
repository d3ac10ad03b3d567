package catalogentry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestEntry_becomesReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	after := w.converged()
	require.Equal(t, v1alpha1.PhaseReady, w.entry.Status.Phase, "%v", w.entry.Status.Conditions)
	require.Equal(t, v1alpha1.CatalogOrg, w.entry.Status.Scope)
	require.Equal(t, &v1alpha1.CatalogExport{
		ClusterID: "provider1", IdentityHash: "hash",
		Resources: []v1alpha1.CatalogResource{{Group: "example.org", Resource: "widgets"}},
		Claims: []v1alpha1.CatalogClaim{
			{Resource: "configmaps", Verbs: []string{"get"}}, {Resource: "secrets", Verbs: []string{"get"}, Dangerous: true},
		},
	}, w.entry.Status.Export)
	require.Equal(t, []string{"oidc:alice"}, w.bound())
	require.Positive(t, after)
	require.Less(t, after, 2*time.Minute)
	require.Contains(t, w.entry.Finalizers, v1alpha1.CascadeFinalizer)

	w.ForgetRequests()
	w.converged()
	require.Equal(t, w.reads(), w.requests(), "nothing to write")
}

func TestEntry_tellsWhomItHasNoRoomFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.alice(tenancy.NewMembership("alice", "", v1alpha1.RoleMember))
	for i := range 200 {
		w.admin(fmt.Sprintf("%03d", i) + strings.Repeat("x", 6000))
	}
	w.converged()
	c := w.condition(v1alpha1.ConditionGrantReady)
	require.Equal(t, metav1.ConditionFalse, c.Status)
	bound := len(w.bound())
	require.Positive(t, bound)
	require.Contains(t, c.Message, fmt.Sprintf("%d of 200 ", 200-bound))
}

func TestEntry_hasTheFinalizerBeforeTheGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Break(1, false)
	_, err := w.converge()
	require.ErrorContains(t, err, kcpfake.Broken)
	require.Empty(t, w.bound())
	w.ForgetRequests()
	w.converged()
	require.Equal(t, "patch catalogentries/"+w.key.Name+" in org1", w.Did()[0])
	require.Contains(t, string(w.Writes()[0].Body), v1alpha1.CascadeFinalizer)
	require.Equal(t, []string{"oidc:alice"}, w.bound())
}

func TestEntry_isGrantedToItsAudience(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*world)
		scope  v1alpha1.CatalogScope
		bound  []string
		at     string
	}{
		"of an organization, from a provider": {func(*world) {}, v1alpha1.CatalogOrg, []string{"oidc:alice"}, provider},
		"of an organization, from its workspace": {func(w *world) {
			w.at(ownPath)
		}, v1alpha1.CatalogOrg, []string{"oidc:alice"}, "ws1"},
		"of a personal organization": {func(w *world) {
			w.organization(func(o *v1alpha1.Organization) { o.Spec.Personal = true })
		}, v1alpha1.CatalogPersonal, []string{"oidc:alice"}, provider},
		"global": {(*world).globally, v1alpha1.CatalogGlobal, []string{"system:authenticated"}, provider},
		"without an audience": {func(w *world) {
			w.alice(tenancy.NewMembership("alice", "", v1alpha1.RoleMember))
		}, v1alpha1.CatalogOrg, []string{}, provider},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.change(w)
			w.converged()
			require.Equal(t, v1alpha1.PhaseReady, w.entry.Status.Phase, "%v", w.entry.Status.Conditions)
			require.Equal(t, test.scope, w.entry.Status.Scope)
			require.Equal(t, test.bound, w.bound())
			_, ok := w.Caches.ClusterRoleBindings.Get(test.at, tenancy.CatalogGrantName(w.key.Cluster, w.entry.Name))
			require.Equal(t, len(test.bound) > 0, ok)
		})
	}
}

// An Organization that is not in the cache does not make its entries Global.
func TestEntry_ofAnUnknownOrgIsGrantedToNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Remove(kcptest.Orgs, tenancy.NewOrganization(orgUUID, "", ""))
	require.ErrorIs(t, w.pass(), controller.ErrRetry)
	require.Empty(t, w.bound())
	require.Empty(t, w.entry.Status.Scope)
	w.Put(kcptest.Orgs, tenancy.NewOrganization(orgUUID, "Acme", "alice"))
	w.converged()
	require.Equal(t, []string{"oidc:alice"}, w.bound(), "the control")
}

func TestEntry_grantFollowsItsAudience(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.converged()
	w.admin("bob")
	w.converged()
	require.Equal(t, []string{"oidc:alice", "oidc:bob"}, w.bound())
	w.alice(tenancy.NewMembership("alice", "", v1alpha1.RoleMember))
	w.converged()
	require.Equal(t, []string{"oidc:bob"}, w.bound())
	w.Remove(kcptest.Users, person("bob"))
	w.converged()
	require.Empty(t, w.bound())
	require.Empty(t, w.roles())
}

func TestEntry_grantIsRestored(t *testing.T) {
	t.Parallel()
	for name, tamper := range map[string]func(*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding){
		"more verbs":    func(r *rbacv1.ClusterRole, _ *rbacv1.ClusterRoleBinding) { r.Rules[0].Verbs = []string{"*"} },
		"more exports":  func(r *rbacv1.ClusterRole, _ *rbacv1.ClusterRoleBinding) { r.Rules[0].ResourceNames = nil },
		"more subjects": func(_ *rbacv1.ClusterRole, b *rbacv1.ClusterRoleBinding) { b.Subjects = tenancy.GlobalAudience() },
		"another role":  func(_ *rbacv1.ClusterRole, b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "cluster-admin" },
		"no label":      func(_ *rbacv1.ClusterRole, b *rbacv1.ClusterRoleBinding) { b.Labels = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.converged()
			role, binding := w.roles()[0], w.bindings()[0]
			tampered, bound := role.DeepCopy(), binding.DeepCopy()
			tamper(tampered, bound)
			w.Put(provider, tampered)
			w.Put(provider, bound)
			w.converged()
			require.Equal(t, unversioned(role), unversioned(w.roles()[0]))
			require.Equal(t, unversioned(binding), unversioned(w.bindings()[0]))
		})
	}
}

func unversioned[T kcp.Object](o T) T {
	o.SetResourceVersion("")
	o.SetGeneration(0)
	return o
}

// The cache has the grants in child Workspaces. Those in workspaces of providers, and all in a pass that somebody
// requested, are read from kcp.
func TestEntry_grantInAWorkspaceIsReadFromTheCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.at(ownPath)
	w.converged()
	w.ForgetRequests()
	w.converged()
	require.Equal(t, []string{"get apiexports/" + exportName + " in ws1"}, w.requests())
	w.change(func(e *v1alpha1.CatalogEntry) {
		e.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationReconcile
	})
	w.converged()
	grant := grantName(w.entry) + " in ws1"
	require.Subset(t, w.requests(), []string{"get clusterroles/" + grant, "get clusterrolebindings/" + grant})
}

// Everything that keeps an entry from being enabled withholds the grant, too. It is back when
// the entry can be enabled again.
func TestEntry_thatCannotBeEnabledHasNoGrant(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	other := func() *v1alpha1.CatalogEntry {
		e := &v1alpha1.CatalogEntry{Spec: v1alpha1.CatalogEntrySpec{Slug: "widgets"}}
		e.Name, e.CreationTimestamp = "other", metav1.Unix(1, 0)
		return e
	}
	export := func(edit func(*kcpapisv1alpha2.APIExport)) func(*world) { return func(w *world) { w.export(edit) } }
	identity := func(hash string) func(*world) {
		return export(func(x *kcpapisv1alpha2.APIExport) { x.Status.IdentityHash = hash })
	}
	for name, test := range map[string]struct {
		change, undo func(*world)
		condition    string
		message      string
	}{
		"an older entry with the slug": {
			func(w *world) { w.Put("org1", other()) }, func(w *world) { w.Remove("org1", other()) },
			v1alpha1.ConditionSlugUnique, "an entry of organization " + orgUUID,
		},
		"an older global entry with the slug": {
			func(w *world) { w.Put(providers, other()) }, func(w *world) { w.Remove(providers, other()) },
			v1alpha1.ConditionSlugUnique, "a global entry",
		},
		"the export is gone": {
			func(w *world) { w.Remove(provider, apiExport()) }, (*world).provide,
			v1alpha1.ConditionExportFound, "no APIExport of that name",
		},
		"the workspace is gone": {
			(*world).vanish, (*world).provide, v1alpha1.ConditionExportFound, "its workspace does not exist any more",
		},
		"the export is being deleted": {
			export(func(x *kcpapisv1alpha2.APIExport) { x.DeletionTimestamp = &now }),
			export(func(x *kcpapisv1alpha2.APIExport) { x.DeletionTimestamp = nil }),
			v1alpha1.ConditionExportFound, "it is being deleted",
		},
		"the export was replaced": {
			identity("another"), identity("hash"), v1alpha1.ConditionExportFound, "with another identity",
		},
		"the export is too large": {
			export(func(x *kcpapisv1alpha2.APIExport) {
				claim := kcpapisv1alpha2.PermissionClaim{GroupResource: kcpapisv1alpha2.GroupResource{Resource: strings.Repeat("a", 1000)}}
				x.Spec.PermissionClaims = slices.Repeat([]kcpapisv1alpha2.PermissionClaim{claim}, 70)
			}),
			(*world).provide, v1alpha1.ConditionExportFound, "more resources and permission claims",
		},
		"the export has no identity yet": {
			identity(""), identity("hash"), v1alpha1.ConditionExportFound, "an identity",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.converged()
			require.Equal(t, []string{"oidc:alice"}, w.bound())
			held := w.entry.Status.Export
			test.change(w)
			require.Positive(t, w.converged(), "it is looked at again")
			require.Equal(t, v1alpha1.PhaseProgressing, w.entry.Status.Phase)
			require.Contains(t, w.condition(test.condition).Message, test.message)
			require.Equal(t, metav1.ConditionFalse, w.condition(test.condition).Status)
			require.Empty(t, w.bound())
			require.Equal(t, held, w.entry.Status.Export)
			test.undo(w)
			w.converged()
			require.Equal(t, v1alpha1.PhaseReady, w.entry.Status.Phase)
			require.Equal(t, []string{"oidc:alice"}, w.bound())
		})
	}
}

func TestEntry_namesOnlyExportsThatItMay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*world)
		message string
	}{
		"the hub's own export": {func(w *world) {
			w.change(func(e *v1alpha1.CatalogEntry) { e.Spec.APIExport.Name = tenancy.ExportTenancy })
		}, "of kcp or of the hub"},
		"a path of the hub": {func(w *world) { w.at("root:kedge:providers") }, "must be a workspace below"},
		"a workspace of another org": {func(w *world) {
			w.at("root:kedge:orgs:" + wsUUID + ":" + wsUUID)
		}, "must be a workspace below"},
		"a workspace, globally":        {func(w *world) { w.at(ownPath); w.globally() }, "must be a workspace below"},
		"a workspace that is gone":     {func(w *world) { w.at(ownPath); removeWorkspace(w) }, "does not exist any more"},
		"a soft-deleted workspace":     {func(w *world) { w.at(ownPath); softDelete(w) }, "undelete that"},
		"a workspace that is not made": {func(w *world) { w.at(ownPath); unmake(w) }, "kcp is making"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.change(w)
			w.converged()
			require.Equal(t, v1alpha1.PhaseProgressing, w.entry.Status.Phase)
			require.Contains(t, w.condition(v1alpha1.ConditionExportFound).Message, test.message)
			require.Empty(t, w.bound())
			for _, r := range w.Requests() {
				require.NotEqual(t, "apiexports", r.Resource)
			}
		})
	}
}

func softDelete(w *world) {
	w.workspace(func(ws *kcptenancyv1alpha1.Workspace) {
		ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation] = w.Clock.Now().UTC().Format(time.RFC3339)
	})
}

func unmake(w *world) {
	w.workspace(func(ws *kcptenancyv1alpha1.Workspace) {
		ws.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseInitializing
	})
}

func removeWorkspace(w *world) {
	w.Remove("org1", &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: wsUUID}})
}
