package views

import (
	"fmt"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// watchTenancy adds the rows of the kinds that the export of tenancy serves, and of the logical
// clusters.
func (v *Views) watchTenancy(c Config) {
	t := newTransform(v.topology, c.Users)
	v.Users = newKind(v, c.Clients, "users", row[*v1alpha1.User]{
		belongs: in(c.Users), transform: t.user, indexes: v.people.indexes(), change: v.people.change, refs: userRefs,
	})
	v.Organizations = newKind(v, c.Clients, "organizations", row[*v1alpha1.Organization]{
		belongs: in(c.Orgs), indexes: []indexed[*v1alpha1.Organization]{v.creators, v.mappings}, change: v.topology.organization, refs: v.organizationRefs,
	})
	v.Memberships = newKind(v, c.Clients, "memberships", row[*v1alpha1.Membership]{
		transform: t.membership, encode: encodeMembership, change: v.memberships.membership, refs: v.membershipRefs,
	})
	v.Indexes = newKind(v, c.Clients, "indexes", row[*v1alpha1.UserMembershipIndex]{
		belongs: in(c.Users), transform: t.index, change: v.memberships.index, refs: indexRefs,
	})
	v.Sessions = newKind(v, c.Clients, "sessions", row[*v1alpha1.Session]{
		belongs: in(c.Users), transform: t.session, indexes: v.sessions.indexes(), refs: sessionRefs,
	})
	v.CatalogEntries = newKind(v, c.Clients, "catalogentries", row[*v1alpha1.CatalogEntry]{
		transform: t.catalogEntry, indexes: v.catalog.indexes(), refs: v.catalogRefs,
	})
	v.Bots = newKind(v, c.Clients, "bots", row[*v1alpha1.Bot]{indexes: v.bots.indexes(), refs: v.botRefs})
	v.Invitations = newKind(v, c.Clients, "invitations", row[*v1alpha1.Invitation]{indexes: v.invitations.indexes(), refs: v.invitationRefs})
	v.AccessRequests = newKind(v, c.Clients, "accessrequests", row[*v1alpha1.AccessRequest]{
		refs: func(cluster string, _ *v1alpha1.AccessRequest) []tenancy.Ref { return v.clusterRefs(cluster) },
	})
	v.ChildWorkspaces = newKind(v, c.Clients, "workspaces", row[*kcptenancyv1alpha1.Workspace]{
		belongs: func(cluster string) bool { return cluster != c.Orgs }, hides: spare, change: v.workspace, refs: v.workspaceRefs,
	})
	v.OrgWorkspaces = part(v, v.ChildWorkspaces.Informer, row[*kcptenancyv1alpha1.Workspace]{
		belongs: in(c.Orgs), hides: spare, change: v.workspace, refs: v.workspaceRefs,
	})
	v.Spares = part(v, v.ChildWorkspaces.Informer, row[*kcptenancyv1alpha1.Workspace]{
		hides: func(ws *kcptenancyv1alpha1.Workspace) bool { return !spare(ws) }, change: v.spares.change,
	})
	v.OrgBindings = newKind(v, c.Clients, "orgbindings", row[*kcpapisv1alpha2.APIBinding]{transform: bindingOnly(c.OrgBindings)})
	v.Tenancy = informer.NewEndpoints(c.Clients, c.Providers, tenancy.ExportTenancy, c.Hub,
		v.Users, v.Organizations, v.Memberships, v.Indexes, v.Sessions, v.ChildWorkspaces, v.OrgBindings, v.Bots, v.CatalogEntries, v.Invitations, v.AccessRequests)

	v.Initializing = newKind(v, c.Clients, "initializing", row[*kcpcorev1alpha1.LogicalCluster]{})
	v.Initializers = informer.NewInitializers(c.Clients, c.Root, tenancy.TypeOrganization, v.Initializing)
	v.Inactive = newKind(v, c.Admin, "inactive", row[*kcpcorev1alpha1.LogicalCluster]{selector: fmt.Sprintf("%s in (%s,%s)",
		kcptenancyv1alpha1.WorkspacePhaseLabel, kcpcorev1alpha1.LogicalClusterPhaseUnavailable, kcpcorev1alpha1.LogicalClusterPhaseInactive)})
}

// watchAccess adds the rows of the kinds in child Workspaces, which the export of access serves.
func (v *Views) watchAccess(c Config) {
	managed := v1alpha1.ManagedByLabel + "=" + v1alpha1.ManagedByHub
	ofBots := managed + "," + v1alpha1.BotAccountLabel + "=true"
	v.Bindings = newKind(v, c.Clients, "apibindings", row[*kcpapisv1alpha2.APIBinding]{
		transform: compactBinding, indexes: []indexed[*kcpapisv1alpha2.APIBinding]{v.enabled},
	})
	v.Namespaces = newKind(v, c.Clients, "namespaces", row[*corev1.Namespace]{transform: compactNamespace})
	v.ClusterRoles = newKind(v, c.Clients, "clusterroles", row[*rbacv1.ClusterRole]{transform: compactClusterRole})
	v.Roles = newKind(v, c.Clients, "roles", row[*rbacv1.Role]{transform: compactRole})
	v.ClusterRoleBindings = newKind(v, c.Clients, "clusterrolebindings", row[*rbacv1.ClusterRoleBinding]{selector: managed})
	v.RoleBindings = newKind(v, c.Clients, "rolebindings", row[*rbacv1.RoleBinding]{selector: managed})
	v.Policies = newKind(v, c.Clients, "policies", row[*admissionv1.ValidatingAdmissionPolicy]{selector: managed, transform: policyHashOnly})
	v.PolicyBindings = newKind(v, c.Clients, "policybindings", row[*admissionv1.ValidatingAdmissionPolicyBinding]{
		selector: managed, transform: policyBindingHashOnly,
	})
	v.ServiceAccounts = newKind(v, c.Clients, "serviceaccounts", row[*corev1.ServiceAccount]{selector: ofBots, transform: compactServiceAccount})
	v.BotSecrets = newKind(v, c.Clients, "secrets", row[*corev1.Secret]{selector: ofBots, transform: compactSecret})
	v.Access = informer.NewEndpoints(c.Clients, c.Providers, tenancy.ExportAccess, c.Hub, v.Bindings, v.Namespaces, v.ClusterRoles, v.Roles,
		v.ClusterRoleBindings, v.RoleBindings, v.Policies, v.PolicyBindings, v.ServiceAccounts, v.BotSecrets)
}
