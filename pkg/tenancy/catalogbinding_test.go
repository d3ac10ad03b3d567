package tenancy_test

import (
	"slices"
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// enabling is a request to enable an entry whose export claims configmaps and secrets.
func enabling() tenancy.Enabling {
	e := &v1alpha1.CatalogEntry{ObjectMeta: metav1.ObjectMeta{Name: "aaaaaaaa-1111-5111-8111-000000000001"}}
	e.Spec.Slug, e.Spec.DisplayName, e.Spec.MemberResources = "widgets", "Widgets", []string{"widgets"}
	e.Spec.APIExport = v1alpha1.APIExportRef{Path: "root:kedge:providers:acme", Name: "widgets.example.org"}
	e.Status.Export = &v1alpha1.CatalogExport{ClusterID: "acme", IdentityHash: "id"}
	export := &kcpapisv1alpha2.APIExport{}
	export.Annotations = map[string]string{"kcp.io/cluster": "acme"}
	export.Status.IdentityHash = "id"
	export.Spec.Resources = []kcpapisv1alpha2.ResourceSchema{{Group: "example.org", Name: "widgets"}}
	export.Spec.PermissionClaims = []kcpapisv1alpha2.PermissionClaim{
		{GroupResource: kcpapisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: []string{"get"}},
		{GroupResource: kcpapisv1alpha2.GroupResource{Resource: "secrets"}, Verbs: []string{"get"}, DefaultSelector: &kcpapisv1alpha2.PermissionClaimSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"for": "widgets"}},
		}},
	}
	return tenancy.Enabling{
		Entry: e, Export: export,
		Accepted: []v1alpha1.CatalogResource{{Resource: "configmaps"}}, Rejected: []v1alpha1.CatalogResource{{Resource: "secrets"}},
	}
}

func bindingTo(name, path, export string) *kcpapisv1alpha2.APIBinding {
	b := &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: path, Name: export}
	return b
}

func TestEnabling_bindsWhatTheEntryNames(t *testing.T) {
	t.Parallel()
	e := enabling()
	e.Bindings = []*kcpapisv1alpha2.APIBinding{bindingTo("widgets", "root:elsewhere", "things"), bindingTo("widgets-2", "root:elsewhere", "others")}
	want, held, changed, err := e.Binding()
	require.NoError(t, err)
	require.Nil(t, held)
	require.True(t, changed)
	require.Equal(t, "widgets-3", want.Name)
	require.Equal(t, e.Entry.Spec.APIExport, tenancy.ExportOf(want))
	require.Len(t, want.Spec.PermissionClaims, 2)
	require.Equal(t, kcpapisv1alpha2.ClaimAccepted, want.Spec.PermissionClaims[0].State)
	require.True(t, want.Spec.PermissionClaims[0].Selector.MatchAll)
	require.Equal(t, kcpapisv1alpha2.ClaimRejected, want.Spec.PermissionClaims[1].State)
	require.False(t, want.Spec.PermissionClaims[1].Selector.MatchAll, "a claim that is not dangerous because of its selector keeps it")
	was, ok := tenancy.EnabledEntryOf(want)
	require.True(t, ok)
	require.Equal(t, tenancy.EnabledEntry{UUID: e.Entry.Name, Slug: "widgets", DisplayName: "Widgets", MemberResources: []string{"widgets"}}, was)

	want.UID = "made"
	e.Bindings = append(e.Bindings, want)
	same, held, changed, err := e.Binding()
	require.NoError(t, err)
	require.False(t, changed, "a repetition changes nothing")
	require.Equal(t, want, held)
	require.Equal(t, want, same)

	e.Accepted, e.Rejected = append(e.Accepted, e.Rejected...), nil
	amended, held, changed, err := e.Binding()
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, want, held, "what was held is unchanged")
	require.Equal(t, kcpapisv1alpha2.ClaimAccepted, amended.Spec.PermissionClaims[1].State)
	require.True(t, tenancy.ClaimsWithdrawn(held, amended))
	held.Status.AppliedPermissionClaims = []kcpapisv1alpha2.ScopedPermissionClaim{held.Spec.PermissionClaims[1].ScopedPermissionClaim}
	require.False(t, tenancy.ClaimsWithdrawn(held, amended), "kcp has not taken the rejected claim back")
}

func TestEnabling_takesABindingThatSomebodyMade(t *testing.T) {
	t.Parallel()
	e := enabling()
	b := bindingTo("by-hand", "acme", "widgets.example.org")
	b.Status.APIExportClusterName, b.Status.Phase = "acme", kcpapisv1alpha2.APIBindingPhaseBound
	b.Spec.PermissionClaims = []kcpapisv1alpha2.AcceptablePermissionClaim{{State: kcpapisv1alpha2.ClaimRejected}}
	b.Spec.PermissionClaims[0].Resource = "configmaps"
	b.Spec.PermissionClaims[0].Selector.MatchLabels = map[string]string{"a": "b"}
	e.Bindings = []*kcpapisv1alpha2.APIBinding{bindingTo("other", "root:elsewhere", "widgets.example.org"), b}
	want, held, changed, err := e.Binding()
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, b, held, "its path is the ID of the logical cluster")
	require.Equal(t, "by-hand", want.Name)
	require.Equal(t, kcpapisv1alpha2.ClaimAccepted, want.Spec.PermissionClaims[0].State)
	require.Equal(t, map[string]string{"a": "b"}, want.Spec.PermissionClaims[0].Selector.MatchLabels, "kcp does not let it change")
}

// The message of a refusal is on the terminal of an admin who is about to answer the claims of a provider.
func TestEnabling_aVerbOfAProviderMovesNoCursor(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*tenancy.Enabling){
		"a claim that has changed": func(e *tenancy.Enabling) {
			e.Entry.Status.Export.Claims = []v1alpha1.CatalogClaim{{Resource: "configmaps", Verbs: []string{"list"}}}
		},
		"a claim without an answer": func(e *tenancy.Enabling) { e.Accepted = nil },
		"a claim that nobody can accept": func(e *tenancy.Enabling) {
			e.Export.Spec.PermissionClaims[0].Group = "rbac.authorization.k8s.io"
			e.Accepted[0].Group = "rbac.authorization.k8s.io"
		},
	} {
		e := enabling()
		e.Export.Spec.PermissionClaims[0].Verbs = []string{"get", "\x1b]0;owned\a\nget\u202e"}
		change(&e)
		_, _, _, err := e.Binding()
		require.Error(t, err, name)
		require.Contains(t, err.Error(), `(get, "\x1b]0;owned\a\nget\u202e"`, name)
	}
}

func TestEnabling_isRefused(t *testing.T) {
	t.Parallel()
	taken := bindingTo("taken", "root:elsewhere", "things")
	taken.Status.BoundResources = []kcpapisv1alpha2.BoundAPIResource{{Group: "example.org", Resource: "widgets"}}
	now := metav1.Now()
	going := bindingTo("going", "root:kedge:providers:acme", "widgets.example.org")
	going.DeletionTimestamp = &now
	for name, c := range map[string]struct {
		change func(*tenancy.Enabling)
		code   errs.Code
		says   string
	}{
		"gone":          {func(e *tenancy.Enabling) { e.Export = nil }, errs.Conflict, "removed this API"},
		"being deleted": {func(e *tenancy.Enabling) { e.Export.DeletionTimestamp = &now }, errs.Conflict, "removed this API"},
		"replaced":      {func(e *tenancy.Enabling) { e.Export.Status.IdentityHash = "other" }, errs.Conflict, "identity changed"},
		"has a kind of kcp": {func(e *tenancy.Enabling) {
			e.Export.Spec.Resources = append(e.Export.Spec.Resources, kcpapisv1alpha2.ResourceSchema{Group: "rbac.authorization.k8s.io", Name: "clusterrolebindings"})
		}, errs.Conflict, "clusterrolebindings.rbac.authorization.k8s.io"},
		"unanswered": {func(e *tenancy.Enabling) { e.Rejected = nil }, errs.Unprocessable, "secrets"},
		"unknown": {func(e *tenancy.Enabling) {
			e.Accepted = append(e.Accepted, v1alpha1.CatalogResource{Resource: "pods"})
		}, errs.Unprocessable, "pods"},
		"asks for more than is shown": {func(e *tenancy.Enabling) {
			e.Entry.Status.Export.Claims = []v1alpha1.CatalogClaim{{Resource: "configmaps", Verbs: []string{"list"}}}
		}, errs.Conflict, "has just changed what it asks for: configmaps (get)"},
		"is dangerous and was not": {func(e *tenancy.Enabling) {
			e.Entry.Status.Export.Claims = []v1alpha1.CatalogClaim{{Resource: "secrets", Verbs: []string{"get"}}}
			e.Accepted, e.Rejected = append(e.Accepted, e.Rejected...), nil
			e.Export.Spec.PermissionClaims[1].DefaultSelector = nil
		}, errs.Conflict, "has just changed"},
		"asks for what is shown": {func(e *tenancy.Enabling) {
			e.Entry.Status.Export.Claims = []v1alpha1.CatalogClaim{{Resource: "configmaps", Verbs: []string{"get", "list"}}}
		}, 0, ""},
		"asks for more, which is rejected": {func(e *tenancy.Enabling) {
			e.Entry.Status.Export.Claims = []v1alpha1.CatalogClaim{{Resource: "secrets", Verbs: []string{"list"}}}
		}, 0, ""},
		"too large": {func(e *tenancy.Enabling) {
			e.Export.Spec.PermissionClaims[0].Verbs = slices.Repeat([]string{"get"}, 20000)
		}, errs.Conflict, "than the catalog stores"},
		"bound elsewhere":      {func(e *tenancy.Enabling) { e.Bindings = append(e.Bindings, taken) }, errs.Conflict, "widgets.example.org"},
		"defined here":         {func(e *tenancy.Enabling) { e.CustomResources = []string{"widgets.example.org"} }, errs.Conflict, "widgets.example.org"},
		"being disabled":       {func(e *tenancy.Enabling) { e.Bindings = append(e.Bindings, going) }, errs.Conflict, "being disabled"},
		"the positive control": {func(*tenancy.Enabling) {}, 0, ""},
	} {
		e := enabling()
		c.change(&e)
		_, _, _, err := e.Binding()
		if c.code == 0 {
			require.NoError(t, err, name)
			continue
		}
		require.Equal(t, c.code, errs.CodeOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, c.says, name)
	}
}

func TestEnabledEntryOf_readsOnlyWhatTheHubWrites(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{"uuid":"aaaaaaaa-1111-5111-8111-000000000001","slug":"a","displayName":"A"}`: true,
		`{"uuid":"aaaaaaaa-1111-5111-8111-000000000001","slug":"A","displayName":"A"}`: false,
		`{"uuid":"aaaaaaaa-1111-5111-8111-000000000001","slug":"a","displayName":""}`:  false,
		`{"uuid":"../../x","slug":"a","displayName":"A"}`:                              false,
		`{`: false, ``: false,
	} {
		b := bindingTo("b", "root:x", "y")
		b.Annotations = map[string]string{v1alpha1.CatalogEntryAnnotation: raw}
		_, ok := tenancy.EnabledEntryOf(b)
		require.Equal(t, want, ok, raw)
	}
}

func TestExportIn_hasTheNewestClaims(t *testing.T) {
	t.Parallel()
	known := &v1alpha1.CatalogExport{Resources: []v1alpha1.CatalogResource{{Group: "example.org", Resource: "widgets"}}}
	require.Equal(t, known, tenancy.ExportIn(known, nil))
	b := bindingTo("b", "root:x", "y")
	require.Equal(t, known, tenancy.ExportIn(known, b), "kcp has not said anything yet")
	b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBound
	b.Status.ExportPermissionClaims = enabling().Export.Spec.PermissionClaims
	b.Status.BoundResources = []kcpapisv1alpha2.BoundAPIResource{{Group: "example.org", Resource: "gadgets"}}
	in := tenancy.ExportIn(known, b)
	require.Equal(t, known.Resources, in.Resources)
	require.Len(t, in.Claims, 2)
	require.Empty(t, known.Claims)
	state, _ := tenancy.CatalogStateOf(in, b)
	require.Equal(t, tenancy.CatalogClaimsPending, state)
	require.Equal(t, "gadgets", tenancy.ExportIn(nil, b).Resources[0].Resource, "the entry was deleted")
}

func TestWouldLose_namesEachKind(t *testing.T) {
	t.Parallel()
	err := tenancy.WouldLose([]tenancy.Loss{{Group: "example.org", Resource: "gadgets", Count: new(int64(0))}, {Group: "example.org", Resource: "widgets", Count: new(int64(3))}, {Group: "example.org", Resource: "wheels", Count: new(int64(2))}})
	require.ErrorContains(t, err, "3 widgets.example.org would be deleted, 2 wheels.example.org would be deleted; to go on")
	var e *errs.Error
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Causes, 3)
	require.Equal(t, errs.Cause{Type: "WouldLose", Field: "gadgets.example.org", Message: "0 gadgets.example.org would be deleted"}, e.Causes[0])
	require.ErrorContains(t, tenancy.WouldLose(nil), "nothing would be lost")
}

func TestClusterRoles_limitMembersToMemberResources(t *testing.T) {
	t.Parallel()
	b := bindingTo("b", "root:x", "y")
	for _, r := range []string{"widgets", "gadgets", "wheels"} {
		b.Status.BoundResources = append(b.Status.BoundResources, kcpapisv1alpha2.BoundAPIResource{Group: "example.org", Resource: r})
	}
	for _, c := range []struct{ listed, writes []string }{
		{nil, []string{"gadgets", "wheels", "widgets"}},
		{[]string{"widgets", "wheels.example.org", "gadgets.example.com"}, []string{"wheels", "widgets"}},
	} {
		roles := tenancy.ClusterRoles(tenancy.BoundResources([]*kcpapisv1alpha2.APIBinding{b}, func(*kcpapisv1alpha2.APIBinding) []string { return c.listed }))
		for _, role := range roles {
			var reads, writes []string
			for _, rule := range role.Rules {
				if !has(rule.APIGroups, "example.org") {
					continue
				}
				reads = append(reads, rule.Resources...)
				if has(rule.Verbs, "create") {
					writes = append(writes, rule.Resources...)
				}
			}
			require.Subset(t, reads, []string{"gadgets", "wheels", "widgets"}, role.Name)
			switch role.Name {
			case tenancy.ClusterRoleMember:
				require.Equal(t, c.writes, writes)
			case tenancy.ClusterRoleViewer:
				require.Empty(t, writes)
			case tenancy.ClusterRoleAdmin:
				require.Subset(t, writes, []string{"gadgets", "wheels", "widgets", "widgets/status"})
			}
		}
	}
}
