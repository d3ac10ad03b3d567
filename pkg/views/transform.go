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

// lean makes what the informers keep of people small. It is given objects fresh
// from the wire, before anybody else sees them. It drops only what no reader of
// the informers asks for and what no patch of theirs touches: reconcilers compare
// what they hold with what they want, and a field that was missing would be
// written again and again. Everything else is made to share memory with what is
// there already, which is safe because all of it is read only.
type lean struct {
	topology *topology
	// annotations are those of an object that has none but what kcp itself gives all of
	// the logical cluster of people.
	annotations map[string]string
}

func newLean(t *topology, users string) lean {
	return lean{topology: t, annotations: map[string]string{logicalcluster.AnnotationKey: users}}
}

func (l *lean) user(u *v1alpha1.User) {
	l.object(&u.TypeMeta, &u.ObjectMeta)
	// kcp selects by this label; in memory people are found by the identity itself.
	delete(u.Labels, v1alpha1.IdentityLabel)
	if len(u.Labels) == 0 {
		u.Labels = nil
	}
	delete(u.Annotations, corev1.LastAppliedConfigAnnotation)
	u.Annotations = l.shared(u.Annotations)
	share(&u.Spec.Issuer)
	share(&u.Spec.Registration)
	u.Spec.Subject = within(u.Spec.RBACIdentity, u.Spec.Subject)
	leanStatus(&u.Status.CommonStatus)
}

// membership comes before packMembership, which keeps little of the object.
func (l *lean) membership(m *v1alpha1.Membership) {
	l.object(&m.TypeMeta, &m.ObjectMeta)
	delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
	if cluster, ok := m.Annotations[logicalcluster.AnnotationKey]; ok {
		m.Annotations[logicalcluster.AnnotationKey] = l.topology.sharedID(cluster)
	}
}

// index leaves annotations and labels as they are: of all these kinds it alone is
// updated as a whole.
func (l *lean) index(i *v1alpha1.UserMembershipIndex) {
	l.object(&i.TypeMeta, &i.ObjectMeta)
	i.Annotations = l.shared(i.Annotations)
	i.Spec.Entries = exact(i.Spec.Entries)
	for n := range i.Spec.Entries {
		l.topology.share(&i.Spec.Entries[n])
		share(&i.Spec.Entries[n].Role)
	}
}

func (l *lean) object(kind *metav1.TypeMeta, o *metav1.ObjectMeta) {
	share(&kind.Kind)
	share(&kind.APIVersion)
	o.ManagedFields = nil
	o.Finalizers = exact(o.Finalizers)
	for i := range o.Finalizers {
		share(&o.Finalizers[i])
	}
}

// shared returns one map for all who have the same: a map of one entry is bigger than
// many an object.
func (l *lean) shared(annotations map[string]string) map[string]string {
	if maps.Equal(annotations, l.annotations) {
		return l.annotations
	}
	return annotations
}

// leanStatus shares what conditions have in common. Their times are their own.
func leanStatus(s *v1alpha1.CommonStatus) {
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

// share replaces a string that many objects hold by the one that is held already.
// Nothing has to be forgotten: the table keeps strings only until the collector
// runs, and those who hold one keep it.
func share[S ~string](s *S) {
	if *s != "" {
		*s = S(unique.Make(string(*s)).Value())
	}
}

// same replaces a string by an equal one that is kept anyway.
func same(s *string, kept string) {
	if *s == kept {
		*s = kept
		return
	}
	share(s)
}

// within returns part as a piece of whole, where it is one, so that only whole is
// kept.
func within(whole, part string) string {
	if i := strings.Index(whole, part); i >= 0 {
		return whole[i : i+len(part)]
	}
	return part
}

// exact returns the elements without the room to grow that a decoder leaves behind
// them.
func exact[E any](s []E) []E {
	if len(s) == cap(s) {
		return s
	}
	out := make([]E, len(s))
	copy(out, s)
	return out
}
