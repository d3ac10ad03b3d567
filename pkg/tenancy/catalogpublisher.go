package tenancy

import (
	rbacv1 "k8s.io/api/rbac/v1"
	rbacvalidation "k8s.io/component-helpers/auth/rbac/validation"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// PublishedBy is spec.publishedBy of an entry that a person publishes in an Organization. The
// Global entries are the platform's.
func PublishedBy(org string, u *v1alpha1.User) *v1alpha1.CatalogPublisher {
	if org == "" {
		return &v1alpha1.CatalogPublisher{Platform: true}
	}
	return &v1alpha1.CatalogPublisher{User: &v1alpha1.CatalogPublisherUser{Name: u.Name, UID: u.UID}}
}

// IsPublisher reports whether the User of that name published an entry.
func IsPublisher(e *v1alpha1.CatalogEntry, user string) bool {
	by := e.Spec.PublishedBy
	return by != nil && by.User != nil && by.User.Name == user
}

// RightEnded reports whether the controller found that the publisher of an entry may not bind its
// export. The entry is then hidden from those who do not have it enabled. An entry that the
// controller has not judged yet is not hidden; nobody has a grant for it.
func RightEnded(e *v1alpha1.CatalogEntry) bool {
	for i := range e.Status.Conditions {
		if c := &e.Status.Conditions[i]; c.Type == v1alpha1.ConditionPublisherMayBind {
			return c.Reason == v1alpha1.ReasonRightEnded
		}
	}
	return false
}

// Publisher is what decides whether the publisher of an entry of an Organization still stands for
// it.
type Publisher struct {
	Org   Org
	Entry *v1alpha1.CatalogEntry
	// Workspace is the UUID of the Workspace that has the export; empty for one of a provider.
	Workspace string
	// User is the User that the entry names, or nil.
	User *v1alpha1.User
	// Rows are those of the index of the User.
	Rows []v1alpha1.MembershipIndexEntry
	// Granted is true if the right was there at the last pass. An entry without a grant is judged
	// as a request to publish it would be (O-7).
	Granted bool
}

// Problem says why the publisher does not stand for the entry any more; it is empty if they do. For
// the export of a provider, kcp's RBAC must let them bind it, too.
func (p Publisher) Problem() string {
	by := p.Entry.Spec.PublishedBy
	switch {
	case by == nil:
		return "the entry does not say who published it (spec.publishedBy); delete it and publish it again"
	case by.User == nil:
		return ""
	case p.User == nil || p.User.UID != by.User.UID || !Active(p.User):
		return "the account of its publisher, " + by.User.Name + ", is not active any more; another person can delete the entry and publish it again"
	}
	role := OrgRole(p.Rows, p.Org.UUID())
	switch {
	case !role.AtLeast(v1alpha1.RoleMember):
		return "its publisher, " + by.User.Name + ", is not a member of the organization any more; another person can delete the entry and publish it again"
	case !p.Granted && !role.AtLeast(p.Org.Spec.CatalogEntryCreation.Least()):
		return "its publisher, " + by.User.Name + ", is not an admin, and in this organization only admins may publish (catalogEntryCreation: admin); an admin can delete the entry and publish it again"
	case p.Workspace != "" && !WorkspaceRole(p.Rows, p.Org.UUID(), p.Workspace, p.Org.Spec.DefaultAccess).AtLeast(v1alpha1.RoleAdmin):
		return "its publisher, " + by.User.Name + ", is not an admin of the workspace that has the export any more; one of its admins can delete the entry and publish it again"
	}
	return ""
}

// roleAll is the ClusterRole with all rights that kcp defines for every workspace, without an
// object in it.
const roleAll = "cluster-admin"

// BindsPerson reports whether a ClusterRoleBinding gives its role to a person, by name or because
// they are authenticated. The groups of a person are in their credential only. A right that comes
// through one of them is not seen, because nobody tells the hub when it ends.
func BindsPerson(b *rbacv1.ClusterRoleBinding, identity string) bool {
	for _, s := range b.Subjects {
		if s.APIGroup == rbacv1.GroupName &&
			(s.Kind == rbacv1.UserKind && s.Name == identity || s.Kind == rbacv1.GroupKind && s.Name == "system:authenticated") {
			return true
		}
	}
	return false
}

// PermitsBind reports whether a ClusterRole permits to bind an APIExport. role is nil if its
// workspace has none of that name.
func PermitsBind(name string, role *rbacv1.ClusterRole, export string) bool {
	if role == nil {
		return name == roleAll
	}
	covered, _ := rbacvalidation.Covers(role.Rules, bindRules(export))
	return covered
}

// bindRules are the rules that permit to bind an APIExport.
func bindRules(export string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"bind"}, APIGroups: []string{groupKCPAPIs}, Resources: []string{"apiexports"}, ResourceNames: []string{export}}}
}
