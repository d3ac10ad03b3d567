package views

import (
	"maps"
	"strings"
	"unique"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// transform makes the cached objects of people small. Informers call it with objects
// fresh from the wire. It drops only fields that no reader asks for and no reconciler
// writes: a reconciler compares the cached object with the desired one, and would write a
// missing field again and again. Other fields share memory with equal ones, which is safe
// because cached objects are read only.
type transform struct {
	topology *topology
	// annotations are those that kcp gives every object in the logical cluster of people.
	annotations map[string]string
}

func newTransform(t *topology, users string) transform {
	return transform{topology: t, annotations: map[string]string{logicalcluster.AnnotationKey: users}}
}

func (t *transform) user(u *v1alpha1.User) {
	t.object(&u.TypeMeta, &u.ObjectMeta)
	// kcp selects by this label. The views find a User by the identity itself.
	delete(u.Labels, v1alpha1.IdentityLabel)
	if len(u.Labels) == 0 {
		u.Labels = nil
	}
	delete(u.Annotations, corev1.LastAppliedConfigAnnotation)
	u.Annotations = t.shared(u.Annotations)
	share(&u.Spec.Issuer)
	share(&u.Spec.Registration)
	u.Spec.Subject = within(u.Spec.RBACIdentity, u.Spec.Subject)
	if u.Spec.Groups != nil {
		u.Spec.Groups.Hashes = exact(u.Spec.Groups.Hashes)
		for i := range u.Spec.Groups.Hashes {
			share(&u.Spec.Groups.Hashes[i])
		}
	}
	transformStatus(&u.Status.CommonStatus)
}

// membership runs before encodeMembership.
func (t *transform) membership(m *v1alpha1.Membership) {
	t.object(&m.TypeMeta, &m.ObjectMeta)
	delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
	if cluster, ok := m.Annotations[logicalcluster.AnnotationKey]; ok {
		m.Annotations[logicalcluster.AnnotationKey] = t.topology.sharedID(cluster)
	}
}

// index keeps annotations and labels, because an index is replaced as a whole.
func (t *transform) index(i *v1alpha1.UserMembershipIndex) {
	t.object(&i.TypeMeta, &i.ObjectMeta)
	i.Annotations = t.shared(i.Annotations)
	i.Spec.Entries = exact(i.Spec.Entries)
	for n := range i.Spec.Entries {
		t.topology.share(&i.Spec.Entries[n])
		share(&i.Spec.Entries[n].Role)
	}
}

// session drops what only the session service needs, which reads a Session from kcp.
func (t *transform) session(s *v1alpha1.Session) {
	t.object(&s.TypeMeta, &s.ObjectMeta)
	s.Annotations = t.shared(s.Annotations)
	share(&s.Spec.UserRef.Name)
	share(&s.Spec.Client)
	share(&s.Spec.Description)
	share(&s.Spec.Email)
	s.Spec.Groups = exact(s.Spec.Groups)
	for i := range s.Spec.Groups {
		share(&s.Spec.Groups[i])
	}
	s.Spec.Tokens = exact(s.Spec.Tokens)
	s.Spec.IDToken, s.Spec.Rotations = nil, nil
}

func (t *transform) catalogEntry(e *v1alpha1.CatalogEntry) {
	t.object(&e.TypeMeta, &e.ObjectMeta)
	delete(e.Annotations, corev1.LastAppliedConfigAnnotation)
	if cluster, ok := e.Annotations[logicalcluster.AnnotationKey]; ok {
		e.Annotations[logicalcluster.AnnotationKey] = t.topology.sharedID(cluster)
	}
	share(&e.Spec.APIExport.Path)
	share(&e.Spec.APIExport.Name)
	share(&e.Status.Scope)
	transformStatus(&e.Status.CommonStatus)
}

func (t *transform) object(kind *metav1.TypeMeta, o *metav1.ObjectMeta) {
	share(&kind.Kind)
	share(&kind.APIVersion)
	o.ManagedFields = nil
	o.Finalizers = exact(o.Finalizers)
	for i := range o.Finalizers {
		share(&o.Finalizers[i])
	}
}

// shared returns one map for all objects with the same annotations: a map of one entry is
// bigger than many objects.
func (t *transform) shared(annotations map[string]string) map[string]string {
	if maps.Equal(annotations, t.annotations) {
		return t.annotations
	}
	return annotations
}

// transformStatus shares all strings of the conditions.
func transformStatus(s *v1alpha1.CommonStatus) {
	share(&s.Phase)
	s.Conditions = exact(s.Conditions)
	for i := range s.Conditions {
		c := &s.Conditions[i]
		share(&c.Type)
		share(&c.Status)
		share(&c.Reason)
		share(&c.Message)
	}
}

// share replaces a string by an equal one that another object has. The table of package
// unique keeps weak references, so an unused string is collected.
func share[S ~string](s *S) {
	if *s != "" {
		*s = S(unique.Make(string(*s)).Value())
	}
}

// same replaces a string by kept where they are equal.
func same(s *string, kept string) {
	if *s == kept {
		*s = kept
		return
	}
	share(s)
}

// within returns part as a substring of whole, where it is one, so that the two share
// memory.
func within(whole, part string) string {
	if i := strings.Index(whole, part); i >= 0 {
		return whole[i : i+len(part)]
	}
	return part
}

// exact returns the elements without the spare capacity that a decoder leaves.
func exact[E any](s []E) []E {
	if len(s) == cap(s) {
		return s
	}
	out := make([]E, len(s))
	copy(out, s)
	return out
}
