package tenancy

import (
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// catalogGrantPrefix begins the names of the ClusterRole and the ClusterRoleBinding that let
// people bind the APIExport of a CatalogEntry. The logical cluster and the name of the entry
// follow.
const catalogGrantPrefix = "kedge:catalog:"

// CatalogGrantOf returns the right of the audience of an entry to bind its APIExport, as kcp asks for
// it in the workspace of the export when an APIBinding is created: a role and a binding, or nothing for
// an empty audience. Each entry has a grant of its own, also if several entries name one export.
func CatalogGrantOf(e *v1alpha1.CatalogEntry, audience []rbacv1.Subject) []RBAC {
	if len(audience) == 0 {
		return nil
	}
	name := CatalogGrantName(string(logicalcluster.From(e)), e.Name)
	return []RBAC{
		&rbacv1.ClusterRole{ObjectMeta: managed(name), Rules: bindRules(e.Spec.APIExport.Name)},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: managed(name), Subjects: audience,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		},
	}
}

// CatalogGrantName is the name of the role and the binding for an entry. cluster is the logical
// cluster of the entry.
func CatalogGrantName(cluster, entry string) string {
	return catalogGrantPrefix + cluster + ":" + entry
}

// ParseCatalogGrantName returns the entry that a role or a binding of that name is for; ok is
// false for the name of another object.
func ParseCatalogGrantName(name string) (cluster, entry string, ok bool) {
	rest, ok := strings.CutPrefix(name, catalogGrantPrefix)
	if !ok {
		return "", "", false
	}
	cluster, entry, ok = strings.Cut(rest, ":")
	return cluster, entry, ok && cluster != "" && entry != ""
}

// GlobalAudience has the subjects who may bind the export of a Global entry: everybody who is
// authenticated.
func GlobalAudience() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}}
}

// OrgAudience returns the subjects who may bind the export of an entry of an Organization:
// those who may enable it in a Workspace, which are the admins of the Organization and of its
// Workspaces, people and Bots. Nobody may while the Organization is soft-deleted. The subjects
// are sorted, so that equal audiences compare equal.
func OrgAudience(org Org, workspaces []Workspace, memberships []*v1alpha1.Membership, bots []*v1alpha1.Bot, user func(name string) (*v1alpha1.User, bool)) []rbacv1.Subject {
	if org.Organization == nil || org.Deleted() {
		return nil
	}
	clusters := map[string]string{}
	for _, w := range workspaces {
		if !w.Deleted() {
			clusters[w.UUID] = w.ClusterID
		}
	}
	names := map[string]struct{}{}
	for _, m := range memberships {
		_, inWorkspace := clusters[WorkspaceUUID(m)]
		if !m.DeletionTimestamp.IsZero() || !m.Spec.Role.AtLeast(v1alpha1.RoleAdmin) || m.Spec.Scope == v1alpha1.ScopeWorkspace && !inWorkspace {
			continue
		}
		if u, ok := user(m.Spec.UserRef.Name); ok && Active(u) && u.Spec.RBACIdentity != "" {
			names[u.Spec.RBACIdentity] = struct{}{}
		}
	}
	for _, b := range bots {
		if cluster := clusters[b.Spec.WorkspaceRef.Name]; cluster != "" && b.DeletionTimestamp.IsZero() && b.Spec.Role.AtLeast(v1alpha1.RoleAdmin) {
			names[botUsernameElsewhere(cluster, b.Name)] = struct{}{}
		}
	}
	audience := make([]rbacv1.Subject, 0, len(names))
	for name := range names {
		audience = append(audience, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
	}
	slices.SortFunc(audience, func(a, b rbacv1.Subject) int { return strings.Compare(a.Name, b.Name) })
	return audience
}

// The subjects of a binding and what each of them takes beside its name, in bytes of JSON. etcd
// stores objects up to 1.5 MiB.
const (
	maxAudienceSize = 1 << 20
	subjectSize     = 64
)

// FitAudience returns the subjects that one binding can have, people before Bots, and the number
// of those that it has no room for.
func FitAudience(audience []rbacv1.Subject) (fits []rbacv1.Subject, left int) {
	size := 0
	for _, s := range audience {
		size += len(s.Name) + subjectSize
	}
	if size <= maxAudienceSize {
		return audience, 0
	}
	size = 0
	for _, bots := range []bool{false, true} {
		for _, s := range audience {
			if strings.HasPrefix(s.Name, botElsewherePrefix) != bots {
				continue
			}
			if size += len(s.Name) + subjectSize; size > maxAudienceSize {
				left++
				continue
			}
			fits = append(fits, s)
		}
	}
	return fits, left
}

// botElsewherePrefix begins the usernames of ServiceAccounts in other logical clusters.
const botElsewherePrefix = "system:kcp:serviceaccount:"

// botUsernameElsewhere is the username that kcp gives a Bot in logical clusters other than its
// own.
func botUsernameElsewhere(cluster, name string) string {
	return botElsewherePrefix + cluster + ":" + DefaultNamespace + ":" + name
}
