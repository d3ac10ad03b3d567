package views

import (
	"maps"
	"slices"
	"sync"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// topology maps Orgs and Workspaces to logical clusters and back. It keys a Workspace by
// the logical cluster of its parent and by name, because at the start the events of an
// Org and of its Workspaces come in any order.
type topology struct {
	orgs string
	hub  map[string]bool

	mu            sync.RWMutex
	organizations map[string]*v1alpha1.Organization
	// creators has the UUIDs of the Orgs that a User created.
	creators     map[string]map[string]struct{}
	clusterOfOrg map[string]string
	orgOfCluster map[string]string
	workspaces   map[string]map[string]tenancy.Workspace
	// keyOf has the Workspace of a logical cluster.
	keyOf map[string]Key
}

func newTopology(c Clusters) topology {
	hub := map[string]bool{}
	for _, id := range c.Hub {
		hub[id] = true
	}
	return topology{
		orgs: c.Orgs, hub: hub,
		organizations: map[string]*v1alpha1.Organization{},
		creators:      map[string]map[string]struct{}{},
		clusterOfOrg:  map[string]string{},
		orgOfCluster:  map[string]string{},
		workspaces:    map[string]map[string]tenancy.Workspace{},
		keyOf:         map[string]Key{},
	}
}

func (t *topology) organization(_ string, old, new *v1alpha1.Organization) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old != nil {
		delete(t.organizations, old.Name)
		if by := creator(old); by != "" {
			remove(t.creators, by, old.Name)
		}
	}
	if new != nil {
		t.organizations[new.Name] = new
		if by := creator(new); by != "" {
			put(t.creators, by, new.Name, struct{}{})
		}
	}
}

func put[O, I comparable, V any](m map[O]map[I]V, outer O, inner I, v V) {
	if m[outer] == nil {
		m[outer] = map[I]V{}
	}
	m[outer][inner] = v
}

func remove[O, I comparable, V any](m map[O]map[I]V, outer O, inner I) {
	delete(m[outer], inner)
	if len(m[outer]) == 0 {
		delete(m, outer)
	}
}

// creator returns the User whose quota the Organization counts against (O-5); empty for
// none.
func creator(o *v1alpha1.Organization) string {
	if o.Spec.Personal {
		return ""
	}
	return o.Annotations[v1alpha1.CreatedByAnnotation]
}

func (t *topology) workspace(cluster string, old, new *kcptenancyv1alpha1.Workspace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cluster == t.orgs {
		if old != nil {
			delete(t.clusterOfOrg, old.Name)
			delete(t.orgOfCluster, old.Spec.Cluster)
		}
		if new != nil && new.Spec.Cluster != "" {
			t.clusterOfOrg[new.Name] = new.Spec.Cluster
			t.orgOfCluster[new.Spec.Cluster] = new.Name
		}
		return
	}
	if old != nil {
		remove(t.workspaces, cluster, old.Name)
		delete(t.keyOf, old.Spec.Cluster)
	}
	if new != nil {
		w := tenancy.WorkspaceOf("", new)
		transformStatus(&w.Status)
		put(t.workspaces, cluster, new.Name, w)
		if new.Spec.Cluster != "" {
			t.keyOf[new.Spec.Cluster] = Key{cluster, new.Name}
		}
	}
}

func (t *topology) org(uuid string) (tenancy.Org, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	o, ok := t.organizations[uuid]
	return tenancy.Org{Organization: o, ClusterID: t.clusterOfOrg[uuid]}, ok
}

func (t *topology) all() []tenancy.Org {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]tenancy.Org, 0, len(t.organizations))
	for uuid, o := range t.organizations {
		out = append(out, tenancy.Org{Organization: o, ClusterID: t.clusterOfOrg[uuid]})
	}
	return out
}

func (t *topology) orgByCluster(id string) (tenancy.Org, bool) {
	t.mu.RLock()
	uuid, ok := t.orgOfCluster[id]
	t.mu.RUnlock()
	if !ok {
		return tenancy.Org{}, false
	}
	return t.org(uuid)
}

func (t *topology) find(org, workspace string) (tenancy.Workspace, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	w, ok := t.workspaces[t.clusterOfOrg[org]][workspace]
	w.OrgUUID = org
	return w, ok
}

func (t *topology) list(org string) []tenancy.Workspace {
	t.mu.RLock()
	defer t.mu.RUnlock()
	in := t.workspaces[t.clusterOfOrg[org]]
	out := make([]tenancy.Workspace, 0, len(in))
	for _, w := range in {
		w.OrgUUID = org
		out = append(out, w)
	}
	return out
}

// used counts the Workspaces against the Org's quota without copying the list.
func (t *topology) used(org string, claims []v1alpha1.Claim) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	in := t.workspaces[t.clusterOfOrg[org]]
	n := len(in)
	for _, c := range claims {
		if _, ok := in[c.UUID]; !ok {
			n++
		}
	}
	return n
}

// share replaces the strings of an index row by the equal ones that the topology has of
// the Org and the Workspace.
func (t *topology) share(e *v1alpha1.MembershipIndexEntry) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	o := t.organizations[e.OrgUUID]
	if o == nil {
		o = &v1alpha1.Organization{}
	}
	w := t.workspaces[t.clusterOfOrg[e.OrgUUID]][e.WorkspaceUUID]
	same(&e.OrgUUID, o.Name)
	same(&e.OrgDisplayName, o.Spec.DisplayName)
	same(&e.OrgFirstAdmin, tenancy.Org{Organization: o}.CreatedBy())
	same(&e.WorkspaceUUID, w.UUID)
	same(&e.WorkspaceDisplayName, w.DisplayName)
	same(&e.ClusterID, w.ClusterID)
}

// sharedID returns the topology's own copy of the ID of an Org's logical cluster, where it
// has one.
func (t *topology) sharedID(id string) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	same(&id, t.clusterOfOrg[t.orgOfCluster[id]])
	return id
}

func (t *topology) cluster(id string) tenancy.Cluster {
	if t.hub[id] {
		return tenancy.Cluster{ID: id, Kind: tenancy.ClusterHub}
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if org, ok := t.orgOfCluster[id]; ok {
		return tenancy.Cluster{ID: id, Kind: tenancy.ClusterOrg, OrgUUID: org}
	}
	if key, ok := t.keyOf[id]; ok {
		if org, ok := t.orgOfCluster[key.Cluster]; ok {
			return tenancy.Cluster{ID: id, Kind: tenancy.ClusterWorkspace, OrgUUID: org, WorkspaceUUID: key.Name}
		}
	}
	return tenancy.Cluster{ID: id}
}

func (t *topology) createdBy(user string) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Keys(t.creators[user]))
}

func (t *topology) clusterOf(org string) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.clusterOfOrg[org]
}

func (t *topology) orgCount() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.organizations)
}

func (t *topology) workspaceCount() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.keyOf)
}
