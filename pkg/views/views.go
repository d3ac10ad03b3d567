package views

import (
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Clusters are the logical clusters that belong to the hub alone.
type Clusters struct {
	// Users, Orgs and Providers are where the objects of those kinds live; an
	// object of theirs from anywhere else is not believed.
	Users, Orgs, Providers string
	// Hub are the IDs of all of them and of what is above them (O-10).
	Hub []string
}

// Views are people, memberships and topology. What they return is shared: read
// only.
type Views struct {
	people      *people
	topology    topology
	memberships memberships
	lean        lean
	kinds       kinds
	clusters    Clusters
	listers     Listers
	waiters     waiters
	synced      []func() bool
	wait        prometheus.Histogram
}

// New returns the views over informers that do not run yet. synced tell whether
// the informers have seen all that existed at the start.
func New(c Clusters, in *Informers, metrics prometheus.Registerer, synced ...func() bool) (*Views, error) {
	v := &Views{
		people:   newPeople(),
		topology: newTopology(c),
		clusters: c,
		listers:  listersOf(in),
		synced:   synced,
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kedge_views_wait_seconds",
			Help:    "How long a caller of a write waited until the views had followed.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}),
	}
	v.lean = newLean(&v.topology, c.Users)
	v.memberships = newMemberships(in.Memberships)
	if err := v.register(metrics); err != nil {
		return nil, err
	}
	in.Users.Trimming(v.lean.user)
	in.Memberships.Trimming(v.lean.membership).Packing(packMembership)
	in.Indexes.Trimming(v.lean.index)
	v.kinds = newKinds(v)
	v.listen(in)
	return v, nil
}

// ByIdentity finds a person by who vouches for them and as whom.
func (v *Views) ByIdentity(issuer, subject string) (*v1alpha1.User, bool) {
	return v.people.byIdentity(issuer, subject)
}

// ByName finds a person by metadata.name.
func (v *Views) ByName(name string) (*v1alpha1.User, bool) { return v.people.byName(name) }

// workspace changes the topology and, where an Org's own workspace moved, what is
// honoured in it.
func (v *Views) workspace(cluster string, old, new *kcptenancyv1alpha1.Workspace) {
	v.topology.workspace(cluster, old, new)
	if cluster != v.topology.orgs {
		return
	}
	for _, ws := range []*kcptenancyv1alpha1.Workspace{old, new} {
		if ws != nil && (old == nil || new == nil || old.Spec.Cluster != new.Spec.Cluster) {
			v.memberships.moved(ws.Spec.Cluster)
		}
	}
}

// People are all Users, in no order.
func (v *Views) People() []*v1alpha1.User { return v.people.all() }

// SearchPeople finds those who can act and whose name or display name holds query,
// at most limit, ordered by name.
func (v *Views) SearchPeople(query string, limit int) []*v1alpha1.User {
	return v.people.search(query, limit)
}

// Index is the User's switcher: the rows of their UserMembershipIndex that a
// Membership stands behind; nil where there is none. It fails closed: a right ends
// as soon as either is gone.
func (v *Views) Index(user string) []v1alpha1.MembershipIndexEntry {
	return v.memberships.entries(user, v.topology.clusterOf)
}

// Org finds an Org by UUID, soft-deleted ones included.
func (v *Views) Org(uuid string) (tenancy.Org, bool) { return v.topology.org(uuid) }

// Orgs are all Orgs, soft-deleted ones included, in no order.
func (v *Views) Orgs() []tenancy.Org { return v.topology.all() }

// OrgByCluster finds the Org whose own workspace is in the logical cluster.
func (v *Views) OrgByCluster(id string) (tenancy.Org, bool) { return v.topology.orgByCluster(id) }

// Workspace finds a Workspace of an Org, soft-deleted ones included.
func (v *Views) Workspace(org, workspace string) (tenancy.Workspace, bool) {
	return v.topology.find(org, workspace)
}

// Workspaces are all Workspaces of an Org, soft-deleted ones included, in no
// order.
func (v *Views) Workspaces(org string) []tenancy.Workspace { return v.topology.list(org) }

// UsedWorkspaces counts what takes a place in the Org's quota (O-6): what is claimed
// and what exists, soft-deleted ones included.
func (v *Views) UsedWorkspaces(org string, claims []v1alpha1.Claim) int {
	return v.topology.used(org, claims)
}

// Cluster tells what a logical cluster is to the platform.
func (v *Views) Cluster(id string) tenancy.Cluster { return v.topology.cluster(id) }

// OrgsCreatedBy are the UUIDs of the Orgs that the User created and that still
// exist, soft-deleted ones included and the personal one not (O-5), in no order.
func (v *Views) OrgsCreatedBy(user string) []string { return v.topology.createdBy(user) }

// Membership finds one by name in the Org whose own workspace is in the logical
// cluster.
func (v *Views) Membership(orgCluster, name string) (*v1alpha1.Membership, bool) {
	return v.memberships.held.Get(orgCluster, name)
}

// MembershipsIn are all Memberships in the Org whose own workspace is in the
// logical cluster, in no order.
func (v *Views) MembershipsIn(orgCluster string) []*v1alpha1.Membership {
	return v.memberships.held.InCluster(orgCluster)
}

// MembershipsAt are the Memberships of a Workspace of that Org, or where workspace is
// empty the Org's own, in no order.
func (v *Views) MembershipsAt(orgCluster, workspace string) []*v1alpha1.Membership {
	return v.memberships.held.Named(orgCluster, func(name string) bool { return tenancy.NamedFor(name, workspace) })
}

// MembershipsOver are those that say who has which right in a Workspace of that Org:
// the Workspace's and the Org's own, in no order.
func (v *Views) MembershipsOver(orgCluster, workspace string) []*v1alpha1.Membership {
	return v.memberships.held.Named(orgCluster, func(name string) bool {
		return tenancy.NamedFor(name, "") || tenancy.NamedFor(name, workspace)
	})
}

// MembershipsOf are all Memberships of a User, in no order.
func (v *Views) MembershipsOf(user string) []*v1alpha1.Membership { return v.memberships.of(user) }

// Sudo tells whether the User's Membership in a Workspace of the Org has sudo.
func (v *Views) Sudo(user, org, workspace string) bool {
	o, ok := v.topology.org(org)
	return ok && v.memberships.sudo(user, Key{o.ClusterID, tenancy.MembershipName(user, workspace)})
}

// Roles are the further ClusterRoles of the User's Membership in a Workspace of the
// Org.
func (v *Views) Roles(user, org, workspace string) []v1alpha1.NamedRef {
	o, ok := v.topology.org(org)
	if !ok {
		return nil
	}
	m, ok := v.Membership(o.ClusterID, tenancy.MembershipName(user, workspace))
	if !ok || !m.DeletionTimestamp.IsZero() {
		return nil
	}
	return m.Spec.Roles
}

// Ready tells whether the views hold all that existed when they started.
func (v *Views) Ready() bool {
	for _, synced := range v.synced {
		if !synced() {
			return false
		}
	}
	return true
}

func (v *Views) register(metrics prometheus.Registerer) error {
	collectors := []prometheus.Collector{v.wait}
	for name, size := range map[string]func() int{
		"users": v.people.size, "organizations": v.topology.orgCount, "workspaces": v.topology.workspaceCount,
		"indexes": v.memberships.indexCount, "memberships": v.memberships.count,
	} {
		collectors = append(collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kedge_views_objects", Help: "Objects held in memory, by view.",
			ConstLabels: prometheus.Labels{"view": name},
		}, func() float64 { return float64(size()) }))
	}
	for _, c := range collectors {
		if err := metrics.Register(c); err != nil {
			return err
		}
	}
	return nil
}
