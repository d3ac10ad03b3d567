package views

import (
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Informers has all informers of the hub: one watch for each kind and endpoint.
type Informers struct {
	Users         *informer.Informer[*v1alpha1.User]
	Organizations *informer.Informer[*v1alpha1.Organization]
	Memberships   *informer.Informer[*v1alpha1.Membership]
	Indexes       *informer.Informer[*v1alpha1.UserMembershipIndex]
	Sessions      *informer.Informer[*v1alpha1.Session]
	// CatalogEntries has those of all Organizations and the Global ones.
	CatalogEntries *informer.Informer[*v1alpha1.CatalogEntry]
	// Workspaces has kcp's objects of Organizations and of child Workspaces.
	Workspaces *informer.Informer[*kcptenancyv1alpha1.Workspace]

	// OrgBindings has all APIBindings in the workspaces of Organizations and of the hub.
	OrgBindings *informer.Informer[*kcpapisv1alpha2.APIBinding]

	// Initializing has the logical clusters that wait for the hub's initializer.
	Initializing *informer.Informer[*kcpcorev1alpha1.LogicalCluster]

	// Inactive has the deactivated logical clusters, which kcp shows to its shard admin
	// only.
	Inactive *informer.Informer[*kcpcorev1alpha1.LogicalCluster]

	// ClusterRoleBindings and RoleBindings have the hub's objects in child Workspaces, which
	// carry v1alpha1.ManagedByLabel.
	ClusterRoleBindings *informer.Informer[*rbacv1.ClusterRoleBinding]
	RoleBindings        *informer.Informer[*rbacv1.RoleBinding]
	// Namespaces, ClusterRoles and Roles have all of child Workspaces, because a Membership
	// may name a role of a tenant and a namespace. Of tenants' objects only names and
	// versions are kept, and tenancy.RulesAnnotation in place of the rules.
	Namespaces   *informer.Informer[*corev1.Namespace]
	ClusterRoles *informer.Informer[*rbacv1.ClusterRole]
	Roles        *informer.Informer[*rbacv1.Role]
	// Policies and PolicyBindings have the admission policy of child Workspaces, with the
	// hashes of their specs in place of the specs.
	Policies       *informer.Informer[*admissionv1.ValidatingAdmissionPolicy]
	PolicyBindings *informer.Informer[*admissionv1.ValidatingAdmissionPolicyBinding]
	// Bots has the Bots of all Organizations. ServiceAccounts and BotSecrets have the hub's
	// objects for them in child Workspaces, which carry v1alpha1.BotAccountLabel: no data,
	// and no object of a tenant.
	Bots            *informer.Informer[*v1alpha1.Bot]
	ServiceAccounts *informer.Informer[*corev1.ServiceAccount]
	BotSecrets      *informer.Informer[*corev1.Secret]
	// Bindings has all APIBindings in child Workspaces.
	Bindings *informer.Informer[*kcpapisv1alpha2.APIBinding]
}

// NewInformers returns informers that do not watch anything yet. admin are the clients
// that can read deactivated logical clusters. wanted are the APIBindings that the
// workspace of every Organization is to have.
func NewInformers(c, admin *kcp.Clients, wanted []*kcpapisv1alpha2.APIBinding) *Informers {
	managed := v1alpha1.ManagedByLabel + "=" + v1alpha1.ManagedByHub
	ofBots := managed + "," + v1alpha1.BotAccountLabel + "=true"
	ours := v1alpha1.SchemeGroupVersion.WithResource
	return &Informers{
		Users: informer.New(c, ours("users"), "", func() *v1alpha1.User { return &v1alpha1.User{} },
			func() runtime.Object { return &v1alpha1.UserList{} }),
		Organizations: informer.New(c, ours("organizations"), "", func() *v1alpha1.Organization { return &v1alpha1.Organization{} },
			func() runtime.Object { return &v1alpha1.OrganizationList{} }),
		Memberships: informer.New(c, ours("memberships"), "", func() *v1alpha1.Membership { return &v1alpha1.Membership{} },
			func() runtime.Object { return &v1alpha1.MembershipList{} }),
		Indexes: informer.New(c, ours("usermembershipindexes"), "", func() *v1alpha1.UserMembershipIndex { return &v1alpha1.UserMembershipIndex{} },
			func() runtime.Object { return &v1alpha1.UserMembershipIndexList{} }),
		Sessions: informer.New(c, ours("sessions"), "", func() *v1alpha1.Session { return &v1alpha1.Session{} },
			func() runtime.Object { return &v1alpha1.SessionList{} }),
		CatalogEntries: informer.New(c, ours("catalogentries"), "", func() *v1alpha1.CatalogEntry { return &v1alpha1.CatalogEntry{} },
			func() runtime.Object { return &v1alpha1.CatalogEntryList{} }),
		Workspaces: informer.New(c, kcptenancyv1alpha1.SchemeGroupVersion.WithResource("workspaces"), "",
			func() *kcptenancyv1alpha1.Workspace { return &kcptenancyv1alpha1.Workspace{} },
			func() runtime.Object { return &kcptenancyv1alpha1.WorkspaceList{} }),
		Initializing: newLogicalClusters(c, ""),
		Inactive: newLogicalClusters(admin, fmt.Sprintf("%s in (%s,%s)", kcptenancyv1alpha1.WorkspacePhaseLabel,
			kcpcorev1alpha1.LogicalClusterPhaseUnavailable, kcpcorev1alpha1.LogicalClusterPhaseInactive)),
		Namespaces: informer.New(c, corev1.SchemeGroupVersion.WithResource("namespaces"), "",
			func() *corev1.Namespace { return &corev1.Namespace{} },
			func() runtime.Object { return &corev1.NamespaceList{} }).WithTransform(compactNamespace),
		ClusterRoles: informer.New(c, rbacv1.SchemeGroupVersion.WithResource("clusterroles"), "",
			func() *rbacv1.ClusterRole { return &rbacv1.ClusterRole{} },
			func() runtime.Object { return &rbacv1.ClusterRoleList{} }).WithTransform(compactClusterRole),
		Roles: informer.New(c, rbacv1.SchemeGroupVersion.WithResource("roles"), "",
			func() *rbacv1.Role { return &rbacv1.Role{} },
			func() runtime.Object { return &rbacv1.RoleList{} }).WithTransform(compactRole),
		RoleBindings: informer.New(c, rbacv1.SchemeGroupVersion.WithResource("rolebindings"), managed,
			func() *rbacv1.RoleBinding { return &rbacv1.RoleBinding{} },
			func() runtime.Object { return &rbacv1.RoleBindingList{} }),
		ClusterRoleBindings: informer.New(c, rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), managed,
			func() *rbacv1.ClusterRoleBinding { return &rbacv1.ClusterRoleBinding{} },
			func() runtime.Object { return &rbacv1.ClusterRoleBindingList{} }),
		Policies: informer.New(c, admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"), managed,
			func() *admissionv1.ValidatingAdmissionPolicy { return &admissionv1.ValidatingAdmissionPolicy{} },
			func() runtime.Object { return &admissionv1.ValidatingAdmissionPolicyList{} }).WithTransform(policyHashOnly),
		PolicyBindings: informer.New(c, admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings"), managed,
			func() *admissionv1.ValidatingAdmissionPolicyBinding {
				return &admissionv1.ValidatingAdmissionPolicyBinding{}
			},
			func() runtime.Object { return &admissionv1.ValidatingAdmissionPolicyBindingList{} }).WithTransform(policyBindingHashOnly),
		Bots: informer.New(c, ours("bots"), "", func() *v1alpha1.Bot { return &v1alpha1.Bot{} },
			func() runtime.Object { return &v1alpha1.BotList{} }),
		ServiceAccounts: informer.New(c, corev1.SchemeGroupVersion.WithResource("serviceaccounts"), ofBots,
			func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} },
			func() runtime.Object { return &corev1.ServiceAccountList{} }).WithTransform(compactServiceAccount),
		BotSecrets: informer.New(c, corev1.SchemeGroupVersion.WithResource("secrets"), ofBots,
			func() *corev1.Secret { return &corev1.Secret{} },
			func() runtime.Object { return &corev1.SecretList{} }).WithTransform(compactSecret),
		Bindings:    newBindings(c),
		OrgBindings: newBindings(c).WithTransform(bindingOnly(wanted)),
	}
}

func newLogicalClusters(c *kcp.Clients, selector string) *informer.Informer[*kcpcorev1alpha1.LogicalCluster] {
	return informer.New(c, kcpcorev1alpha1.SchemeGroupVersion.WithResource("logicalclusters"), selector,
		func() *kcpcorev1alpha1.LogicalCluster { return &kcpcorev1alpha1.LogicalCluster{} },
		func() runtime.Object { return &kcpcorev1alpha1.LogicalClusterList{} })
}

func newBindings(c *kcp.Clients) *informer.Informer[*kcpapisv1alpha2.APIBinding] {
	return informer.New(c, kcpapisv1alpha2.SchemeGroupVersion.WithResource("apibindings"), "",
		func() *kcpapisv1alpha2.APIBinding { return &kcpapisv1alpha2.APIBinding{} },
		func() runtime.Object { return &kcpapisv1alpha2.APIBindingList{} })
}

// bindingOnly drops all fields of an APIBinding but identity, spec, deletionTimestamp and
// the export's logical cluster. A spec that equals a wanted one shares its memory.
func bindingOnly(wanted []*kcpapisv1alpha2.APIBinding) func(*kcpapisv1alpha2.APIBinding) {
	return func(b *kcpapisv1alpha2.APIBinding) {
		b.ObjectMeta = metav1.ObjectMeta{
			Name: b.Name, UID: b.UID, ResourceVersion: b.ResourceVersion, DeletionTimestamp: b.DeletionTimestamp,
			Annotations: map[string]string{logicalcluster.AnnotationKey: kcp.ClusterOf(b)},
		}
		share(&b.Kind)
		share(&b.APIVersion)
		b.Status = kcpapisv1alpha2.APIBindingStatus{APIExportClusterName: b.Status.APIExportClusterName}
		share(&b.Status.APIExportClusterName)
		for _, w := range wanted {
			if equality.Semantic.DeepEqual(b.Spec, w.Spec) {
				b.Spec = w.Spec
			}
		}
	}
}

func policyHashOnly(p *admissionv1.ValidatingAdmissionPolicy) {
	*p = admissionv1.ValidatingAdmissionPolicy{ObjectMeta: hashOnly(p, tenancy.PolicyHash(p))}
}

func policyBindingHashOnly(b *admissionv1.ValidatingAdmissionPolicyBinding) {
	*b = admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: hashOnly(b, tenancy.PolicyBindingHash(b))}
}

// hashOnly is the metadata of an object that the cache has no spec of. Nearly all
// Workspaces have the same hash.
func hashOnly(o kcp.Object, hash string) metav1.ObjectMeta {
	share(&hash)
	return metav1.ObjectMeta{
		Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		Annotations: map[string]string{logicalcluster.AnnotationKey: kcp.ClusterOf(o), tenancy.SpecHashAnnotation: hash},
	}
}

// compactNamespace drops everything but the identity of a tenant's Namespace.
func compactNamespace(n *corev1.Namespace) {
	if !tenancy.ManagedByHub(n) {
		*n = corev1.Namespace{ObjectMeta: identityOnly(n)}
	}
}

// compactClusterRole replaces the rules of a tenant's ClusterRole by an annotation. It
// replaces the annotations of the tenant, too.
func compactClusterRole(r *rbacv1.ClusterRole) {
	if tenancy.ManagedByHub(r) {
		return
	}
	compact := rbacv1.ClusterRole{ObjectMeta: rulesOnly(r, r.Rules)}
	if r.AggregationRule != nil {
		compact.AggregationRule = &rbacv1.AggregationRule{}
	}
	*r = compact
}

// compactRole is compactClusterRole for a Role. The hub has no Roles.
func compactRole(r *rbacv1.Role) {
	meta := rulesOnly(r, r.Rules)
	*r = rbacv1.Role{ObjectMeta: meta}
}

// compactServiceAccount keeps the metadata that the hub itself writes.
func compactServiceAccount(a *corev1.ServiceAccount) {
	*a = corev1.ServiceAccount{ObjectMeta: botMeta(a)}
}

// compactSecret drops the data, which a tenant could have put there.
func compactSecret(s *corev1.Secret) {
	*s = corev1.Secret{ObjectMeta: botMeta(s)}
}

func botMeta(o kcp.Object) metav1.ObjectMeta {
	meta := identityOnly(o)
	meta.Labels, meta.CreationTimestamp = o.GetLabels(), o.GetCreationTimestamp()
	for _, name := range []string{v1alpha1.DisplayNameAnnotation, v1alpha1.RoleAnnotation, v1alpha1.LastTokenIssuedAtAnnotation} {
		if value, ok := o.GetAnnotations()[name]; ok {
			meta.Annotations[name] = value
		}
	}
	return meta
}

// rulesOnly is the metadata of a tenant's role. Equal rules share their memory.
func rulesOnly(o kcp.Object, rules []rbacv1.PolicyRule) metav1.ObjectMeta {
	encoded := tenancy.EncodeRules(rules)
	share(&encoded)
	meta := identityOnly(o)
	meta.Annotations[tenancy.RulesAnnotation] = encoded
	return meta
}

func identityOnly(o kcp.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		DeletionTimestamp: o.GetDeletionTimestamp(),
		Annotations:       map[string]string{logicalcluster.AnnotationKey: kcp.ClusterOf(o)},
	}
}
