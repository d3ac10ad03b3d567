package workspace

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// records have what was applied in each logical cluster, so that the reconciliation of
// a complete Workspace writes nothing. A new process applies everything again.
type records struct {
	mu       sync.Mutex
	clusters map[string]*applied
}

// applied is the record of one logical cluster.
type applied struct {
	at time.Time
	// bound identifies the APIBindings at that time.
	bound string
	// writes counts the writes of tenants that may have altered an object of the
	// template.
	writes int
}

// pass is the record of a logical cluster at the start of a reconciliation.
type pass struct {
	due    bool
	bound  string
	writes int
}

func (m *records) begin(cluster string, now time.Time, forced bool) pass {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.clusters[cluster]
	if a == nil {
		a = &applied{}
		m.clusters[cluster] = a
	}
	if forced {
		a.at = time.Time{}
	}
	return pass{due: a.at.IsZero() || now.Sub(a.at) >= reapply, bound: a.bound, writes: a.writes}
}

// done records that everything is applied, unless a tenant wrote in the meantime.
func (m *records) done(cluster string, p pass, bound string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.clusters[cluster]; a != nil && a.writes == p.writes {
		a.at, a.bound = now, bound
	}
}

func (m *records) recordWrite(cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.clusters[cluster]; a != nil {
		a.writes++
		a.at = time.Time{}
	}
}

// Forget removes the record of a deleted logical cluster.
func (t *Template) Forget(cluster string) {
	t.records.mu.Lock()
	defer t.records.mu.Unlock()
	delete(t.records.clusters, cluster)
}

// repairDelay is the time between a tenant's write to an object of the template and the
// repair. It limits the rate of repairs, because tenants can write at any rate.
const repairDelay = time.Second

// Written records a tenant's write in a logical cluster and reports whether it may have
// altered an object of the template. The next reconciliation of the Workspace then
// applies the whole template. The caller limits these reconciliations to one a second,
// because tenants can write at any rate.
func (t *Template) Written(cluster string, w tenancy.ObjectWrite) bool {
	switch {
	case w.Verb == "deletecollection":
	case w.Name != "" && slices.Contains([]string{"update", "patch", "delete"}, w.Verb):
	default:
		// A create does not alter existing objects.
		return false
	}
	for _, o := range t.Objects {
		if mayAlter(w, o) {
			t.records.recordWrite(cluster)
			return true
		}
	}
	return false
}

// mayAlter reports whether a write may alter an object. It does not compare kinds,
// because a URL has the resource and not the kind. If two objects have the same group and
// name, a write to one counts for both.
func mayAlter(w tenancy.ObjectWrite, o *unstructured.Unstructured) bool {
	kind, namespace := o.GroupVersionKind().GroupKind(), o.GetNamespace()
	if namespace == "" && stageOf(kind) != stageNamespaces {
		namespace = tenancy.DefaultNamespace
	}
	return kind.Group == w.Group &&
		(w.Name == "" || o.GetName() == w.Name) &&
		(w.Namespace == "" || namespace == w.Namespace)
}
