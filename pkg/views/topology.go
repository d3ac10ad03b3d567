package views

import (
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
	clusterOfOrg  map[string]string
	orgOfCluster  map[string]string
	workspaces    map[string]map[string]tenancy.Workspace
	// keyOf has the Workspace of a logical cluster.
	keyOf map[string]Key
	// expiry has the ends of Workspaces. One whose time is over is soft-deleted in each answer.
	expiry *expiry
}

func newTopology(c Clusters, e *expiry) *topology {
	hub := map[string]bool{}
	for _, id := range c.Hub {
		hub[id] = true
	}
	return &topology{
		orgs: c.Orgs, hub: hub, expiry: e,
		organizations: map[string]*v1alpha1.Organization{},
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
	}
	if new != nil {
		t.organizations[new.Name] = new
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

// newCreators finds the Organizations that count against the quota of a User (O-5).
func newCreators() *index[string, *v1alpha1.Organization] {
	return newIndex(func(o *v1alpha1.Organization) []string {
		by := o.Annotations[v1alpha1.CreatedByAnnotation]
		if o.Spec.Personal || by == "" {
			return nil
		}
		return []string{by}
	})
}

func newMappings() *index[v1alpha1.GroupHash, *v1alpha1.Organization] {
	return newIndex(func(o *v1alpha1.Organization) []v1alpha1.GroupHash {
		var hashes []v1alpha1.GroupHash
		for _, m := range o.Spec.Groups {
			hashes = append(hashes, tenancy.HashGroup(m.Group))
		}
		slices.Sort(hashes)
		return slices.Compact(hashes)
	})
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
	t.expiry.change(keyOf(Change[*kcptenancyv1alpha1.Workspace]{old, new}.Object()), endsOfWorkspace(old), endsOfWorkspace(new))
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

// Org finds an Org by UUID, soft-deleted ones included.
func (t *topology) Org(uuid string) (tenancy.Org, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	o, ok := t.organizations[uuid]
	return tenancy.Org{Organization: o, ClusterID: t.clusterOfOrg[uuid]}, ok
}

// Orgs returns all Orgs, soft-deleted ones included, in no order.
func (t *topology) Orgs() []tenancy.Org {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]tenancy.Org, 0, len(t.organizations))
	for uuid, o := range t.organizations {
		out = append(out, tenancy.Org{Organization: o, ClusterID: t.clusterOfOrg[uuid]})
	}
	return out
}

// OrgByCluster finds an Org by the logical cluster of its own workspace.
func (t *topology) OrgByCluster(id string) (tenancy.Org, bool) {
	t.mu.RLock()
	uuid, ok := t.orgOfCluster[id]
	t.mu.RUnlock()
	if !ok {
		return tenancy.Org{}, false
	}
	return t.Org(uuid)
}

// of returns a Workspace in the logical cluster of an Org as it is now.
func (t *topology) of(org, cluster string, w tenancy.Workspace) tenancy.Workspace {
	w.OrgUUID = org
	if w.ExpiresAt != nil && t.expiry.ended(Key{cluster, w.UUID}, unixEnd(w.ExpiresAt)) {
		return w.AtEnd()
	}
	return w
}

// Workspace finds a Workspace of an Org, soft-deleted ones included.
func (t *topology) Workspace(org, workspace string) (tenancy.Workspace, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	cluster := t.clusterOfOrg[org]
	w, ok := t.workspaces[cluster][workspace]
	return t.of(org, cluster, w), ok
}

// Workspaces returns all Workspaces of an Org, soft-deleted ones included, in no order.
func (t *topology) Workspaces(org string) []tenancy.Workspace {
	t.mu.RLock()
	defer t.mu.RUnlock()
	cluster := t.clusterOfOrg[org]
	in := t.workspaces[cluster]
	out := make([]tenancy.Workspace, 0, len(in))
	for _, w := range in {
		out = append(out, t.of(org, cluster, w))
	}
	return out
}

// UsedWorkspaces counts the Workspaces against the Org's quota (O-6): the claimed and the
// existing ones, soft-deleted ones included. It does not copy the list.
func (t *topology) UsedWorkspaces(org string, claims []v1alpha1.Claim) int {
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

// Cluster returns the place of a logical cluster in the tree.
func (t *topology) Cluster(id string) tenancy.Cluster {
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

func (t *topology) clusterOf(org string) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.clusterOfOrg[org]
}
