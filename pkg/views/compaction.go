package views

import (
	"maps"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

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

const (
	// keptMetadata is the size in bytes up to which the labels and annotations of an APIBinding in a child
	// Workspace are kept. Tenants write them.
	keptMetadata = 4 << 10
	// keptMessage is the length of a message in its status that is kept.
	keptMessage = 512
)

// compactBinding shares what equal APIBindings in child Workspaces have in common, and keeps no more of
// their labels and annotations than of those that the hub reads.
func compactBinding(b *kcpapisv1alpha2.APIBinding) {
	share(&b.Kind)
	share(&b.APIVersion)
	b.ManagedFields = nil
	delete(b.Annotations, corev1.LastAppliedConfigAnnotation)
	size := 0
	for _, of := range []map[string]string{b.Labels, b.Annotations} {
		for key, value := range of {
			size += len(key) + len(value)
		}
	}
	if size > keptMetadata {
		b.Labels = nil
		maps.DeleteFunc(b.Annotations, func(key, _ string) bool {
			return key != logicalcluster.AnnotationKey && key != v1alpha1.CatalogEntryAnnotation
		})
	}
	for i := range b.Status.Conditions {
		c := &b.Status.Conditions[i]
		share(&c.Type)
		share(&c.Status)
		share(&c.Severity)
		share(&c.Reason)
		if len(c.Message) > keptMessage {
			c.Message = strings.ToValidUTF8(c.Message[:keptMessage], "")
		}
		share(&c.Message)
	}
	for i := range b.Spec.PermissionClaims {
		shareClaim(&b.Spec.PermissionClaims[i].PermissionClaim)
	}
	for i := range b.Status.AppliedPermissionClaims {
		shareClaim(&b.Status.AppliedPermissionClaims[i].PermissionClaim)
	}
	for i := range b.Status.ExportPermissionClaims {
		shareClaim(&b.Status.ExportPermissionClaims[i])
	}
	for i := range b.Status.BoundResources {
		r := &b.Status.BoundResources[i]
		for _, s := range []*string{&r.Group, &r.Resource, &r.Schema.Name, &r.Schema.UID, &r.Schema.IdentityHash} {
			share(s)
		}
		r.StorageVersions = exact(r.StorageVersions)
		for j := range r.StorageVersions {
			share(&r.StorageVersions[j])
		}
	}
}

func shareClaim(c *kcpapisv1alpha2.PermissionClaim) {
	share(&c.Group)
	share(&c.Resource)
	share(&c.IdentityHash)
	for i := range c.Verbs {
		share(&c.Verbs[i])
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
