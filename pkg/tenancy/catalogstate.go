package tenancy

import (
	"slices"
	"strings"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// CatalogState is the state of a CatalogEntry in a Workspace.
type CatalogState string

// The states of an entry in a Workspace.
const (
	// CatalogDisabled means that the Workspace has no binding of the export, or one that is
	// being deleted.
	CatalogDisabled CatalogState = "Disabled"
	// CatalogEnabling means that kcp is binding the export.
	CatalogEnabling CatalogState = "Enabling"
	// CatalogEnabled means that the API can be used.
	CatalogEnabled CatalogState = "Enabled"
	// CatalogClaimsPending means that the provider asks for more than was answered.
	CatalogClaimsPending CatalogState = "ClaimsPending"
	// CatalogFailing means that kcp cannot bind the export, or cannot keep it bound.
	CatalogFailing CatalogState = "Failing"
)

// ClaimState is the answer to a permission claim in a Workspace.
type ClaimState string

// The states of a permission claim.
const (
	// ClaimAccepted means that the provider may do what it asks for.
	ClaimAccepted ClaimState = "Accepted"
	// ClaimRejected means that the provider may not.
	ClaimRejected ClaimState = "Rejected"
	// ClaimPending means that nobody answered, or that the provider asks for more verbs since.
	ClaimPending ClaimState = "Pending"
)

// CatalogStateOf is the state that an APIBinding gives to an entry, and why it is that one.
// export is what the hub knows of the APIExport, and nil if it does not. b is nil if the
// Workspace has no binding of the export.
func CatalogStateOf(export *v1alpha1.CatalogExport, b *kcpapisv1alpha2.APIBinding) (state CatalogState, message string) {
	if b == nil {
		return CatalogDisabled, ""
	}
	if !b.DeletionTimestamp.IsZero() {
		return CatalogDisabled, "it is being disabled" + because(b, kcpapisv1alpha2.BindingResourceDeleteSuccess)
	}
	if replaced(export, b) {
		return CatalogFailing, "the provider replaced its export by another one of the same name; disable it and enable it again"
	}
	for _, kind := range []conditionsv1alpha1.ConditionType{
		kcpapisv1alpha2.APIExportValid, kcpapisv1alpha2.BindingUpToDate, kcpapisv1alpha2.PermissionClaimsValid,
	} {
		// kcp waits by itself after a condition of severity Info, and a Warning is about claims
		// that differ.
		if c := bindingCondition(b, kind); c != nil && c.Status == corev1.ConditionFalse && c.Severity == conditionsv1alpha1.ConditionSeverityError {
			return CatalogFailing, c.Reason + ": " + c.Message
		}
	}
	if b.Status.Phase != kcpapisv1alpha2.APIBindingPhaseBound {
		return CatalogEnabling, "kcp is binding the API" + because(b, kcpapisv1alpha2.InitialBindingCompleted)
	}
	if export != nil && slices.Contains(ClaimStatesOf(export.Claims, b), ClaimPending) {
		return CatalogClaimsPending, "the provider asks for more than was answered; enable it again with an answer to each claim"
	}
	return CatalogEnabled, ""
}

// ClaimStatesOf are the answers that an APIBinding has to permission claims of its export, one
// for each. Tenants can write thousands of either.
func ClaimStatesOf(claims []v1alpha1.CatalogClaim, b *kcpapisv1alpha2.APIBinding) []ClaimState {
	type name struct{ group, resource, identityHash string }
	answers := make(map[name]*kcpapisv1alpha2.AcceptablePermissionClaim, len(b.Spec.PermissionClaims))
	for i := range b.Spec.PermissionClaims {
		a := &b.Spec.PermissionClaims[i]
		answers[name{a.Group, a.Resource, a.IdentityHash}] = a
	}
	states := make([]ClaimState, len(claims))
	for i := range claims {
		c := &claims[i]
		switch answer := answers[name{c.Group, c.Resource, c.IdentityHash}]; {
		case answer == nil:
			states[i] = ClaimPending
		case answer.State == kcpapisv1alpha2.ClaimRejected:
			states[i] = ClaimRejected
		case answer.State != kcpapisv1alpha2.ClaimAccepted || !allVerbs(answer.Verbs, c.Verbs):
			states[i] = ClaimPending
		default:
			states[i] = ClaimAccepted
		}
	}
	return states
}

// BindsExport reports whether a binding is of an export.
func BindsExport(b *kcpapisv1alpha2.APIBinding, ref v1alpha1.APIExportRef) bool {
	e := b.Spec.Reference.Export
	return e != nil && e.Path == ref.Path && e.Name == ref.Name
}

// MemberResources are the resources of the API of a binding that members may write, by the
// entries of its export that the Organization sees, the first of which is the oldest. None means
// all. A limit of a Global entry comes first, then the entry that the binding names, then one of
// an export in a Workspace of the Organization, at best of a publisher who may still bind it. Somebody who published an export of a provider is
// not the provider: that entry limits what is enabled through it, and nothing else. The limit of
// an entry that was deleted is in the binding, also if another entry has its slug, and so its name, meanwhile.
func MemberResources(org string, b *kcpapisv1alpha2.APIBinding, entries []ScopedEntry) []string {
	was, _ := EnabledEntryOf(b)
	ofOrg := func(p ScopedEntry) bool { return !p.Global && inWorkspaceOf(org, p.Entry.Spec.APIExport.Path) }
	for _, speaks := range []func(ScopedEntry) bool{
		func(p ScopedEntry) bool { return p.Global && len(p.Entry.Spec.MemberResources) > 0 },
		func(p ScopedEntry) bool { return p.Entry.Name == was.UUID && (was.UID == "" || p.Entry.UID == was.UID) },
		func(p ScopedEntry) bool { return ofOrg(p) && !RightEnded(p.Entry) },
		ofOrg,
	} {
		if i := slices.IndexFunc(entries, speaks); i >= 0 {
			return entries[i].Entry.Spec.MemberResources
		}
	}
	return was.MemberResources
}

// inWorkspaceOf reports whether the path of an entry's export is that of a Workspace of the
// Organization, and not that of a provider.
func inWorkspaceOf(org, path string) bool {
	_, workspace, ok := strings.Cut(path, ":"+org+":")
	return ok && IsUUID(workspace)
}

// replaced reports whether a binding has resources of an export of another identity.
func replaced(export *v1alpha1.CatalogExport, b *kcpapisv1alpha2.APIBinding) bool {
	return export != nil && export.IdentityHash != "" && slices.ContainsFunc(b.Status.BoundResources, func(r kcpapisv1alpha2.BoundAPIResource) bool {
		return r.Schema.IdentityHash != "" && r.Schema.IdentityHash != export.IdentityHash
	})
}

func allVerbs(accepted, asked []string) bool {
	return slices.Contains(accepted, "*") || !slices.ContainsFunc(asked, func(verb string) bool { return !slices.Contains(accepted, verb) })
}

func bindingCondition(b *kcpapisv1alpha2.APIBinding, kind conditionsv1alpha1.ConditionType) *conditionsv1alpha1.Condition {
	for i := range b.Status.Conditions {
		if b.Status.Conditions[i].Type == kind {
			return &b.Status.Conditions[i]
		}
	}
	return nil
}

// because is what kcp says about a condition that is not True, after a colon.
func because(b *kcpapisv1alpha2.APIBinding, kind conditionsv1alpha1.ConditionType) string {
	if c := bindingCondition(b, kind); c != nil && c.Status != corev1.ConditionTrue && c.Message != "" {
		return ": " + c.Message
	}
	return ""
}
