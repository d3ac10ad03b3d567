package kcp

import (
	"context"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/gentype"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// at returns the client of a kind at base, which is ClusterURL's or that of a virtual workspace. The
// namespace is empty for a kind that has none.
func at[T Object](c *Clients, base, namespace string) *Client[T] {
	resource := ResourceOf[T]()
	return gentype.NewClient[T](resource.Resource, c.REST(base, resource.GroupVersion()), c.params, namespace, Empty[T])
}

// in is at for a logical cluster.
func in[T Object](c *Clients, cluster string) *Client[T] { return at[T](c, c.ClusterURL(cluster), "") }

// Users of the cluster.
func (c *Clients) Users(cluster string) *Client[*v1alpha1.User] {
	return in[*v1alpha1.User](c, cluster)
}

// Organizations of the cluster.
func (c *Clients) Organizations(cluster string) *Client[*v1alpha1.Organization] {
	return in[*v1alpha1.Organization](c, cluster)
}

// Sessions of the cluster.
func (c *Clients) Sessions(cluster string) *Client[*v1alpha1.Session] {
	return in[*v1alpha1.Session](c, cluster)
}

// Memberships of the cluster.
func (c *Clients) Memberships(cluster string) *Client[*v1alpha1.Membership] {
	return in[*v1alpha1.Membership](c, cluster)
}

// Indexes are the UserMembershipIndexes of the cluster.
func (c *Clients) Indexes(cluster string) *Client[*v1alpha1.UserMembershipIndex] {
	return in[*v1alpha1.UserMembershipIndex](c, cluster)
}

// Workspaces are kcp's, of the cluster.
func (c *Clients) Workspaces(cluster string) *Client[*kcptenancyv1alpha1.Workspace] {
	return in[*kcptenancyv1alpha1.Workspace](c, cluster)
}

// WorkspaceTypes of the cluster.
func (c *Clients) WorkspaceTypes(cluster string) *Client[*kcptenancyv1alpha1.WorkspaceType] {
	return in[*kcptenancyv1alpha1.WorkspaceType](c, cluster)
}

// LogicalClusters at base, which is a virtual workspace of initializers with
// "/clusters/{cluster}", or ClusterURL's.
func (c *Clients) LogicalClusters(base string) *Client[*kcpcorev1alpha1.LogicalCluster] {
	return at[*kcpcorev1alpha1.LogicalCluster](c, base, "")
}

// Shards are kcp's, of its root workspace.
func (c *Clients) Shards(cluster string) *Client[*kcpcorev1alpha1.Shard] {
	return in[*kcpcorev1alpha1.Shard](c, cluster)
}

// Namespaces of the cluster.
func (c *Clients) Namespaces(cluster string) *Client[*corev1.Namespace] {
	return in[*corev1.Namespace](c, cluster)
}

// ClusterRoles of the cluster.
func (c *Clients) ClusterRoles(cluster string) *Client[*rbacv1.ClusterRole] {
	return in[*rbacv1.ClusterRole](c, cluster)
}

// ClusterRoleBindings of the cluster.
func (c *Clients) ClusterRoleBindings(cluster string) *Client[*rbacv1.ClusterRoleBinding] {
	return in[*rbacv1.ClusterRoleBinding](c, cluster)
}

// RoleBindings of a namespace of the cluster.
func (c *Clients) RoleBindings(cluster, namespace string) *Client[*rbacv1.RoleBinding] {
	return at[*rbacv1.RoleBinding](c, c.ClusterURL(cluster), namespace)
}

// Roles of a namespace of the cluster.
func (c *Clients) Roles(cluster, namespace string) *Client[*rbacv1.Role] {
	return at[*rbacv1.Role](c, c.ClusterURL(cluster), namespace)
}

// SubjectAccessReviews of the cluster.
func (c *Clients) SubjectAccessReviews(cluster string) *Client[*authorizationv1.SubjectAccessReview] {
	return in[*authorizationv1.SubjectAccessReview](c, cluster)
}

// APIExports of the cluster.
func (c *Clients) APIExports(cluster string) *Client[*kcpapisv1alpha2.APIExport] {
	return in[*kcpapisv1alpha2.APIExport](c, cluster)
}

// APIResourceSchemas is a client for APIResourceSchemas.
func (c *Clients) APIResourceSchemas(cluster string) *Client[*kcpapisv1alpha1.APIResourceSchema] {
	return in[*kcpapisv1alpha1.APIResourceSchema](c, cluster)
}

// APIBindings of the cluster.
func (c *Clients) APIBindings(cluster string) *Client[*kcpapisv1alpha2.APIBinding] {
	return in[*kcpapisv1alpha2.APIBinding](c, cluster)
}

// EndpointSlices are the APIExportEndpointSlices of the cluster.
func (c *Clients) EndpointSlices(cluster string) *Client[*kcpapisv1alpha1.APIExportEndpointSlice] {
	return in[*kcpapisv1alpha1.APIExportEndpointSlice](c, cluster)
}

// Bots of the cluster.
func (c *Clients) Bots(cluster string) *Client[*v1alpha1.Bot] { return in[*v1alpha1.Bot](c, cluster) }

// Invitations of the cluster.
func (c *Clients) Invitations(cluster string) *Client[*v1alpha1.Invitation] {
	return in[*v1alpha1.Invitation](c, cluster)
}

// AccessRequests of the cluster.
func (c *Clients) AccessRequests(cluster string) *Client[*v1alpha1.AccessRequest] {
	return in[*v1alpha1.AccessRequest](c, cluster)
}

// ServiceAccounts of a namespace of the cluster.
func (c *Clients) ServiceAccounts(cluster, namespace string) *Client[*corev1.ServiceAccount] {
	return at[*corev1.ServiceAccount](c, c.ClusterURL(cluster), namespace)
}

// Secrets of a namespace of the cluster.
func (c *Clients) Secrets(cluster, namespace string) *Client[*corev1.Secret] {
	return at[*corev1.Secret](c, c.ClusterURL(cluster), namespace)
}

// SubjectTokens are the Leases of a namespace of the cluster, with which the hub records that ID tokens
// of jobs were used.
func (c *Clients) SubjectTokens(cluster, namespace string) *Client[*coordinationv1.Lease] {
	return at[*coordinationv1.Lease](c, c.ClusterURL(cluster), namespace)
}

// CatalogEntries of the cluster.
func (c *Clients) CatalogEntries(cluster string) *Client[*v1alpha1.CatalogEntry] {
	return in[*v1alpha1.CatalogEntry](c, cluster)
}

// Policies are the ValidatingAdmissionPolicies of the cluster.
func (c *Clients) Policies(cluster string) *Client[*admissionv1.ValidatingAdmissionPolicy] {
	return in[*admissionv1.ValidatingAdmissionPolicy](c, cluster)
}

// PolicyBindings are the ValidatingAdmissionPolicyBindings of the cluster.
func (c *Clients) PolicyBindings(cluster string) *Client[*admissionv1.ValidatingAdmissionPolicyBinding] {
	return in[*admissionv1.ValidatingAdmissionPolicyBinding](c, cluster)
}

// ListShards lists the Shards of kcp, in its root workspace.
func (c *Clients) ListShards(ctx context.Context) (*kcpcorev1alpha1.ShardList, error) {
	var list kcpcorev1alpha1.ShardList
	err := c.Shards(RootCluster).GetClient().Get().Resource("shards").Do(ctx).Into(&list)
	return &list, err
}

// Leases of the cluster, as leader election takes them.
func (c *Clients) Leases(cluster string) coordinationv1client.LeasesGetter {
	return coordinationv1client.New(c.REST(c.ClusterURL(cluster), coordinationv1.SchemeGroupVersion))
}
