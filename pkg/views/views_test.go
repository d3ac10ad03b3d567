package views

import (
	"sync"
	"testing"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const (
	orgUUID = "231a151a-434e-4623-ad6e-69406abb9387"
	wsUUID  = "9acbf567-a188-4c75-9c40-3c3bec1a775f"
)

func newViews(t *testing.T) *Views {
	t.Helper()
	clients := kcpfake.New(t).Clients()
	v, err := New(Config{
		Clusters: Clusters{Users: "u", Orgs: "o", Providers: "p", Hub: []string{"root", "u", "o", "p"}},
		Clients:  clients, Admin: clients, Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	return v
}

// workspacesOf returns a func that changes the Workspaces of the views.
func workspacesOf(v *Views) func(old, new *kcptenancyv1alpha1.Workspace) {
	return func(old, new *kcptenancyv1alpha1.Workspace) {
		v.OrgWorkspaces.handle(old, new)
		v.ChildWorkspaces.handle(old, new)
	}
}

// fakeLister stands for the informer of Memberships, which has a change before the views
// do.
type fakeLister struct {
	mu  sync.Mutex
	all map[Key]*v1alpha1.Membership
}

func (l *fakeLister) Get(cluster, name string) (*v1alpha1.Membership, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.all[Key{cluster, name}]
	return m, ok
}

func (l *fakeLister) InCluster(cluster string) []*v1alpha1.Membership {
	return l.Named(cluster, func(string) bool { return true })
}

func (l *fakeLister) Named(cluster string, wanted func(string) bool) []*v1alpha1.Membership {
	l.mu.Lock()
	defer l.mu.Unlock()
	var in []*v1alpha1.Membership
	for key, m := range l.all {
		if key.Cluster == cluster && wanted(key.Name) {
			in = append(in, m)
		}
	}
	return in
}

func (l *fakeLister) change(old, new *v1alpha1.Membership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old != nil {
		delete(l.all, Key{kcp.ClusterOf(old), old.Name})
	}
	if new != nil {
		l.all[Key{kcp.ClusterOf(new), new.Name}] = new
	}
}

// membershipsOf returns a func that changes the Memberships of the views.
func membershipsOf(v *Views) func(old, new *v1alpha1.Membership) {
	h := &fakeLister{all: map[Key]*v1alpha1.Membership{}}
	v.memberships.lister = h
	told := v.Memberships.handle
	return func(old, new *v1alpha1.Membership) {
		h.change(old, new)
		told(old, new)
	}
}

func at[T metav1.Object](cluster string, o T) T {
	o.SetAnnotations(map[string]string{"kcp.io/cluster": cluster})
	return o
}

func user(cluster, name, subject string, created int64) *v1alpha1.User {
	u := at(cluster, &v1alpha1.User{Spec: v1alpha1.UserSpec{Issuer: "i", Subject: subject}})
	u.Name, u.CreationTimestamp = name, metav1.Unix(created, 0)
	return u
}

func workspace(parent, name, cluster string) *kcptenancyv1alpha1.Workspace {
	ws := at(parent, &kcptenancyv1alpha1.Workspace{})
	ws.Name, ws.Spec.Cluster = name, cluster
	return ws
}

func TestPeople_areFoundByIdentityAndName(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	change := v.Users.handle
	alice := user("u", "alice", "1", 1)
	change(nil, alice)
	got, ok := v.ByIdentity("i", "1")
	require.True(t, ok)
	require.Same(t, alice, got)
	_, ok = v.ByIdentity("another", "1")
	require.False(t, ok, "an identity is the pair")

	change(nil, user("u", "impostor", "1", 2))
	got, _ = v.ByIdentity("i", "1")
	require.Equal(t, "alice", got.Name, "the older of two is the person")

	change(nil, user("tenant", "mallory", "2", 1))
	_, ok = v.ByName("mallory")
	require.False(t, ok, "a User from anywhere else is not believed")

	change(alice, nil)
	_, ok = v.ByName("alice")
	require.False(t, ok)
	got, _ = v.ByIdentity("i", "1")
	require.Equal(t, "impostor", got.Name, "as on a replica that starts now")
}

func TestGroups_findPeopleAndOrgs(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	dev, ops := tenancy.HashGroup("kedge:dev"), tenancy.HashGroup("kedge:ops")
	bob := user("u", "bob", "1", 1)
	bob.Spec.Groups = &v1alpha1.UserGroups{Hashes: []v1alpha1.GroupHash{dev}}
	v.Users.handle(nil, bob)
	require.Equal(t, []*v1alpha1.User{bob}, v.WithGroup(dev))
	left := bob.DeepCopy()
	left.Spec.Groups.Hashes = nil
	v.Users.handle(bob, left)
	require.Empty(t, v.WithGroup(dev))

	o := at("o", &v1alpha1.Organization{})
	o.Name = "acme"
	o.Spec.Groups = []v1alpha1.GroupMapping{{ID: "1", Group: "kedge:dev"}, {ID: "2", Group: "kedge:dev", Workspace: "w"}, {ID: "3", Group: "kedge:ops"}}
	v.Organizations.handle(nil, o)
	require.Equal(t, []string{"acme"}, v.OrgsMapping(dev))
	unmapped := o.DeepCopy()
	unmapped.Spec.Groups = o.Spec.Groups[:2]
	v.Organizations.handle(o, unmapped)
	require.Empty(t, v.OrgsMapping(ops))
	require.Equal(t, []string{"acme"}, v.OrgsMapping(dev))
}

func TestGroups_findNoMorePeopleThanAsked(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	dev := tenancy.HashGroup("kedge:dev")
	require.Empty(t, v.SomeWithGroup(dev, 5))
	for n, name := range []string{"alice", "bob", "carol"} {
		u := user("u", name, name, 1)
		u.Spec.Groups = &v1alpha1.UserGroups{Hashes: []v1alpha1.GroupHash{dev}}
		v.Users.handle(nil, u)
		require.Empty(t, v.SomeWithGroup(dev, 0))
		require.Len(t, v.SomeWithGroup(dev, 2), min(n+1, 2))
		require.Len(t, v.SomeWithGroup(dev, 9), n+1)
	}
}

func TestPeople_areFoundByUsername(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	change := v.Users.handle
	bob, alice := user("u", "bob", "2", 2), user("u", "alice", "1", 1)
	bob.Spec.RBACIdentity, alice.Spec.RBACIdentity = "kedge:a", "kedge:a"
	change(nil, bob)
	got, ok := v.ByUsername("kedge:a")
	require.True(t, ok)
	require.Same(t, bob, got)
	change(nil, alice)
	got, _ = v.ByUsername("kedge:a")
	require.Same(t, alice, got, "the older of two has it")
	change(bob, nil)
	got, _ = v.ByUsername("kedge:a")
	require.Same(t, alice, got)
	change(alice, nil)
	_, ok = v.ByUsername("kedge:a")
	require.False(t, ok)
}

func TestTopology_acceptsEventsInAnyOrder(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	organization, change := v.Organizations.handle, workspacesOf(v)
	require.Equal(t, tenancy.ClusterUnknown, v.Cluster("ws1").Kind)
	require.Equal(t, tenancy.ClusterHub, v.Cluster("root").Kind)

	child := workspace("org1", wsUUID, "ws1")
	change(nil, child)
	require.Equal(t, tenancy.ClusterUnknown, v.Cluster("ws1").Kind, "its Org is not known yet")
	home := workspace("o", orgUUID, "org1")
	change(nil, home)
	require.Equal(t, tenancy.Cluster{ID: "ws1", Kind: tenancy.ClusterWorkspace, OrgUUID: orgUUID, WorkspaceUUID: wsUUID}, v.Cluster("ws1"))
	require.Equal(t, tenancy.Cluster{ID: "org1", Kind: tenancy.ClusterOrg, OrgUUID: orgUUID}, v.Cluster("org1"))

	_, ok := v.Org(orgUUID)
	require.False(t, ok, "a workspace without its Organization is no Org")
	o := at("o", tenancy.NewOrganization(orgUUID, "O", "alice"))
	o.Annotations[v1alpha1.CreatedByAnnotation] = "alice"
	organization(nil, o)
	org, ok := v.OrgByCluster("org1")
	require.True(t, ok)
	require.Equal(t, "org1", org.ClusterID)
	require.Equal(t, []string{orgUUID}, v.OrgsCreatedBy("alice"))
	require.Len(t, v.Workspaces(orgUUID), 1)
	ws, ok := v.Workspace(orgUUID, wsUUID)
	require.True(t, ok)
	require.Equal(t, orgUUID, ws.OrgUUID)
	_, ok = v.Workspace("another", wsUUID)
	require.False(t, ok)

	moved := workspace("org1", wsUUID, "ws2")
	change(child, moved)
	require.Equal(t, tenancy.ClusterUnknown, v.Cluster("ws1").Kind)
	require.Equal(t, wsUUID, v.Cluster("ws2").WorkspaceUUID)
	change(moved, nil)
	organization(o, nil)
	change(home, nil)
	require.Equal(t, tenancy.ClusterUnknown, v.Cluster("org1").Kind)
	require.Empty(t, v.OrgsCreatedBy("alice"))
	require.Empty(t, v.Workspaces(orgUUID))
}

func TestMemberships_areListedByPersonAndByOrg(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	change := membershipsOf(v)
	bob := at("org1", tenancy.NewMembership("bob", "", "member"))
	elsewhere := at("org2", tenancy.NewMembership("bob", "", "admin"))
	change(nil, bob)
	change(nil, elsewhere)
	require.Len(t, v.MembershipsOf("bob"), 2)
	require.Equal(t, []*v1alpha1.Membership{bob}, v.MembershipsIn("org1"))
	promoted := bob.DeepCopy()
	promoted.Spec.Role = v1alpha1.RoleAdmin
	change(bob, promoted)
	require.Equal(t, []*v1alpha1.Membership{promoted}, v.MembershipsIn("org1"))
	change(promoted, nil)
	require.Empty(t, v.MembershipsIn("org1"))
	require.Equal(t, []*v1alpha1.Membership{elsewhere}, v.MembershipsOf("bob"))
}

// The index is derived and can lag behind. An entry without its Membership grants no
// rights.
func TestIndex_failsClosed(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	membership, index := membershipsOf(v), v.Indexes.handle
	move := workspacesOf(v)
	row := func(workspace string, role v1alpha1.Role) v1alpha1.MembershipIndexEntry {
		return v1alpha1.MembershipIndexEntry{OrgUUID: orgUUID, WorkspaceUUID: workspace, Role: role}
	}
	rows := []v1alpha1.MembershipIndexEntry{row("", v1alpha1.RoleAdmin), row(wsUUID, v1alpha1.RoleMember)}
	i := at("u", &v1alpha1.UserMembershipIndex{Spec: v1alpha1.UserMembershipIndexSpec{Entries: rows}})
	i.Name = "bob"
	index(nil, i)
	require.Empty(t, v.Index("bob"), "no Membership stands behind the index")
	inOrg, inWorkspace := at("org1", tenancy.NewMembership("bob", "", "admin")), at("org1", tenancy.NewMembership("bob", wsUUID, "member"))
	membership(nil, inOrg)
	membership(nil, inWorkspace)
	require.Empty(t, v.Index("bob"), "nobody knows where the Org is")
	move(nil, workspace("o", orgUUID, "org1"))
	require.Equal(t, rows, v.Index("bob"))
	require.Equal(t, rows, v.Index("bob"), "from memory")

	demoted := inOrg.DeepCopy()
	demoted.Spec.Role = v1alpha1.RoleMember
	membership(inOrg, demoted)
	require.Equal(t, v1alpha1.RoleMember, v.Index("bob")[0].Role, "a demotion counts before the index has followed")
	membership(inWorkspace, nil)
	require.Len(t, v.Index("bob"), 1, "a removal, too")
	promoted := at("org1", tenancy.NewMembership("bob", wsUUID, "admin"))
	membership(nil, promoted)
	require.Equal(t, v1alpha1.RoleMember, v.Index("bob")[1].Role, "a promotion waits for the index")
	require.Empty(t, v.Index("alice"))
	index(i, nil)
	require.Empty(t, v.Index("bob"))
}
