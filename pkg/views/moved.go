package views

import (
	"maps"
	"slices"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Fields is a set of the parts of an object that a change moved.
type Fields uint32

// The parts of objects. A kind has those that its comments name.
const (
	// Added is alone in the set: the object is new. With Removed it means that the
	// object was deleted and made again under the same name.
	Added Fields = 1 << iota
	// Removed is alone in the set, or with Added.
	Removed
	// Terminating is metadata.deletionTimestamp.
	Terminating
	// Metadata is labels, finalizers, and the annotations without a field of their own.
	Metadata
	// Spec is every field of the spec, or of the rules of a ClusterRole and of a binding,
	// that has no field of its own.
	Spec
	// Status is what the hub writes as the status of its own kinds and, in an annotation,
	// of Workspaces; for kinds of others, it is their status.
	Status
	// DeletionRequest is the mark of a soft deletion of a User, an Organization or a
	// Workspace.
	DeletionRequest
	// DisplayName is that of a User, an Organization, a Workspace, a Bot or a CatalogEntry.
	DisplayName
	// Claims is User.spec.orgClaims and Organization.spec.workspaceClaims.
	Claims
	// Quota is User.spec.orgQuota and Organization.spec.workspaceQuota.
	Quota
	// Identity is issuer, subject and rbacIdentity of a User.
	Identity
	// Registration is User.spec.registration.
	Registration
	// DefaultAccess is Organization.spec.defaultAccess.
	DefaultAccess
	// MembershipChanges is Organization.spec.membershipChanges and spec.botChanges.
	MembershipChanges
	// Role is spec.role of a Membership, or spec.role and status.authorizedRole of a Bot.
	Role
	// Roles is Membership.spec.roles.
	Roles
	// Sudo is Membership.spec.sudo.
	Sudo
	// LogicalCluster is spec.cluster of a Workspace.
	LogicalCluster
	// Phase is kcp's status.phase of a Workspace or of a logical cluster.
	Phase
	// KCPStatus is the rest of kcp's status of a Workspace.
	KCPStatus
	// CustomResources is the annotation in which the hub keeps the definitions of a
	// Workspace.
	CustomResources
	// Tokens is Bot.spec.tokens and Bot.spec.generation.
	Tokens
	// Account is the ServiceAccount in the status of a Bot.
	Account
	// SignOut is User.spec.tokensValidAfter.
	SignOut
	// Ended is Session.spec.endedAt.
	Ended
	// Export is CatalogEntry.status.export.
	Export
	// MemberResources is CatalogEntry.spec.memberResources.
	MemberResources
)

// among returns the field where moved is set.
func among(field Fields, moved bool) Fields {
	if moved {
		return field
	}
	return 0
}

// metadataMoved compares the metadata of two versions of an object. own names the
// annotations that have a field of their own.
func metadataMoved(old, new metav1.Object, own ...string) Fields {
	return among(Terminating, old.GetDeletionTimestamp().IsZero() != new.GetDeletionTimestamp().IsZero()) |
		among(Metadata, !maps.Equal(old.GetLabels(), new.GetLabels()) ||
			!slices.Equal(old.GetFinalizers(), new.GetFinalizers()) ||
			!sameBut(old.GetAnnotations(), new.GetAnnotations(), own))
}

// sameBut compares annotations, those that own names aside.
func sameBut(old, new map[string]string, own []string) bool {
	if len(own) == 0 {
		return maps.Equal(old, new)
	}
	rest := func(all map[string]string) map[string]string {
		all = maps.Clone(all)
		maps.DeleteFunc(all, func(name, _ string) bool { return slices.Contains(own, name) })
		return all
	}
	return maps.Equal(rest(old), rest(new))
}

func differ(a, b any) bool { return !equality.Semantic.DeepEqual(a, b) }

func userMoved(old, new *v1alpha1.User) Fields {
	a, b := old.Spec, new.Spec
	return metadataMoved(old, new) |
		among(DisplayName, a.DisplayName != b.DisplayName) |
		among(Identity, a.Issuer != b.Issuer || a.Subject != b.Subject || a.RBACIdentity != b.RBACIdentity) |
		among(Registration, a.Registration != b.Registration) |
		among(SignOut, !a.TokensValidAfter.Equal(b.TokensValidAfter)) |
		among(Quota, a.OrgQuota != b.OrgQuota) |
		among(Claims, differ(a.OrgClaims, b.OrgClaims)) |
		among(Spec, a.Email != b.Email || a.DefaultCluster != b.DefaultCluster) |
		among(DeletionRequest, !old.Status.DeletionRequestedAt.Equal(new.Status.DeletionRequestedAt)) |
		among(Status, old.Status.PersonalOrg != new.Status.PersonalOrg || old.Status.DefaultWorkspace != new.Status.DefaultWorkspace ||
			differ(old.Status.CommonStatus, new.Status.CommonStatus))
}

func organizationMoved(old, new *v1alpha1.Organization) Fields {
	a, b := old.Spec, new.Spec
	return metadataMoved(old, new) |
		among(DisplayName, a.DisplayName != b.DisplayName) |
		among(DefaultAccess, a.DefaultAccess != b.DefaultAccess) |
		among(MembershipChanges, differ(a.MembershipChanges, b.MembershipChanges) || differ(a.BotChanges, b.BotChanges)) |
		among(Quota, a.WorkspaceQuota != b.WorkspaceQuota) |
		among(Claims, differ(a.WorkspaceClaims, b.WorkspaceClaims)) |
		among(Spec, a.Personal != b.Personal || a.WorkspaceCreation != b.WorkspaceCreation ||
			a.CatalogEntryCreation != b.CatalogEntryCreation || differ(a.Billing, b.Billing)) |
		among(DeletionRequest, !old.Status.DeletionRequestedAt.Equal(new.Status.DeletionRequestedAt)) |
		among(Status, old.Status.WorkspacePath != new.Status.WorkspacePath || differ(old.Status.CommonStatus, new.Status.CommonStatus))
}

func membershipMoved(old, new *v1alpha1.Membership) Fields {
	a, b := old.Spec, new.Spec
	return metadataMoved(old, new) |
		among(Role, a.Role != b.Role) |
		among(Sudo, a.Sudo != b.Sudo) |
		among(Roles, differ(a.Roles, b.Roles)) |
		among(Spec, a.UserRef != b.UserRef || a.Scope != b.Scope || differ(a.WorkspaceRef, b.WorkspaceRef)) |
		among(Status, differ(old.Status, new.Status))
}

func indexMoved(old, new *v1alpha1.UserMembershipIndex) Fields {
	return metadataMoved(old, new) | among(Spec, differ(old.Spec, new.Spec))
}

func sessionMoved(old, new *v1alpha1.Session) Fields {
	spec := new.Spec
	spec.EndedAt = old.Spec.EndedAt
	return metadataMoved(old, new) |
		among(Ended, !old.Spec.EndedAt.Equal(new.Spec.EndedAt)) |
		among(Spec, differ(old.Spec, spec))
}

func catalogEntryMoved(old, new *v1alpha1.CatalogEntry) Fields {
	spec, status := new.Spec, new.Status
	spec.DisplayName, spec.MemberResources, status.Export = old.Spec.DisplayName, old.Spec.MemberResources, old.Status.Export
	return metadataMoved(old, new) |
		among(DisplayName, old.Spec.DisplayName != new.Spec.DisplayName) |
		among(MemberResources, differ(old.Spec.MemberResources, new.Spec.MemberResources)) |
		among(Spec, differ(old.Spec, spec)) |
		among(Export, differ(old.Status.Export, new.Status.Export)) |
		among(Status, differ(old.Status, status))
}

func workspaceMoved(old, new *kcptenancyv1alpha1.Workspace) Fields {
	note := func(field Fields, name string) Fields {
		return among(field, old.Annotations[name] != new.Annotations[name])
	}
	spec, status := new.Spec, new.Status
	spec.Cluster, status.Phase = old.Spec.Cluster, old.Status.Phase
	return metadataMoved(old, new, v1alpha1.DisplayNameAnnotation, v1alpha1.DeletionRequestedAtAnnotation, v1alpha1.StatusAnnotation, tenancy.CustomResourcesAnnotation, v1alpha1.BotClaimsAnnotation) |
		note(DisplayName, v1alpha1.DisplayNameAnnotation) |
		note(DeletionRequest, v1alpha1.DeletionRequestedAtAnnotation) |
		note(Status, v1alpha1.StatusAnnotation) |
		note(CustomResources, tenancy.CustomResourcesAnnotation) |
		among(LogicalCluster, old.Spec.Cluster != new.Spec.Cluster) |
		among(Phase, old.Status.Phase != new.Status.Phase) |
		among(Spec, differ(old.Spec, spec)) |
		among(KCPStatus, differ(old.Status, status))
}

func logicalClusterMoved(old, new *kcpcorev1alpha1.LogicalCluster) Fields {
	status := new.Status
	status.Phase = old.Status.Phase
	return metadataMoved(old, new) |
		among(Phase, old.Status.Phase != new.Status.Phase) |
		among(Spec, differ(old.Spec, new.Spec)) |
		among(Status, differ(old.Status, status))
}

func apiBindingMoved(old, new *kcpapisv1alpha2.APIBinding) Fields {
	return metadataMoved(old, new) |
		among(Spec, differ(old.Spec, new.Spec)) |
		among(Status, differ(old.Status, new.Status))
}

func namespaceMoved(old, new *corev1.Namespace) Fields {
	return metadataMoved(old, new) |
		among(Spec, differ(old.Spec, new.Spec)) |
		among(Status, differ(old.Status, new.Status))
}

func clusterRoleMoved(old, new *rbacv1.ClusterRole) Fields {
	return metadataMoved(old, new) |
		among(Spec, differ(old.Rules, new.Rules) || differ(old.AggregationRule, new.AggregationRule))
}

func clusterRoleBindingMoved(old, new *rbacv1.ClusterRoleBinding) Fields {
	return metadataMoved(old, new) |
		among(Spec, old.RoleRef != new.RoleRef || differ(old.Subjects, new.Subjects))
}

func roleMoved(old, new *rbacv1.Role) Fields {
	return metadataMoved(old, new) | among(Spec, differ(old.Rules, new.Rules))
}

func roleBindingMoved(old, new *rbacv1.RoleBinding) Fields {
	return metadataMoved(old, new) |
		among(Spec, old.RoleRef != new.RoleRef || differ(old.Subjects, new.Subjects))
}

func policyMoved(old, new *admissionv1.ValidatingAdmissionPolicy) Fields {
	return metadataMoved(old, new) | among(Spec, differ(old.Spec, new.Spec))
}

func policyBindingMoved(old, new *admissionv1.ValidatingAdmissionPolicyBinding) Fields {
	return metadataMoved(old, new) | among(Spec, differ(old.Spec, new.Spec))
}

func botMoved(old, new *v1alpha1.Bot) Fields {
	a, b := old.Spec, new.Spec
	return metadataMoved(old, new) |
		among(DisplayName, a.DisplayName != b.DisplayName) |
		among(Role, a.Role != b.Role || old.Status.AuthorizedRole != new.Status.AuthorizedRole) |
		among(Tokens, a.Generation != b.Generation || differ(a.Tokens, b.Tokens)) |
		among(Spec, a.WorkspaceRef != b.WorkspaceRef) |
		among(Account, old.Status.ServiceAccountUID != new.Status.ServiceAccountUID ||
			old.Status.ServiceAccountGeneration != new.Status.ServiceAccountGeneration) |
		among(Status, differ(old.Status.CommonStatus, new.Status.CommonStatus) || !old.Status.LastTokenIssuedAt.Equal(new.Status.LastTokenIssuedAt))
}

func serviceAccountMoved(old, new *corev1.ServiceAccount) Fields { return metadataMoved(old, new) }

func secretMoved(old, new *corev1.Secret) Fields { return metadataMoved(old, new) }
