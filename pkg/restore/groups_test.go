package restore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// inGroup makes alice a member of a group, and bob one whom a mapping of that group has let in.
func (w *world) inGroup() {
	hash := tenancy.HashGroup("kedge:dev")
	for _, name := range []string{"alice", "bob"} {
		u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.True(w.t, w.Read(users, u))
		u.Spec.Groups = &v1alpha1.UserGroups{IssuedAt: metav1.NewTime(then), Hashes: []v1alpha1.GroupHash{hash}}
		w.Put(users, u)
	}
	o := w.organization()
	o.Spec.Groups = []v1alpha1.GroupMapping{{ID: "g1", Group: "kedge:dev", Role: v1alpha1.RoleMember}, {ID: "g2", Group: "kedge:ops", Role: v1alpha1.RoleAdmin}}
	w.Put(orgs, o)
	m := w.member("bob")
	m.Spec.Extra = []v1alpha1.MembershipExtra{{Source: tenancy.GroupSource("g1"), Role: v1alpha1.RoleMember}}
	w.Put(inOrg, m)
}

// applyGroups does what the controller of Organizations does: it takes what no group gives any more.
func (w *world) applyGroups() {
	m := w.member("bob")
	u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "bob"}}
	require.True(w.t, w.Read(users, u))
	if m != nil && len(u.Spec.Groups.Hashes) == 0 {
		m.Spec.Extra = nil
		w.Put(inOrg, m)
	}
}

func TestRun_forgetsGroupsThatSomebodyMayHaveLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inGroup()
	waiting := w.applier.Waiting
	w.applier.Waiting = func(left int, why error) { w.applyGroups(); waiting(left, why) }
	report := w.run(restore.Step{Kind: restore.UnmapGroup, Object: "g2"}, restore.Step{Kind: restore.UnmapGroup, Object: "gone"})
	require.Equal(t, 2, report.GroupsForgotten)
	require.Len(t, report.Done, 2)
	for _, name := range []string{"alice", "bob"} {
		u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.True(t, w.Read(users, u))
		require.Empty(t, u.Spec.Groups.Hashes)
		require.True(t, u.Spec.Groups.IssuedAt.After(then), "a token from before the restore says nothing")
	}
	require.Empty(t, w.member("bob").Spec.Extra)
	groups := w.organization().Spec.Groups
	require.Len(t, groups, 1)
	require.Equal(t, "g1", groups[0].ID)
}

// One person whom kcp refuses to write keeps neither the others nor the hub in restore mode, and is named.
func TestRun_givesUpGroupsThatCannotBeForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inGroup()
	w.FailBefore(func(r kcpfake.Request) error {
		if r.Resource == "users" && r.Name == "alice" && r.Verb != "get" {
			return apierrors.NewBadRequest("never")
		}
		return nil
	})
	waiting, whys := w.applier.Waiting, []string{}
	w.applier.Waiting = func(left int, why error) {
		if why != nil {
			whys = append(whys, why.Error())
			u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "bob"}}
			require.True(t, w.Read(users, u))
			require.Empty(t, u.Spec.Groups.Hashes, "the next person does not wait")
		}
		require.Less(t, len(whys), 20)
		w.applyGroups()
		waiting(left, nil)
		w.clock.SetTime(w.clock.Now().Add(20 * time.Second))
	}
	r := w.runAll(restore.Step{Kind: restore.RejectPerson, Object: "carol"})
	require.Len(t, r.Done, 1)
	require.Len(t, r.GivenUp(), 1)
	require.Equal(t, restore.Step{Kind: restore.ForgetGroups, Object: "alice"}, r.GivenUp()[0])
	require.Contains(t, r.Impossible[0].Reason, "given up after 1m0s")
	require.Contains(t, whys[0], "forget the groups of alice")
	require.Empty(t, w.member("bob").Spec.Extra, "the group of another is forgotten")

	r, err := w.applier.Run(t.Context(), r.Plan, r)
	require.NoError(t, err)
	require.Len(t, r.Impossible, 1, "a start that follows does not wait for it again")
}

// What groups gave and the controllers do not take is why the hub waits, and everybody sees it.
func TestRun_saysThatItWaitsForWhatGroupsGave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inGroup()
	for _, name := range []string{"alice", "bob"} {
		u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.True(t, w.Read(users, u))
		u.Spec.Registration = v1alpha1.RegistrationApproved
		w.Put(users, u)
	}
	said := false
	w.applier.Waiting = func(_ int, why error) {
		said = said || why != nil
		w.clock.SetTime(w.clock.Now().Add(20 * time.Second))
	}
	w.runAll()
	require.True(t, said)
}
