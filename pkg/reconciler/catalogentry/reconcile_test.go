package catalogentry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/catalogentry"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestEntry_becomesReady(t *testing.T) {
	t.Parallel()
	w := newWorld()
	after := w.converged(t)
	require.Equal(t, v1alpha1.PhaseReady, w.entry.Status.Phase, "%v", w.entry.Status.Conditions)
	require.Equal(t, v1alpha1.CatalogOrg, w.entry.Status.Scope)
	require.Equal(t, &v1alpha1.CatalogExport{
		ClusterID: "provider1", IdentityHash: "hash",
		Resources: []v1alpha1.CatalogResource{{Group: "example.org", Resource: "widgets"}},
		Claims: []v1alpha1.CatalogClaim{
			{Resource: "configmaps", Verbs: []string{"get"}}, {Resource: "secrets", Verbs: []string{"get"}, Dangerous: true},
		},
	}, w.entry.Status.Export)
	require.Equal(t, []string{"alice"}, w.bound())
	require.Positive(t, after)
	require.Less(t, after, 2*time.Minute)
	require.Contains(t, w.entry.Finalizers, v1alpha1.CascadeFinalizer)

	w.Did = nil
	w.converged(t)
	require.Equal(t, []string{"find export"}, w.Did, "nothing to write")
}

func TestEntry_tellsWhomItHasNoRoomFor(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.audience = nil
	for i := range 20000 {
		w.audience = append(w.audience, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprintf("person-%05d", i)})
	}
	w.converged(t)
	c := w.condition(v1alpha1.ConditionGrantReady)
	require.Equal(t, metav1.ConditionFalse, c.Status)
	bound := len(w.bound())
	require.Positive(t, bound)
	require.Contains(t, c.Message, fmt.Sprintf("%d of 20000 ", 20000-bound))
}

func TestEntry_hasTheFinalizerBeforeTheGrant(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.Fails = 1
	_, err := w.converge(t)
	require.ErrorIs(t, err, kcptest.ErrDown)
	require.Empty(t, w.bound())
	w.converged(t)
	require.Equal(t, "patch ", w.Did[0])
	require.Equal(t, []string{"alice"}, w.bound())
}

func TestEntry_isGrantedToItsAudience(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*world)
		scope  v1alpha1.CatalogScope
		bound  []string
		at     string
	}{
		"of an organization, from a provider": {func(*world) {}, v1alpha1.CatalogOrg, []string{"alice"}, provider},
		"of an organization, from its workspace": {func(w *world) {
			w.entry.Spec.APIExport.Path = ownPath
		}, v1alpha1.CatalogOrg, []string{"alice"}, "ws1"},
		"of a personal organization": {func(w *world) { w.org.Spec.Personal = true }, v1alpha1.CatalogPersonal, []string{"alice"}, provider},
		"global":                     {func(w *world) { w.org = nil }, v1alpha1.CatalogGlobal, []string{"system:authenticated"}, provider},
		"without an audience":        {func(w *world) { w.audience = nil }, v1alpha1.CatalogOrg, []string{}, provider},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			test.change(w)
			w.converged(t)
			require.Equal(t, v1alpha1.PhaseReady, w.entry.Status.Phase, "%v", w.entry.Status.Conditions)
			require.Equal(t, test.scope, w.entry.Status.Scope)
			require.Equal(t, test.bound, w.bound())
			if len(test.bound) > 0 {
				require.Contains(t, w.bindings, test.at+"|"+tenancy.CatalogGrantName("org1", w.entry.Name))
			}
		})
	}
}

// An Organization that is not in the cache does not make its entries Global.
func TestEntry_ofAnUnknownOrgIsGrantedToNobody(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.org, w.unknown = nil, true
	_, err := w.converge(t)
	require.ErrorIs(t, err, controller.ErrRetry)
	require.Empty(t, w.bound())
	require.Empty(t, w.entry.Status.Scope)
	w.unknown = false
	w.converged(t)
	require.Equal(t, []string{"system:authenticated"}, w.bound(), "the control")
}

func TestEntry_grantFollowsItsAudience(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.converged(t)
	w.audience = append(w.audience, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "bob"})
	w.converged(t)
	require.Equal(t, []string{"alice", "bob"}, w.bound())
	w.audience = w.audience[1:]
	w.converged(t)
	require.Equal(t, []string{"bob"}, w.bound())
	w.audience = nil
	w.converged(t)
	require.Empty(t, w.bound())
	require.Empty(t, w.roles)
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
			w := newWorld()
			w.converged(t)
			at := provider + "|" + tenancy.CatalogGrantName("org1", w.entry.Name)
			role, binding := w.roles[at].DeepCopy(), w.bindings[at].DeepCopy()
			tamper(w.roles[at], w.bindings[at])
			w.converged(t)
			require.Equal(t, role, w.roles[at])
			require.Equal(t, binding, w.bindings[at])
		})
	}
}

// Everything that keeps an entry from being enabled withholds the grant, too. It is back when
// the entry can be enabled again.
func TestEntry_thatCannotBeEnabledHasNoGrant(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for name, test := range map[string]struct {
		change, undo func(*world)
		condition    string
		message      string
	}{
		"an older entry with the slug": {
			func(w *world) { w.other, w.otherIn = &v1alpha1.CatalogEntry{}, "o2" }, func(w *world) { w.other = nil },
			v1alpha1.ConditionSlugUnique, "an entry of organization o2",
		},
		"an older global entry with the slug": {
			func(w *world) { w.other = &v1alpha1.CatalogEntry{} }, func(w *world) { w.other = nil },
			v1alpha1.ConditionSlugUnique, "a global entry",
		},
		"the export is gone": {
			func(w *world) { w.absence = catalogentry.ExportGone }, func(w *world) { w.absence = "" },
			v1alpha1.ConditionExportFound, "no APIExport of that name",
		},
		"the workspace is gone": {
			func(w *world) { w.absence = catalogentry.WorkspaceGone }, func(w *world) { w.absence = "" },
			v1alpha1.ConditionExportFound, "its workspace does not exist any more",
		},
		"the export is being deleted": {
			func(w *world) { w.export.DeletionTimestamp = &now }, func(w *world) { w.export.DeletionTimestamp = nil },
			v1alpha1.ConditionExportFound, "it is being deleted",
		},
		"the export was replaced": {
			func(w *world) { w.export.Status.IdentityHash = "another" }, func(w *world) { w.export.Status.IdentityHash = "hash" },
			v1alpha1.ConditionExportFound, "with another identity",
		},
		"the export is too large": {
			func(w *world) {
				claim := kcpapisv1alpha2.PermissionClaim{GroupResource: kcpapisv1alpha2.GroupResource{Resource: strings.Repeat("a", 1000)}}
				w.export.Spec.PermissionClaims = slices.Repeat([]kcpapisv1alpha2.PermissionClaim{claim}, 70)
			},
			func(w *world) { w.export.Spec.PermissionClaims = newWorld().export.Spec.PermissionClaims },
			v1alpha1.ConditionExportFound, "more resources and permission claims",
		},
		"the export has no identity yet": {
			func(w *world) { w.export.Status.IdentityHash = "" }, func(w *world) { w.export.Status.IdentityHash = "hash" },
			v1alpha1.ConditionExportFound, "an identity",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.converged(t)
			require.Equal(t, []string{"alice"}, w.bound())
			held := w.entry.Status.Export
			test.change(w)
			require.Positive(t, w.converged(t), "it is looked at again")
			require.Equal(t, v1alpha1.PhaseProgressing, w.entry.Status.Phase)
			require.Contains(t, w.condition(test.condition).Message, test.message)
			require.Equal(t, metav1.ConditionFalse, w.condition(test.condition).Status)
			require.Empty(t, w.bound())
			require.Equal(t, held, w.entry.Status.Export)
			test.undo(w)
			w.converged(t)
			require.Equal(t, v1alpha1.PhaseReady, w.entry.Status.Phase)
			require.Equal(t, []string{"alice"}, w.bound())
		})
	}
}

func TestEntry_namesOnlyExportsThatItMay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*world)
		message string
	}{
		"the hub's own export":         {func(w *world) { w.entry.Spec.APIExport.Name = tenancy.ExportTenancy }, "of kcp or of the hub"},
		"a path of the hub":            {func(w *world) { w.entry.Spec.APIExport.Path = "root:kedge:providers" }, "must be a workspace below"},
		"a workspace of another org":   {func(w *world) { w.entry.Spec.APIExport.Path = "root:kedge:orgs:" + wsUUID + ":" + wsUUID }, "must be a workspace below"},
		"a workspace, globally":        {func(w *world) { w.org, w.entry.Spec.APIExport.Path = nil, ownPath }, "must be a workspace below"},
		"a workspace that is gone":     {func(w *world) { w.known, w.entry.Spec.APIExport.Path = false, ownPath }, "does not exist any more"},
		"a soft-deleted workspace":     {func(w *world) { softDelete(w); w.entry.Spec.APIExport.Path = ownPath }, "undelete that"},
		"a workspace that is not made": {func(w *world) { w.workspace.KCPReady, w.entry.Spec.APIExport.Path = false, ownPath }, "kcp is making"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			test.change(w)
			w.converged(t)
			require.Equal(t, v1alpha1.PhaseProgressing, w.entry.Status.Phase)
			require.Contains(t, w.condition(v1alpha1.ConditionExportFound).Message, test.message)
			require.Empty(t, w.bound())
			require.NotContains(t, w.Did, "find export")
		})
	}
}

func softDelete(w *world) {
	now := metav1.NewTime(w.clock.Now())
	w.workspace.DeletionRequestedAt = &now
}
