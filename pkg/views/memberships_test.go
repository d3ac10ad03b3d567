package views

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestMemberships_followRandomEventsAsAModel(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	change := membershipsOf(v)
	random := rand.New(rand.NewPCG(1, 2))
	model := map[Key]*v1alpha1.Membership{}
	for step := range 4000 {
		// Few keys repeat events for one key, and more keys give longer lists.
		n := []int{2, 3, 5}[step/500%3]
		cluster := fmt.Sprint("org", random.IntN(n))
		m := at(cluster, tenancy.NewMembership(fmt.Sprint("user", random.IntN(n)), []string{"", wsUUID, orgUUID}[random.IntN(3)], v1alpha1.RoleMember))
		key := Key{cluster, m.Name}
		old := model[key]
		if old != nil && random.IntN(5) < 3 {
			delete(model, key)
			// A watch reports a removal with another object than the cached one.
			change(old.DeepCopy(), nil)
		} else {
			model[key] = m
			change(old, m)
		}
		byUser, byCluster := map[string][]*v1alpha1.Membership{}, map[string][]*v1alpha1.Membership{}
		for key, m := range model {
			byUser[m.Spec.UserRef.Name] = append(byUser[m.Spec.UserRef.Name], m)
			byCluster[key.Cluster] = append(byCluster[key.Cluster], m)
		}
		require.Equal(t, len(model), v.Memberships.objects())
		require.ElementsMatch(t, byUser[m.Spec.UserRef.Name], v.MembershipsOf(m.Spec.UserRef.Name))
		require.ElementsMatch(t, byCluster[cluster], v.MembershipsIn(cluster))
		of := func(workspaces ...string) []*v1alpha1.Membership {
			return slices.DeleteFunc(slices.Clone(byCluster[cluster]), func(m *v1alpha1.Membership) bool {
				return !slices.Contains(workspaces, tenancy.WorkspaceUUID(m))
			})
		}
		require.ElementsMatch(t, of(""), v.MembershipsAt(cluster, ""))
		require.ElementsMatch(t, of(wsUUID), v.MembershipsAt(cluster, wsUUID))
		require.ElementsMatch(t, of("", wsUUID), v.MembershipsOver(cluster, wsUUID))
		require.Len(t, v.memberships.people, len(byUser))
	}
}

// slowLister is busy with the Membership of one person until it is released.
type slowLister struct {
	membershipLister
	name           string
	asked, release chan struct{}
}

func (l slowLister) Get(cluster, name string) (*v1alpha1.Membership, bool) {
	if name == l.name {
		l.asked <- struct{}{}
		<-l.release
	}
	return at(cluster, tenancy.NewMembership(name, "", v1alpha1.RoleMember)), true
}

// The index of a person can have thousands of rows, and any admin can change it.
func TestMemberships_oneLongIndexDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	l := slowLister{name: "victim", asked: make(chan struct{}), release: make(chan struct{})}
	m := newMemberships(newExpiry(nil))
	m.lister = l
	indexed := func(user string) {
		i := &v1alpha1.UserMembershipIndex{}
		i.Name, i.Spec.Entries = user, []v1alpha1.MembershipIndexEntry{{OrgUUID: orgUUID, Role: v1alpha1.RoleMember}}
		m.index("u", nil, i)
	}
	read := func(user string) []v1alpha1.MembershipIndexEntry {
		return m.entries(user, func(string) string { return "org1" })
	}
	indexed("victim")
	rows := make(chan []v1alpha1.MembershipIndexEntry)
	go func() { rows <- read("victim") }()
	<-l.asked
	indexed("alice")
	require.Len(t, read("alice"), 1)
	// What was read before a change is not cached.
	m.membership("org1", nil, at("org1", tenancy.NewMembership("victim", "", v1alpha1.RoleMember)))
	close(l.release)
	<-rows
	go func() { rows <- read("victim") }()
	<-l.asked
	require.Len(t, <-rows, 1)
	require.Len(t, read("victim"), 1, "from the cache")
}

func TestViews_freeWhatWasRemoved(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	membership, index := membershipsOf(v), v.Indexes.handle
	alice, bob := at("org1", tenancy.NewMembership("alice", "", "member")), at("org1", tenancy.NewMembership("bob", "", "member"))
	for _, m := range []*v1alpha1.Membership{alice, bob} {
		membership(nil, m)
	}
	i := at("u", &v1alpha1.UserMembershipIndex{})
	i.Name = "alice"
	index(nil, i)
	require.Equal(t, 1, v.Indexes.objects())

	membership(bob, nil)
	require.NotContains(t, v.memberships.people, "bob")
	membership(alice, nil)
	require.Contains(t, v.memberships.people, "alice", "there is an index")
	index(i, nil)
	require.Zero(t, v.Indexes.objects())
	require.Empty(t, v.memberships.people)
}

func TestUsedWorkspaces_countsClaimedAndExisting(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	change := workspacesOf(v)
	change(nil, workspace("o", orgUUID, "org1"))
	var existing []string
	for _, uuid := range []string{"a", "b", "c"} {
		change(nil, workspace("org1", uuid, "ws"+uuid))
		existing = append(existing, uuid)
	}
	change(nil, workspace("org2", "d", "wsd"))
	for name, uuids := range map[string][]string{
		"no claims": nil, "of what exists": {"a", "c"}, "of what is to come": {"x", "y"}, "of both": {"b", "x"}, "of another Org's": {"d"},
	} {
		var claims []v1alpha1.Claim
		for _, uuid := range uuids {
			claims = append(claims, v1alpha1.Claim{UUID: uuid})
		}
		require.Equal(t, tenancy.Used(claims, existing), v.UsedWorkspaces(orgUUID, claims), name)
		require.Equal(t, len(claims), v.UsedWorkspaces("another", claims), name)
	}
}
