package organization

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func decided(user string, role v1alpha1.Role, cascade bool) v1alpha1.MembershipChange {
	return v1alpha1.MembershipChange{User: user, UID: types.UID("uid of " + user), Generation: 1, Role: role, Cascade: cascade}
}

func orgWith(changes ...v1alpha1.MembershipChange) *v1alpha1.Organization {
	o := tenancy.NewOrganization("o", "O", "alice")
	o.UID = "uid of o"
	o.Spec.MembershipChanges = changes
	return o
}

func team(t *testing.T) *roster {
	return newRoster(t,
		tenancy.NewMembership("alice", "", "admin"), tenancy.NewMembership("bob", "", "admin"), tenancy.NewMembership("carol", "", "member"),
		tenancy.NewMembership("bob", "v", "admin"), tenancy.NewMembership("bob", "w", "member"), tenancy.NewMembership("carol", "w", "member"),
	)
}

func TestO9_carriesOutTheDecision(t *testing.T) {
	t.Parallel()
	another, changed := decided("bob", "", true), decided("bob", "", true)
	another.UID, changed.Generation = "of one that is gone", 7
	all := []string{"alice admin", "bob admin", "carol member", "v.bob admin", "w.bob member", "w.carol member"}
	for name, c := range map[string]struct {
		changes []v1alpha1.MembershipChange
		did     []string
		want    []string
	}{
		"nothing": {nil, nil, all},
		"a demotion": {
			[]v1alpha1.MembershipChange{decided("bob", "member", false)}, []string{"get bob", "set bob"},
			[]string{"alice admin", "bob member", "carol member", "v.bob admin", "w.bob member", "w.carol member"},
		},
		"a removal leaves workspaces alone": {
			[]v1alpha1.MembershipChange{decided("bob", "", false)}, []string{"get bob", "remove bob"},
			[]string{"alice admin", "carol member", "v.bob admin", "w.bob member", "w.carol member"},
		},
		"a cascade goes through the workspaces first": {
			[]v1alpha1.MembershipChange{decided("bob", "", true)}, []string{"list c", "remove v.bob", "remove w.bob", "remove bob"},
			[]string{"alice admin", "carol member", "w.carol member"},
		},
		"two": {
			[]v1alpha1.MembershipChange{decided("bob", "member", false), decided("carol", "", true)},
			[]string{"get bob", "set bob", "list c", "remove w.carol", "remove carol"},
			[]string{"alice admin", "bob member", "v.bob admin", "w.bob member"},
		},
		"of one who is gone":           {[]v1alpha1.MembershipChange{decided("dave", "", true)}, []string{"list c"}, all},
		"of one who was made anew":     {[]v1alpha1.MembershipChange{another}, []string{"list c"}, all},
		"of one who was changed since": {[]v1alpha1.MembershipChange{changed}, []string{"list c"}, all},
		"void beside one that is not": {
			[]v1alpha1.MembershipChange{another, decided("carol", "", false)}, []string{"list c", "remove carol"},
			slices.Delete(slices.Clone(all), 2, 3),
		},
		"a demotion of who is a member": {[]v1alpha1.MembershipChange{decided("carol", "member", false)}, []string{"get carol", "set carol"}, all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, o := team(t), orgWith(c.changes...)
			result, err := r.reconcile(t, o)
			require.NoError(t, err)
			require.Equal(t, controller.Result{}, result)
			require.Equal(t, c.did, r.Did)
			require.Equal(t, c.want, r.names())
			require.Empty(t, o.Spec.MembershipChanges)
		})
	}
}

func TestMembers_waitForTheOrgsWorkspace(t *testing.T) {
	t.Parallel()
	r, o := team(t), orgWith(decided("bob", "", true))
	r.unplaced = true
	result, err := r.reconcile(t, o)
	require.NoError(t, err)
	require.NotEmpty(t, result.Message)
	require.Len(t, o.Spec.MembershipChanges, 1, "what was decided is kept")
	require.Empty(t, r.Did)
}

// Whichever call fails, and whether or not kcp carried it out, the next reconciliation
// completes the remaining changes with the same result.
func TestO9_changesGoOnFromAnyStop(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for n := 1; ; n++ {
			r := team(t)
			r.Fails, r.Late = n, late
			held := orgWith(decided("bob", "", true), decided("carol", "member", false), decided("dave", "", false))
			stopped := 0
			for {
				o := held.DeepCopy()
				_, err := r.reconcile(t, o)
				if err == nil {
					require.Empty(t, o.Spec.MembershipChanges)
					break
				}
				requireDown(t, err)
				if stopped++; stopped == 1 && n%2 == 0 {
					// For half of the calls, the hub stops before it has stored the
					// remaining changes.
					continue
				}
				held = o
			}
			require.Equal(t, []string{"alice admin", "carol member", "w.carol member"}, r.names(), "late %v, call %d", late, n)
			require.LessOrEqual(t, stopped, 1)
			if stopped == 0 {
				require.Equal(t, 6, n, "the control: every call has failed once")
				break
			}
		}
	}
}

// What an admin granted before their own removal was accepted is there before they are gone; what
// could not be carried out is void with it.
func TestMembers_carryOutGrantsBeforeTheRemovalOfTheirAuthor(t *testing.T) {
	t.Parallel()
	add := v1alpha1.MembershipChange{User: "dave", Role: "admin", By: "bob"}
	bot := v1alpha1.BotChange{Name: "b", By: "bob", Role: "admin"}
	r, o := team(t), orgWith(add, decided("bob", "", true))
	o.Spec.BotChanges = []v1alpha1.BotChange{bot}
	_, err := r.reconcile(t, o)
	require.NoError(t, err)
	require.Equal(t, []string{"read", "bot b", "get dave", "create dave", "list c", "remove v.bob", "remove w.bob", "remove bob"}, r.Did)
	require.Empty(t, o.Spec.MembershipChanges)
	require.Empty(t, o.Spec.BotChanges)

	for fails, left := range map[int]string{2: "the bot", 4: "dave"} {
		r, o = team(t), orgWith(add, decided("bob", "", true))
		o.Spec.BotChanges = []v1alpha1.BotChange{bot}
		r.Fails = fails
		_, err = r.reconcile(t, o)
		requireDown(t, err)
		require.Empty(t, o.Spec.MembershipChanges, left)
		require.Empty(t, o.Spec.BotChanges, left)
	}
}

// A cache that is behind shows a grant that was carried out and undone since.
func TestMembers_doNotRepeatAGrantThatKCPDoesNotHaveAnyMore(t *testing.T) {
	t.Parallel()
	r, o := team(t), orgWith(v1alpha1.MembershipChange{User: "dave", Role: "admin", By: "alice"})
	o.Spec.BotChanges = []v1alpha1.BotChange{{Name: "b", By: "alice", Role: "admin"}}
	r.org = orgWith()
	_, err := r.reconcile(t, o)
	require.NoError(t, err)
	require.Equal(t, []string{"read"}, r.Did)
	require.Empty(t, o.Spec.MembershipChanges)
}

// Somebody who is added to a Workspace and removed from the Organization in one pass is in none, at the latest after
// the pass that lists what was added.
func TestMembers_cascadeTakesWhatTheSamePassAdded(t *testing.T) {
	t.Parallel()
	r, o := team(t), orgWith(v1alpha1.MembershipChange{User: "carol", Workspace: "v", Role: "admin", By: "alice"}, decided("carol", "", true))
	_, err := r.reconcile(t, o)
	if errors.Is(err, controller.ErrRetry) {
		_, err = r.reconcile(t, o)
	}
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(r.names()), "carol")
}

// Nobody comes back by an addition that could not be carried out before their removal from everything, whether or not kcp has it.
func TestMembers_cascadeDropsWhatCouldNotBeAdded(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		added := v1alpha1.MembershipChange{User: "carol", Workspace: "v", Role: "admin", By: "alice"}
		r, o := team(t), orgWith(added, decided("carol", "", true))
		r.Fails, r.Late = 3, late
		_, err := r.reconcile(t, o)
		requireDown(t, err)
		require.Contains(t, r.Did, "remove v.carol")
		require.Empty(t, o.Spec.MembershipChanges)
		_, err = r.reconcile(t, o)
		require.NoError(t, err)
		require.NotContains(t, fmt.Sprint(r.names()), "carol")
	}
}

// What cannot be added holds up nothing that ends by time.
func TestMembers_expireBesideAFailure(t *testing.T) {
	t.Parallel()
	r, o := team(t), orgWith(v1alpha1.MembershipChange{User: "dave", Role: "member", By: "alice"})
	end := metav1.NewTime(r.Clock.Now())
	r.expired = []*v1alpha1.Membership{r.edit(t, "w.carol", func(m *v1alpha1.Membership) { m.Spec.ExpiresAt = &end })}
	r.Fails = 3
	_, err := r.reconcile(t, o)
	requireDown(t, err)
	require.Len(t, o.Spec.MembershipChanges, 2, "the addition, and the removal of carol")
}

// A failed removal does not delay the removal of others.
func TestO9_oneFailureDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	r, o := team(t), orgWith(decided("bob", "", true), decided("carol", "", true))
	r.Fails = 2
	_, err := r.reconcile(t, o)
	requireDown(t, err)
	require.Equal(t, []v1alpha1.MembershipChange{decided("bob", "", true)}, o.Spec.MembershipChanges)
	require.Equal(t, []string{"alice admin", "bob admin", "v.bob admin", "w.bob member"}, r.names(), "bob is shown to have what he has")
}

// Between the read and the removal the member becomes an admin, so the removal is void.
func TestO9_leavesAloneAMemberChangedMeanwhile(t *testing.T) {
	t.Parallel()
	r, o := team(t), orgWith(decided("carol", "", false))
	r.FailAfter(func(in kcpfake.Request) error {
		if in.Verb == "get" && in.Resource == "memberships" {
			r.edit(t, "carol", func(m *v1alpha1.Membership) { m.Spec.Role = v1alpha1.RoleAdmin })
		}
		return nil
	})
	_, err := r.reconcile(t, o)
	require.ErrorIs(t, err, controller.ErrRetry)
	require.Len(t, o.Spec.MembershipChanges, 1)
	_, err = r.reconcile(t, o)
	require.NoError(t, err)
	require.Empty(t, o.Spec.MembershipChanges)
	require.Contains(t, r.names(), "carol admin", fmt.Sprint(r.Did))
}

// A removal waits until it is known which grants go with it. The next pass begins with those grants, and their author must not
// be gone by then.
func TestMembers_removesNobodyBeforeItIsKnownWhatGoesWithThem(t *testing.T) {
	t.Parallel()
	r, o := team(t), orgWith(decided("bob", "", false))
	o.Spec.BotChanges = []v1alpha1.BotChange{{Name: "b", By: "bob", Role: "admin"}}
	silent := true
	r.FailBefore(func(in kcpfake.Request) error {
		if in.Resource == "bots" || silent && in.Verb == "list" {
			return apierrors.NewInternalError(kcptest.ErrDown)
		}
		return nil
	})
	_, err := r.reconcile(t, o)
	requireDown(t, err)
	require.Contains(t, r.names(), "bob admin")
	require.Len(t, o.Spec.MembershipChanges, 1)
	require.Len(t, o.Spec.BotChanges, 1)

	silent = false
	_, err = r.reconcile(t, o)
	requireDown(t, err)
	require.NotContains(t, r.names(), "bob admin")
	require.Empty(t, o.Spec.MembershipChanges)
	require.Empty(t, o.Spec.BotChanges, "what bob granted went with his right")
}

// What was accepted before the right of its author ended, and is carried out later, gives nothing.
func TestMembers_dropsWhatItsAuthorCouldNotGrantAnyMore(t *testing.T) {
	t.Parallel()
	end := metav1.Unix(1000, 0)
	bot := v1alpha1.BotChange{Name: "robot", Role: v1alpha1.RoleAdmin, By: "bob", ValidUntil: &end}
	grant := v1alpha1.MembershipChange{User: "dave", Role: v1alpha1.RoleAdmin, By: "bob", ValidUntil: &end}
	ends := decided("carol", "", false)
	for now, want := range map[time.Time][]string{
		end.Add(-time.Second): {"alice admin", "bob admin", "dave admin", "v.bob admin", "w.bob member", "w.carol member"},
		end.Time:              {"alice admin", "bob admin", "v.bob admin", "w.bob member", "w.carol member"},
	} {
		r := team(t)
		r.Clock.SetTime(now)
		o := orgWith(grant, ends)
		o.Spec.BotChanges = []v1alpha1.BotChange{bot}
		r.org = o.DeepCopy()
		_, err := r.reconcile(t, o)
		require.NoError(t, err)
		require.Equal(t, want, r.names())
		require.Equal(t, now.Before(end.Time), slices.Contains(r.Did, "bot robot"))
		require.Empty(t, o.Spec.MembershipChanges)
		require.Empty(t, o.Spec.BotChanges)
	}
}

func TestMembers_removesWhatHasEndedAfterItsBindings(t *testing.T) {
	t.Parallel()
	r := team(t)
	end := metav1.NewTime(r.Clock.Now())
	held := r.edit(t, "w.carol", func(m *v1alpha1.Membership) { m.Spec.ExpiresAt = &end })
	r.expired, r.bound = []*v1alpha1.Membership{held}, true
	o := orgWith()
	result, err := r.reconcile(t, o)
	require.NoError(t, err)
	require.Equal(t, unboundEvery, result.RequeueAfter)
	require.Empty(t, o.Spec.MembershipChanges, "kcp still has a binding")

	r.bound = false
	_, err = r.reconcile(t, o)
	require.NoError(t, err)
	require.Len(t, o.Spec.MembershipChanges, 1, "the Organization gets another version before the Membership is gone")
	require.Contains(t, r.names(), "w.carol member")

	_, err = r.reconcile(t, o)
	require.NoError(t, err)
	require.NotContains(t, r.names(), "w.carol member")
	require.Equal(t, []string{"expire w.carol"}, r.audited)
}

// A part that has ended goes as a Membership does, and the other ones stay.
func TestMembers_removesAPartThatHasEnded(t *testing.T) {
	t.Parallel()
	r := team(t)
	end := metav1.NewTime(r.Clock.Now())
	group := v1alpha1.MembershipExtra{Source: "group:g", Role: v1alpha1.RoleViewer}
	held := r.edit(t, "w.carol", func(m *v1alpha1.Membership) {
		m.Spec.Extra = []v1alpha1.MembershipExtra{{Source: "request:r", Role: v1alpha1.RoleAdmin, ExpiresAt: &end}, group}
	})
	r.expired, r.bound = []*v1alpha1.Membership{held}, true
	o := orgWith()
	result, err := r.reconcile(t, o)
	require.NoError(t, err)
	require.Equal(t, unboundEvery, result.RequeueAfter)
	require.Empty(t, o.Spec.MembershipChanges, "kcp still has a binding")

	r.bound = false
	_, err = r.reconcile(t, o)
	require.NoError(t, err)
	r.expired = nil
	_, err = r.reconcile(t, o)
	require.NoError(t, err)
	require.Contains(t, r.names(), "w.carol member")
	require.Equal(t, []v1alpha1.MembershipExtra{group}, r.edit(t, "w.carol", func(*v1alpha1.Membership) {}).Spec.Extra)
	require.Equal(t, []string{"expire w.carol"}, r.audited)
	require.Empty(t, o.Spec.MembershipChanges)
}

// What an admin of the Organization granted stays accepted if they lose something else, or are added
// somewhere, and is dropped with the right that entitled them.
func TestMembers_dropOnlyWhatTheirAuthorMayNotGrantAnyMore(t *testing.T) {
	t.Parallel()
	in := func(user, workspace string, role v1alpha1.Role) v1alpha1.MembershipChange {
		c := decided(workspace+"."+user, role, false)
		c.User, c.Workspace = user, workspace
		return c
	}
	added := in("bob", "x", v1alpha1.RoleMember)
	added.UID, added.Generation = "", 0
	for name, c := range map[string]struct {
		changes []v1alpha1.MembershipChange
		// left are the Workspaces in which grants of bob are left.
		left []string
	}{
		"nothing":                                  {nil, []string{"v", "x"}},
		"added to a Workspace":                     {[]v1alpha1.MembershipChange{added}, []string{"v", "x"}},
		"removed from a Workspace":                 {[]v1alpha1.MembershipChange{in("bob", "v", "")}, []string{"v", "x"}},
		"demoted in the Organization":              {[]v1alpha1.MembershipChange{decided("bob", v1alpha1.RoleMember, false)}, []string{"v"}},
		"demoted in it after a Workspace":          {[]v1alpha1.MembershipChange{in("bob", "v", ""), decided("bob", v1alpha1.RoleMember, false)}, nil},
		"demoted in both":                          {[]v1alpha1.MembershipChange{in("bob", "v", v1alpha1.RoleMember), decided("bob", v1alpha1.RoleMember, false)}, nil},
		"removed from the Organization":            {[]v1alpha1.MembershipChange{decided("bob", "", true)}, nil},
		"demoted in a Workspace, and in it before": {[]v1alpha1.MembershipChange{decided("bob", v1alpha1.RoleMember, false), in("bob", "v", v1alpha1.RoleMember)}, nil},
	} {
		r, o := team(t), orgWith(c.changes...)
		r.FailBefore(func(in kcpfake.Request) error {
			if in.Resource == "bots" {
				return apierrors.NewInternalError(kcptest.ErrDown)
			}
			return nil
		})
		for _, workspace := range []string{"v", "x"} {
			o.Spec.BotChanges = append(o.Spec.BotChanges, v1alpha1.BotChange{Name: "bot of " + workspace, By: "bob", Role: "admin", Workspace: workspace})
		}
		_, err := r.reconcile(t, o)
		requireDown(t, err)
		require.Empty(t, o.Spec.MembershipChanges, name)
		var left []string
		for _, b := range o.Spec.BotChanges {
			left = append(left, b.Workspace)
		}
		require.Equal(t, c.left, left, name)
	}
}
