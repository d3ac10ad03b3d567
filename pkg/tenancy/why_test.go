package tenancy_test

import (
	"strings"
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// explained is a Workspace with the roles of the hub, in which kcp bound the resources.
func explained(role v1alpha1.Role, a tenancy.Action, bound ...tenancy.BoundResource) tenancy.Explanation {
	roles := map[string]*rbacv1.ClusterRole{}
	for _, r := range tenancy.ClusterRoles(bound) {
		roles[r.Name] = r
	}
	return tenancy.Explanation{
		Action: a, Entry: tenancy.Entry{Role: role},
		ClusterRole: func(name string) (*rbacv1.ClusterRole, bool) { r, ok := roles[name]; return r, ok },
	}
}

func catalogEntry(slug, group, resource string) *v1alpha1.CatalogEntry {
	e := &v1alpha1.CatalogEntry{}
	e.Name, e.Spec.Slug, e.Spec.APIExport = slug, slug, v1alpha1.APIExportRef{Path: "root:p", Name: group}
	e.Status.Export = &v1alpha1.CatalogExport{Resources: []v1alpha1.CatalogResource{{Group: group, Resource: resource}}}
	return e
}

func TestExplanation_namesWhatIsMissing(t *testing.T) {
	t.Parallel()
	const group = "widgets.example.org"
	roles := tenancy.Action{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "roles"}
	widgets := tenancy.Action{Verb: "get", Group: group, Resource: "widgets"}
	offered := []*v1alpha1.CatalogEntry{catalogEntry("w", group, "widgets")}
	binding := func(phase kcpapisv1alpha2.APIBindingPhaseType) *kcpapisv1alpha2.APIBinding {
		b := &kcpapisv1alpha2.APIBinding{}
		b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root:p", Name: group}
		b.Status.Phase = phase
		return b
	}
	for name, tc := range map[string]struct {
		role    v1alpha1.Role
		action  tenancy.Action
		bound   []tenancy.BoundResource
		changed func(*tenancy.Explanation)
		code    string
		least   v1alpha1.Role
		slug    string
	}{
		"a viewer reads Secrets": {
			role: v1alpha1.RoleViewer, action: tenancy.Action{Verb: "get", Resource: "secrets"}, code: tenancy.CauseRoleTooLow, least: v1alpha1.RoleMember,
		},
		"a member writes RBAC": {role: v1alpha1.RoleMember, action: roles, code: tenancy.CauseRoleTooLow, least: v1alpha1.RoleAdmin},
		"an admin deletes the LogicalCluster": {
			role: v1alpha1.RoleAdmin, action: tenancy.Action{Verb: "delete", Group: "core.kcp.io", Resource: "logicalclusters"}, code: tenancy.CauseRoleTooLow,
		},
		"a member with sudo writes RBAC": {
			role: v1alpha1.RoleMember, action: roles, changed: func(e *tenancy.Explanation) { e.Entry.Sudo = true },
			code: tenancy.MissingSudo, least: v1alpha1.RoleAdmin,
		},
		"kcp has no pods":    {role: v1alpha1.RoleAdmin, action: tenancy.Action{Verb: "get", Resource: "pods"}, code: tenancy.MissingResource},
		"nobody has widgets": {role: v1alpha1.RoleAdmin, action: widgets, code: tenancy.MissingResource},
		"a provider has widgets": {
			role: v1alpha1.RoleAdmin, action: widgets, changed: func(e *tenancy.Explanation) { e.Entries = offered },
			code: tenancy.MissingProvider, slug: "w",
		},
		"the provider is being enabled": {
			role: v1alpha1.RoleAdmin, action: widgets, changed: func(e *tenancy.Explanation) {
				e.Entries, e.Bindings = offered, []*kcpapisv1alpha2.APIBinding{binding("Binding")}
			}, code: tenancy.MissingResource,
		},
		"the provider allows less than the role": {
			role: v1alpha1.RoleMember, action: widgets, bound: []tenancy.BoundResource{{Group: group, Resource: "widgets"}}, code: tenancy.MissingPolicyMayRefuse,
		},
		"members may only read it": {
			role: v1alpha1.RoleMember, action: tenancy.Action{Verb: "delete", Group: group, Resource: "widgets"},
			bound: []tenancy.BoundResource{{Group: group, Resource: "widgets", ReadOnly: true}}, code: tenancy.CauseRoleTooLow, least: v1alpha1.RoleAdmin,
		},
		"a tenant forges a role of the hub": {
			role: v1alpha1.RoleViewer, action: tenancy.Action{Verb: "get", Resource: "secrets"}, changed: func(e *tenancy.Explanation) {
				all := []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
				e.ClusterRole = func(string) (*rbacv1.ClusterRole, bool) { return &rbacv1.ClusterRole{Rules: all}, true }
			}, code: tenancy.MissingResource,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := explained(tc.role, tc.action, tc.bound...)
			if tc.changed != nil {
				tc.changed(&e)
			}
			missing := e.Missing()
			require.Len(t, missing, 1)
			require.Equal(t, []any{tc.code, tc.least, tc.slug}, []any{missing[0].Code, missing[0].Role, missing[0].Slug}, missing[0].Message)
			require.NotEmpty(t, missing[0].Message)
			e.Allowed = true
			require.Empty(t, e.Missing(), "nothing is missing once kcp allows it")
		})
	}
}

func TestExplanation_saysThatClaimsArePending(t *testing.T) {
	t.Parallel()
	b := &kcpapisv1alpha2.APIBinding{}
	b.Annotations = map[string]string{v1alpha1.CatalogEntryAnnotation: `{"uuid":"u","slug":"w"}`}
	b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBound
	b.Status.BoundResources = []kcpapisv1alpha2.BoundAPIResource{{Group: "g", Resource: "widgets"}}
	b.Status.ExportPermissionClaims = []kcpapisv1alpha2.PermissionClaim{{GroupResource: kcpapisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: []string{"get"}}}
	e := explained(v1alpha1.RoleAdmin, tenancy.Action{Verb: "get", Group: "g", Resource: "widgets"})
	e.Bindings, e.Allowed = []*kcpapisv1alpha2.APIBinding{b}, true
	missing := e.Missing()
	require.Len(t, missing, 1)
	require.Equal(t, tenancy.MissingClaims, missing[0].Code)
	b.Status.ExportPermissionClaims = nil
	require.Empty(t, e.Missing())
}

func TestExplanation_findsTheGroup(t *testing.T) {
	t.Parallel()
	e := explained(v1alpha1.RoleAdmin, tenancy.Action{})
	e.Entries = []*v1alpha1.CatalogEntry{catalogEntry("w", "widgets.example.org", "widgets")}
	b := &kcpapisv1alpha2.APIBinding{}
	b.Status.BoundResources = []kcpapisv1alpha2.BoundAPIResource{{Group: "bound.example.org", Resource: "gadgets"}}
	e.Bindings = []*kcpapisv1alpha2.APIBinding{b}
	for resource, group := range map[string]string{
		"configmaps": "", "roles": "rbac.authorization.k8s.io", "apibindings": "apis.kcp.io", "events": "", "gadgets": "bound.example.org", "widgets": "widgets.example.org", "pods": "",
	} {
		require.Equal(t, group, e.GroupOf(resource), resource)
	}
}

func TestPolicy_saysWhichWritesItMayRefuse(t *testing.T) {
	t.Parallel()
	p, err := tenancy.NewPolicy("hub")
	require.NoError(t, err)
	const rbac = "rbac.authorization.k8s.io"
	for _, a := range []tenancy.Action{{Verb: "get", Resource: "secrets"}, {Verb: "watch", Group: rbac, Resource: "roles"}, {Verb: "create", Resource: "configmaps"}} {
		require.Empty(t, p.MayRefuse(a), a)
	}
	created := strings.Join(p.MayRefuse(tenancy.Action{Verb: "create", Resource: "secrets"}), "; ")
	require.Contains(t, created, "never expire")
	require.Contains(t, created, "reserved")
	deleted := p.MayRefuse(tenancy.Action{Verb: "delete", Resource: "secrets"})
	require.Len(t, deleted, 1, "a Secret with a token of any type may be deleted")
	require.Contains(t, deleted[0], "reserved")
	require.Len(t, p.MayRefuse(tenancy.Action{Verb: "deletecollection", Group: "apis.kcp.io", Resource: "apibindings"}), 1)
}

func TestAction_refusesWhatIsNone(t *testing.T) {
	t.Parallel()
	good := tenancy.Action{Verb: "get", Resource: "widgets"}
	require.NoError(t, good.Check())
	for field, a := range map[string]tenancy.Action{
		"verb": {Resource: "widgets"}, "resource": {Verb: "get"}, "group": {Verb: "get", Resource: "widgets", Group: "*"},
		"name": {Verb: "get", Resource: "widgets", Name: "a b"}, "namespace": {Verb: "get", Resource: "widgets", Namespace: strings.Repeat("n", 254)},
		"subresource": {Verb: "get", Resource: "widgets", Subresource: "stätus"},
	} {
		var e *errs.Error
		require.ErrorAs(t, a.Check(), &e, field)
		require.Equal(t, "query:"+field, e.Causes[0].Field)
	}
	require.Error(t, tenancy.Action{Verb: "get", Resource: "widgets/status"}.Check())
}

func TestWorkspaceSources_areInTheOrderInWhichTheyCount(t *testing.T) {
	t.Parallel()
	type sources []tenancy.Source
	for name, tc := range map[string]struct {
		rows   []v1alpha1.MembershipIndexEntry
		access v1alpha1.DefaultAccess
		want   sources
	}{
		"nothing":                       {nil, v1alpha1.DefaultAccessView, nil},
		"an admin of the Organization":  {[]v1alpha1.MembershipIndexEntry{row(gateOrg, gateWS, v1alpha1.RoleViewer), row(gateOrg, "", v1alpha1.RoleAdmin)}, v1alpha1.DefaultAccessView, sources{{tenancy.ThroughOrgAdmin, v1alpha1.RoleAdmin}, {tenancy.ThroughMembership, v1alpha1.RoleViewer}}},
		"a member with default access":  {[]v1alpha1.MembershipIndexEntry{row(gateOrg, "", v1alpha1.RoleMember)}, v1alpha1.DefaultAccessView, sources{{tenancy.ThroughDefaultAccess, v1alpha1.RoleViewer}}},
		"a member without":              {[]v1alpha1.MembershipIndexEntry{row(gateOrg, "", v1alpha1.RoleMember)}, v1alpha1.DefaultAccessNone, nil},
		"a member of the Workspace":     {[]v1alpha1.MembershipIndexEntry{row(gateOrg, "", v1alpha1.RoleMember), row(gateOrg, gateWS, v1alpha1.RoleMember)}, v1alpha1.DefaultAccessView, sources{{tenancy.ThroughMembership, v1alpha1.RoleMember}, {tenancy.ThroughDefaultAccess, v1alpha1.RoleViewer}}},
		"somebody of another Workspace": {[]v1alpha1.MembershipIndexEntry{row(gateOrg, gateWSNew, v1alpha1.RoleAdmin)}, v1alpha1.DefaultAccessView, nil},
	} {
		var got sources
		for s := range tenancy.WorkspaceSources(tc.rows, gateOrg, gateWS, tc.access) {
			got = append(got, s)
		}
		require.Equal(t, tc.want, got, name)
		want := v1alpha1.Role("")
		if len(tc.want) > 0 {
			want = tc.want[0].Role
		}
		require.Equal(t, want, tenancy.WorkspaceRole(tc.rows, gateOrg, gateWS, tc.access), name)
	}
}
