package tenancy_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// catalogBinding is a binding as kcp reports it once it is bound.
func catalogBinding() *kcpapisv1alpha2.APIBinding {
	b := &kcpapisv1alpha2.APIBinding{}
	b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root:p", Name: "widgets"}
	b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBound
	b.Status.BoundResources = []kcpapisv1alpha2.BoundAPIResource{{Resource: "widgets", Schema: kcpapisv1alpha2.BoundAPIResourceSchema{IdentityHash: "id"}}}
	return b
}

func failing(b *kcpapisv1alpha2.APIBinding, kind conditionsv1alpha1.ConditionType, severity conditionsv1alpha1.ConditionSeverity) {
	b.Status.Conditions = append(b.Status.Conditions, conditionsv1alpha1.Condition{Type: kind, Status: corev1.ConditionFalse, Severity: severity, Reason: "Because", Message: "kcp says so"})
}

func TestCatalogState_followsTheBinding(t *testing.T) {
	t.Parallel()
	export := &v1alpha1.CatalogExport{IdentityHash: "id", Claims: []v1alpha1.CatalogClaim{{Resource: "configmaps", Verbs: []string{"get", "list"}}}}
	answer := func(b *kcpapisv1alpha2.APIBinding, state kcpapisv1alpha2.AcceptablePermissionClaimState, verbs ...string) {
		c := kcpapisv1alpha2.AcceptablePermissionClaim{State: state}
		c.Resource, c.Verbs = "configmaps", verbs
		b.Spec.PermissionClaims = append(b.Spec.PermissionClaims, c)
	}
	for name, c := range map[string]struct {
		change func(*kcpapisv1alpha2.APIBinding)
		state  tenancy.CatalogState
		says   string
	}{
		"answered":      {func(b *kcpapisv1alpha2.APIBinding) { answer(b, kcpapisv1alpha2.ClaimAccepted, "list", "get") }, tenancy.CatalogEnabled, ""},
		"all verbs":     {func(b *kcpapisv1alpha2.APIBinding) { answer(b, kcpapisv1alpha2.ClaimAccepted, "*") }, tenancy.CatalogEnabled, ""},
		"rejected":      {func(b *kcpapisv1alpha2.APIBinding) { answer(b, kcpapisv1alpha2.ClaimRejected, "get", "list") }, tenancy.CatalogEnabled, ""},
		"not answered":  {func(*kcpapisv1alpha2.APIBinding) {}, tenancy.CatalogClaimsPending, "answer to each claim"},
		"a verb more":   {func(b *kcpapisv1alpha2.APIBinding) { answer(b, kcpapisv1alpha2.ClaimAccepted, "get") }, tenancy.CatalogClaimsPending, ""},
		"being bound":   {func(b *kcpapisv1alpha2.APIBinding) { b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBinding }, tenancy.CatalogEnabling, "binding"},
		"new":           {func(b *kcpapisv1alpha2.APIBinding) { b.Status = kcpapisv1alpha2.APIBindingStatus{} }, tenancy.CatalogEnabling, "binding"},
		"being deleted": {func(b *kcpapisv1alpha2.APIBinding) { b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, tenancy.CatalogDisabled, "being disabled"},
		"waits to be deleted": {func(b *kcpapisv1alpha2.APIBinding) {
			b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			failing(b, kcpapisv1alpha2.BindingResourceDeleteSuccess, conditionsv1alpha1.ConditionSeverityError)
		}, tenancy.CatalogDisabled, "being disabled: kcp says so"},
		"a new identity": {func(b *kcpapisv1alpha2.APIBinding) { b.Status.BoundResources[0].Schema.IdentityHash = "old" }, tenancy.CatalogFailing, "replaced"},
		"no export": {func(b *kcpapisv1alpha2.APIBinding) {
			failing(b, kcpapisv1alpha2.APIExportValid, conditionsv1alpha1.ConditionSeverityError)
		}, tenancy.CatalogFailing, "Because: kcp says so"},
		"a conflict": {func(b *kcpapisv1alpha2.APIBinding) {
			b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBinding
			failing(b, kcpapisv1alpha2.BindingUpToDate, conditionsv1alpha1.ConditionSeverityError)
		}, tenancy.CatalogFailing, "kcp says so"},
		"a warning": {func(b *kcpapisv1alpha2.APIBinding) {
			answer(b, kcpapisv1alpha2.ClaimAccepted, "get", "list", "watch")
			failing(b, kcpapisv1alpha2.PermissionClaimsValid, conditionsv1alpha1.ConditionSeverityWarning)
		}, tenancy.CatalogEnabled, ""},
		"kcp waits": {func(b *kcpapisv1alpha2.APIBinding) {
			b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBinding
			failing(b, kcpapisv1alpha2.InitialBindingCompleted, conditionsv1alpha1.ConditionSeverityInfo)
		}, tenancy.CatalogEnabling, "binding the API: kcp says so"},
	} {
		b := catalogBinding()
		c.change(b)
		state, message := tenancy.CatalogStateOf(export, b)
		require.Equal(t, c.state, state, name)
		require.Contains(t, message, c.says, name)
		require.Equal(t, state == tenancy.CatalogEnabled, message == "", name)
	}
	state, _ := tenancy.CatalogStateOf(export, nil)
	require.Equal(t, tenancy.CatalogDisabled, state)
	state, _ = tenancy.CatalogStateOf(nil, catalogBinding())
	require.Equal(t, tenancy.CatalogEnabled, state, "of an export that the hub does not know")
}

func TestClaimState_tellsClaimsOfOneNameApart(t *testing.T) {
	t.Parallel()
	b := catalogBinding()
	accepted := kcpapisv1alpha2.AcceptablePermissionClaim{State: kcpapisv1alpha2.ClaimAccepted}
	accepted.Group, accepted.Resource, accepted.IdentityHash, accepted.Verbs = "example.org", "widgets", "1", []string{"get"}
	b.Spec.PermissionClaims = []kcpapisv1alpha2.AcceptablePermissionClaim{accepted}
	claim := v1alpha1.CatalogClaim{Group: "example.org", Resource: "widgets", IdentityHash: "1", Verbs: []string{"get"}}
	require.Equal(t, []tenancy.ClaimState{tenancy.ClaimAccepted}, tenancy.ClaimStatesOf([]v1alpha1.CatalogClaim{claim}, b))
	claim.IdentityHash = "2"
	require.Equal(t, []tenancy.ClaimState{tenancy.ClaimPending}, tenancy.ClaimStatesOf([]v1alpha1.CatalogClaim{claim}, b))
	require.True(t, tenancy.BindsExport(b, v1alpha1.APIExportRef{Path: "root:p", Name: "widgets"}))
	require.False(t, tenancy.BindsExport(b, v1alpha1.APIExportRef{Path: "root:q", Name: "widgets"}))
	b.Spec.Reference.Export = nil
	require.False(t, tenancy.BindsExport(b, v1alpha1.APIExportRef{}))
}

func TestClaimStates_areFoundAmongThousands(t *testing.T) {
	t.Parallel()
	const many = 50_000
	b, claims := catalogBinding(), make([]v1alpha1.CatalogClaim, many)
	b.Spec.PermissionClaims = make([]kcpapisv1alpha2.AcceptablePermissionClaim, many)
	for i := range claims {
		claims[i].Resource = strconv.Itoa(i)
		b.Spec.PermissionClaims[many-1-i].Resource = claims[i].Resource
		b.Spec.PermissionClaims[many-1-i].State = kcpapisv1alpha2.ClaimRejected
	}
	require.NotContains(t, tenancy.ClaimStatesOf(claims, b), tenancy.ClaimPending)
}

func TestMemberResources_areSaidByTheProvider(t *testing.T) {
	t.Parallel()
	const org, global, alias, own, gone = "aaaaaaaa-1111-4111-8111-000000000001", "aaaaaaaa-1111-4111-8111-000000000002",
		"aaaaaaaa-1111-4111-8111-000000000003", "aaaaaaaa-1111-4111-8111-000000000004", "aaaaaaaa-1111-4111-8111-000000000005"
	entry := func(name, path string, isGlobal bool, resources ...string) tenancy.ScopedEntry {
		e := &v1alpha1.CatalogEntry{}
		e.Name, e.UID, e.Spec.APIExport.Path, e.Spec.MemberResources = name, types.UID("of "+name), path, resources
		return tenancy.ScopedEntry{Entry: e, Global: isGlobal}
	}
	const provider, workspace = "root:kedge:providers:x", "root:kedge:orgs:" + org + ":" + gone
	limited, free := entry(global, provider, true, "widgets"), entry(global, provider, true)
	wide, narrow := entry(alias, provider, false), entry(alias, provider, false, "gadgets")
	again := entry(alias, provider, false)
	again.Entry.UID = "of another person"
	former := entry(gone, workspace, false)
	former.Entry.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPublisherMayBind, Reason: v1alpha1.ReasonRightEnded}}
	for name, c := range map[string]struct {
		entries   []tenancy.ScopedEntry
		enabledAs string
		want      []string
	}{
		"no entry":                                      {nil, "", nil},
		"a deleted entry":                               {nil, gone, []string{"kept"}},
		"the provider's":                                {[]tenancy.ScopedEntry{limited}, global, []string{"widgets"}},
		"the provider's, bound by hand":                 {[]tenancy.ScopedEntry{limited}, "", []string{"widgets"}},
		"the provider's behind an older alias":          {[]tenancy.ScopedEntry{wide, limited}, global, []string{"widgets"}},
		"the provider's, enabled through an alias":      {[]tenancy.ScopedEntry{wide, limited}, alias, []string{"widgets"}},
		"the provider's without a limit":                {[]tenancy.ScopedEntry{free}, global, nil},
		"an alias that limits what it did not enable":   {[]tenancy.ScopedEntry{narrow, free}, global, nil},
		"an alias that limits what nobody enabled":      {[]tenancy.ScopedEntry{narrow}, "", nil},
		"an alias that widens what a deleted one bound": {[]tenancy.ScopedEntry{wide}, gone, []string{"kept"}},
		"an alias that enabled it":                      {[]tenancy.ScopedEntry{narrow, free}, alias, []string{"gadgets"}},
		"the organization's own API, bound by hand":     {[]tenancy.ScopedEntry{entry(own, workspace, false, "tools")}, "", []string{"tools"}},
		"a later alias that has the same slug":          {[]tenancy.ScopedEntry{again}, alias, []string{"kept"}},
		"an entry of a former admin, bound by hand":     {[]tenancy.ScopedEntry{former, entry(own, workspace, false, "tools")}, "", []string{"tools"}},
		"an entry of a former admin alone":              {[]tenancy.ScopedEntry{former}, "", nil},
		"the organization's own API, enabled":           {[]tenancy.ScopedEntry{entry(own, workspace, false, "tools")}, own, []string{"tools"}},
	} {
		b := &kcpapisv1alpha2.APIBinding{}
		if c.enabledAs != "" {
			b.Annotations = map[string]string{v1alpha1.CatalogEntryAnnotation: fmt.Sprintf(
				`{"uuid":%q,"uid":%q,"slug":"x","displayName":"X","memberResources":["kept"]}`, c.enabledAs, "of "+c.enabledAs,
			)}
		}
		require.Equal(t, c.want, tenancy.MemberResources(org, b, c.entries), name)
	}
}
