package views

import (
	"maps"
	"strings"
	"sync"
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

	mu sync.Mutex
	// annotations are those that kcp itself gives every object of a logical cluster.
	annotations map[string]map[string]string
}

func newLean(t *topology) lean {
	return lean{topology: t, annotations: map[string]map[string]string{}}
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

func (l *lean) membership(m *v1alpha1.Membership) {
	l.object(&m.TypeMeta, &m.ObjectMeta)
	delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
	m.Annotations = l.shared(m.Annotations)
	// A Membership's name is made of the names that it refers to.
	m.Spec.UserRef.Name = within(m.Name, m.Spec.UserRef.Name)
	if ref := m.Spec.WorkspaceRef; ref != nil {
		ref.Name = within(m.Name, ref.Name)
	}
	share(&m.Spec.Scope)
	share(&m.Spec.Role)
	leanStatus(&m.Status.CommonStatus)
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

// shared returns one map for all objects of a logical cluster that have no
// annotations but kcp's own. A map of one entry is bigger than many an object.
func (l *lean) shared(annotations map[string]string) map[string]string {
	cluster := annotations[logicalcluster.AnnotationKey]
	for key := range annotations {
		if !strings.HasPrefix(key, "kcp.io/") {
			return annotations
		}
	}
	if cluster == "" {
		return annotations
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if held, ok := l.annotations[cluster]; ok && maps.Equal(held, annotations) {
		return held
	}
	l.annotations[cluster] = annotations
	return annotations
}

// forget lets go of what the objects of a logical cluster shared, when the last of
// them is gone.
func (l *lean) forget(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.annotations, cluster)
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
