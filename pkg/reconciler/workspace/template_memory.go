package workspace

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// memory is what was applied where, so that a pass over a Workspace that has it
// all writes nothing. A new process applies everything again.
type memory struct {
	mu       sync.Mutex
	clusters map[string]*applied
}

// applied is when everything was last applied in a logical cluster; zero where it
// has to be.
type applied struct {
	at time.Time
	// bound identifies the bindings that it was applied with.
	bound string
	// writes counts what tenants may have altered.
	writes int
}

// pass is what memory held when a pass began.
type pass struct {
	due    bool
	bound  string
	writes int
}

func (m *memory) begin(cluster string, now time.Time, forced bool) pass {
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

// done remembers that all is applied, unless somebody wrote to it meanwhile.
func (m *memory) done(cluster string, p pass, bound string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.clusters[cluster]; a != nil && a.writes == p.writes {
		a.at, a.bound = now, bound
	}
}

func (m *memory) wrote(cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.clusters[cluster]; a != nil {
		a.writes++
		a.at = time.Time{}
	}
}

// Forget drops what is remembered of a logical cluster that is gone.
func (t *Template) Forget(cluster string) {
	t.memory.mu.Lock()
	defer t.memory.mu.Unlock()
	delete(t.memory.clusters, cluster)
}

// Written tells whether a tenant's write to a path of a logical cluster, such as
// /api/v1/namespaces/default/configmaps/settings, may have altered an object of
// the template. Then the next pass over the Workspace applies all of it: enqueue
// one, but not more than one a second, because tenants decide how often they
// write.
func (t *Template) Written(cluster, method, path string) bool {
	switch method {
	case "PUT", "PATCH", "DELETE":
	default:
		// What is not there cannot be altered by a POST.
		return false
	}
	at, ok := placeOf(path)
	if !ok || at.name == "" && method != "DELETE" {
		return false
	}
	for _, o := range t.Objects {
		if at.holds(o) {
			t.memory.wrote(cluster)
			return true
		}
	}
	return false
}

// place is what a path names, but for the kind: two objects of one group may
// share a name, and are then both applied again.
type place struct{ group, namespace, name string }

func placeOf(path string) (place, bool) {
	var at place
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		at.group, parts = parts[1], parts[3:]
	default:
		return place{}, false
	}
	// /namespaces/{name} itself, and what is below it: of a namespace, no part but
	// its status and its finalizers can be written.
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		at.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		at.name = parts[1]
	}
	return at, true
}

func (p place) holds(o *unstructured.Unstructured) bool {
	kind, namespace := o.GroupVersionKind().GroupKind(), o.GetNamespace()
	if namespace == "" && stageOf(kind) != stageNamespaces {
		namespace = tenancy.DefaultNamespace
	}
	return kind.Group == p.group &&
		(p.name == "" || o.GetName() == p.name) &&
		(p.namespace == "" || namespace == p.namespace)
}
