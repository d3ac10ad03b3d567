package wire

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Conditions converts conditions. The result is never nil.
func Conditions(held []metav1.Condition) []rest.Condition {
	answered := make([]rest.Condition, len(held))
	for i := range held {
		c := &held[i]
		answered[i] = rest.Condition{
			Type: c.Type, Status: c.Status, ObservedGeneration: c.ObservedGeneration,
			LastTransitionTime: c.LastTransitionTime.UTC().Format(time.RFC3339),
			Reason:             c.Reason, Message: c.Message,
		}
	}
	return answered
}

// Billing converts billing. It is nil if it has neither a cost center nor labels.
func Billing(b *v1alpha1.Billing) *rest.Billing {
	if b == nil || b.CostCenter == "" && len(b.Labels) == 0 {
		return nil
	}
	labels := make(map[string]string, len(b.Labels))
	for key, value := range b.Labels {
		labels[key] = string(value)
	}
	return &rest.Billing{CostCenter: b.CostCenter, Labels: labels}
}

// Row converts a row of an index.
func Row(e v1alpha1.MembershipIndexEntry, grace time.Duration) rest.MembershipRow {
	return rest.MembershipRow{
		OrgUUID: e.OrgUUID, OrgDisplayName: e.OrgDisplayName, OrgCreatedAt: e.OrgCreatedAt, OrgFirstAdmin: e.OrgFirstAdmin,
		WorkspaceUUID: e.WorkspaceUUID, WorkspaceDisplayName: e.WorkspaceDisplayName, ClusterID: e.ClusterID,
		Role: rest.Role(e.Role), Manager: e.Manager, Personal: e.Personal, SoftDeletedAt: e.SoftDeletedAt, PurgeAt: tenancy.PurgeAt(e.SoftDeletedAt, grace),
	}
}

// Member converts a Membership, as tenancy.Effective returns it, and its User, who is nil if there is none.
func Member(m *v1alpha1.Membership, u *v1alpha1.User) rest.Member {
	v := rest.Member{
		User: m.Spec.UserRef.Name, DisplayName: m.Spec.UserRef.Name, Role: rest.Role(m.Spec.Role), Scope: string(m.Spec.Scope),
		Sudo: m.Spec.Sudo, Manager: m.Spec.Manager, Since: m.CreationTimestamp,
		Phase: string(tenancy.PhaseOf(m.Status.CommonStatus)), Conditions: Conditions(m.Status.Conditions), Active: tenancy.Active(u),
	}
	for _, role := range m.Spec.Roles {
		v.Roles = append(v.Roles, rest.RoleRef(role))
	}
	if u != nil {
		v.DisplayName = u.Spec.DisplayName
	}
	// That of a group moves on with each login, so it is shown among the sources alone.
	if !tenancy.ByGroup(m) {
		v.ExpiresAt = m.Spec.ExpiresAt
	}
	v.Sources = []rest.MemberSource{}
	if hand := tenancy.HandOf(m); tenancy.ByHand(m) {
		v.Sources = append(v.Sources, rest.MemberSource{
			Source: tenancy.SourceHand, Role: rest.Role(hand.Role), Manager: v.Manager, Sudo: hand.Sudo, ExpiresAt: hand.ExpiresAt,
		})
	}
	for _, x := range tenancy.ExtrasOf(m) {
		v.Sources = append(v.Sources, rest.MemberSource{Source: x.Source, Role: rest.Role(x.Role), Sudo: x.Sudo, ExpiresAt: x.ExpiresAt})
	}
	return v
}

// Entry converts an entry of an Organization, or a Global one if org is nil.
func Entry(e *v1alpha1.CatalogEntry, org *tenancy.Org) rest.Entry {
	v := rest.Entry{
		UUID: e.Name, Slug: e.Spec.Slug, DisplayName: e.Spec.DisplayName, Description: e.Spec.Description, Version: e.Spec.Version,
		Scope: string(v1alpha1.CatalogGlobal), APIExport: rest.CatalogExportRef(e.Spec.APIExport),
		Backend: (*rest.CatalogBackend)(e.Spec.Backend), UI: (*rest.CatalogUI)(e.Spec.UI), MemberResources: e.Spec.MemberResources,
		CreatedAt: e.CreationTimestamp, CreatedBy: e.Annotations[v1alpha1.CreatedByAnnotation],
		Claims: []rest.ProviderClaim{}, Resources: []rest.GroupResource{},
		Phase: string(tenancy.PhaseOf(e.Status.CommonStatus)), Conditions: Conditions(e.Status.Conditions),
	}
	if org != nil {
		v.Scope, v.Org = string(tenancy.CatalogScopeOf(*org)), org.UUID()
	}
	if e.Status.Export == nil {
		return v
	}
	for _, c := range e.Status.Export.Claims {
		verbs := c.Verbs
		if verbs == nil {
			verbs = []string{}
		}
		v.Claims = append(v.Claims, rest.ProviderClaim{GroupResource: rest.GroupResource{Group: c.Group, Resource: c.Resource}, Verbs: verbs, Dangerous: c.Dangerous})
	}
	for _, r := range e.Status.Export.Resources {
		v.Resources = append(v.Resources, rest.GroupResource(r))
	}
	return v
}
