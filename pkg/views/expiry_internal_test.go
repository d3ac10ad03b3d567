package views

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// oneLister has one Membership.
type oneLister struct{ m *v1alpha1.Membership }

func (l *oneLister) Get(string, string) (*v1alpha1.Membership, bool) { return l.m, l.m != nil }

func (l *oneLister) InCluster(string) []*v1alpha1.Membership {
	if l.m == nil {
		return nil
	}
	return []*v1alpha1.Membership{l.m}
}

func (l *oneLister) Named(cluster string, _ func(string) bool) []*v1alpha1.Membership {
	return l.InCluster(cluster)
}

// limited are views of bob's Membership of a Workspace with sudo, which ends after a minute.
type limited struct {
	*memberships
	clock *clocktesting.FakeClock
	list  oneLister
}

func newLimited() *limited {
	l := &limited{clock: clocktesting.NewFakeClock(time.Unix(1_000_000, 0))}
	l.memberships = newMemberships(newExpiry(l.clock))
	l.memberships.lister = &l.list
	l.set(new(metav1.NewTime(l.clock.Now().Add(time.Minute))))
	i := &v1alpha1.UserMembershipIndex{}
	i.Name, i.Spec.Entries = "bob", []v1alpha1.MembershipIndexEntry{{OrgUUID: orgUUID, WorkspaceUUID: wsUUID, Role: v1alpha1.RoleMember}}
	l.index("u", nil, i)
	return l
}

// set gives the Membership another end.
func (l *limited) set(end *metav1.Time) {
	m := at("org1", tenancy.NewWorkspaceMembership("bob", wsUUID, v1alpha1.RoleMember, nil, true))
	m.Spec.ExpiresAt = end
	was := l.list.m
	l.list.m = m
	l.membership("org1", was, m)
}

func (l *limited) gives() bool {
	name := tenancy.MembershipName("bob", wsUUID)
	_, found := l.Membership("org1", name)
	all := []bool{
		len(l.entries("bob", func(string) string { return "org1" })) == 1, l.sudo("bob", Key{"org1", name}), !l.ending("bob", Key{"org1", name}), found,
		len(l.MembershipsOf("bob")) == 1, len(l.MembershipsIn("org1")) == 1, len(l.MembershipsAt("org1", wsUUID)) == 1, len(l.MembershipsOver("org1", wsUUID)) == 1,
	}
	for _, each := range all[1:] {
		if each != all[0] {
			panic("the views disagree")
		}
	}
	return all[0]
}

// No event and no timer ends a Membership: everything that is asked compares its end with the clock.
func TestExpiry_endsEveryAnswerInItsSecond(t *testing.T) {
	t.Parallel()
	l := newLimited()
	require.True(t, l.gives())
	l.clock.Step(time.Minute - time.Millisecond)
	require.True(t, l.gives(), "nothing ends early")
	l.clock.Step(time.Millisecond)
	require.False(t, l.gives())
}

func TestExpiry_isNotUndoneByAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	l := newLimited()
	l.clock.Step(time.Minute)
	over := l.expiry.due()
	require.Len(t, over, 1)
	l.expiry.setOver(over[0])
	l.touch("bob")
	l.clock.SetTime(l.clock.Now().Add(-10 * time.Minute))
	require.False(t, l.gives())
	l.set(new(metav1.NewTime(l.clock.Now().Add(time.Hour))))
	require.True(t, l.gives(), "another end is a new right")
}

func TestExpiry_isNotPublishedAfterItMoved(t *testing.T) {
	t.Parallel()
	l := newLimited()
	l.set(new(metav1.NewTime(l.clock.Now().Add(time.Hour))))
	l.set(nil)
	l.clock.Step(2 * time.Hour)
	require.True(t, l.gives())
	for _, past := range l.expiry.due() {
		require.NotEqual(t, firstEnd(l.list.m), past.at)
	}
}

// The attack: give a Membership another end again and again, each many years ahead, until the hub has no memory.
func TestExpiry_forgetsEndsThatNothingHas(t *testing.T) {
	t.Parallel()
	l := newLimited()
	other := Key{"org2", "alice"}
	l.expiry.change(other, nil, []int64{l.clock.Now().Add(time.Hour).Unix(), l.clock.Now().Add(2 * time.Hour).Unix()})
	for n := range 10 * endsKept {
		l.set(new(metav1.NewTime(l.clock.Now().AddDate(1000, 0, n%9))))
	}
	require.LessOrEqual(t, len(l.expiry.queue), 2*3+endsKept)
	l.set(nil)
	l.expiry.mu.Lock()
	l.expiry.compact()
	l.expiry.mu.Unlock()
	require.Len(t, l.expiry.queue, 2, "the control: what something has stays")
	l.clock.Step(2 * time.Hour)
	require.Len(t, l.expiry.due(), 2)
}

// An end at or before 1970 is one nevertheless.
func TestExpiry_thatIsZeroHasEnded(t *testing.T) {
	t.Parallel()
	l := newLimited()
	for _, unix := range []int64{0, -1} {
		l.set(new(metav1.Unix(unix, 0)))
		require.False(t, l.gives())
	}
}

// A part of a Membership ends in its second, and the rest stays. Until the part is removed, the gate is told
// that something has ended.
func TestExpiry_endsAPartOfAMembership(t *testing.T) {
	t.Parallel()
	l := newLimited()
	key := Key{"org1", tenancy.MembershipName("bob", wsUUID)}
	set := func(m *v1alpha1.Membership) {
		was := l.list.m
		l.list.m = m
		l.membership("org1", was, m)
	}
	role := func() v1alpha1.Role {
		m, ok := l.Membership("org1", key.Name)
		require.True(t, ok)
		require.Equal(t, m, l.MembershipsOf("bob")[0])
		require.Equal(t, m, l.MembershipsAt("org1", wsUUID)[0])
		return m.Spec.Role
	}
	m := at("org1", tenancy.NewMembership("bob", wsUUID, v1alpha1.RoleMember))
	m.Spec.Extra = []v1alpha1.MembershipExtra{
		{Source: "request:1", Role: v1alpha1.RoleAdmin, ExpiresAt: new(metav1.NewTime(l.clock.Now().Add(time.Minute)))},
		{Source: "request:2", Sudo: true, ExpiresAt: new(metav1.NewTime(l.clock.Now().Add(2 * time.Minute)))},
	}
	set(m)
	require.Equal(t, v1alpha1.RoleAdmin, role())
	require.True(t, l.sudo("bob", key))
	require.False(t, l.ending("bob", key))
	l.clock.Step(time.Minute - time.Millisecond)
	require.Equal(t, v1alpha1.RoleAdmin, role(), "nothing ends early")
	l.clock.Step(time.Millisecond)
	require.Equal(t, v1alpha1.RoleMember, role())
	require.True(t, l.ending("bob", key))
	require.True(t, l.sudo("bob", key), "the other part is not over")

	over := l.expiry.due()
	require.Contains(t, over, end{key, l.clock.Now().Unix()})
	require.True(t, l.expiry.setOver(end{key, l.clock.Now().Unix()}))
	require.False(t, l.expiry.setOver(end{key, l.clock.Now().Unix()}), "it is published once")
	l.clock.SetTime(l.clock.Now().Add(-10 * time.Minute))
	require.Equal(t, v1alpha1.RoleMember, role(), "a clock that is set back undoes nothing")

	rest := m.DeepCopy()
	rest.Spec.Extra = rest.Spec.Extra[1:]
	set(rest)
	require.False(t, l.ending("bob", key), "the part was removed")
	l.clock.Step(12 * time.Minute)
	require.Equal(t, v1alpha1.RoleMember, role())
	require.False(t, l.sudo("bob", key))
	require.NotEmpty(t, l.expiry.due(), "the end of the part that stayed comes as well")
}

// A Workspace whose time is over is soft-deleted in each answer, and for those who follow it.
func TestExpiry_softDeletesAWorkspaceInItsSecond(t *testing.T) {
	t.Parallel()
	k := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	v := newViews(t)
	v.topology.expiry = newExpiry(k)
	change := workspacesOf(v)
	change(nil, workspace("o", orgUUID, "org1"))
	old := workspace("org1", wsUUID, "ws1")
	old.Annotations = map[string]string{"kcp.io/cluster": "org1", v1alpha1.ExpiresAtAnnotation: k.Now().Add(time.Minute).UTC().Format(time.RFC3339)}
	change(nil, old)
	deleted := func() bool {
		ws, ok := v.Workspace(orgUUID, wsUUID)
		require.True(t, ok)
		require.Equal(t, ws.Deleted(), v.Workspaces(orgUUID)[0].Deleted())
		return ws.Deleted()
	}
	require.False(t, deleted())
	k.Step(time.Minute - time.Millisecond)
	require.False(t, deleted(), "nothing ends early")
	k.Step(time.Millisecond)
	require.True(t, deleted(), "without an event")
	ws, _ := v.Workspace(orgUUID, wsUUID)
	require.True(t, ws.Expired())
	later := workspace("org1", wsUUID, "ws1")
	later.Annotations = map[string]string{"kcp.io/cluster": "org1", v1alpha1.ExpiresAtAnnotation: k.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	change(old, later)
	require.False(t, deleted(), "its admins gave it more time in time")
	require.Len(t, v.topology.expiry.due(), 1)
	v.topology.expiry.setOver(end{Key{"org1", wsUUID}, k.Now().Add(time.Hour).Unix()})
	require.True(t, deleted(), "what was published stays over if the clock is set back")
	change(later, workspace("org1", wsUUID, "ws1"))
	require.False(t, deleted(), "an undelete takes the time off")
}
