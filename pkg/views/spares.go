package views

import (
	"slices"
	"sync"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func spare(ws *kcptenancyv1alpha1.Workspace) bool { return tenancy.IsSpare(ws) }

// spares are the workspaces that nobody owns. The topology does not have them, so that their paths
// and logical clusters are as unknown as any other.
type spares struct {
	orgs string

	mu sync.RWMutex
	// in has the spares by the logical cluster of their parent and by name.
	in map[string]map[string]tenancy.Spare
	// sparesOf has the spare of a logical cluster.
	sparesOf map[string]Key
}

func newSpares(orgs string) *spares {
	return &spares{orgs: orgs, in: map[string]map[string]tenancy.Spare{}, sparesOf: map[string]Key{}}
}

func (s *spares) change(cluster string, old, new *kcptenancyv1alpha1.Workspace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old != nil {
		remove(s.in, cluster, old.Name)
		delete(s.sparesOf, old.Spec.Cluster)
	}
	if new != nil {
		put(s.in, cluster, new.Name, tenancy.SpareOf(new))
		if new.Spec.Cluster != "" {
			s.sparesOf[new.Spec.Cluster] = Key{cluster, new.Name}
		}
	}
}

// SparesIn returns the spares in a logical cluster: of child Workspaces in that of an Organization or
// of a spare, and of Organizations in that of all Organizations. They are ordered by age.
func (s *spares) SparesIn(cluster string) []tenancy.Spare {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []tenancy.Spare
	for _, o := range s.in[cluster] {
		if cluster == s.orgs {
			o.Whole = o.KCPReady && s.hasWhole(o)
		}
		found = append(found, o)
	}
	slices.SortFunc(found, tenancy.Spare.Compare)
	return found
}

// hasWhole reports whether a spare Organization has a finished Workspace in it, which is made last.
func (s *spares) hasWhole(org tenancy.Spare) bool {
	for _, child := range s.in[org.ClusterID] {
		if child.Whole && child.Hash == org.Hash && !child.Terminating {
			return true
		}
	}
	return false
}

// SpareParents returns the logical clusters that have spares in them.
func (s *spares) SpareParents() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	parents := make([]string, 0, len(s.in))
	for parent := range s.in {
		parents = append(parents, parent)
	}
	return parents
}

// SpareKeyOf returns the key of the spare that a logical cluster belongs to.
func (s *spares) SpareKeyOf(cluster string) (key Key, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	key, ok = s.sparesOf[cluster]
	return key, ok
}
