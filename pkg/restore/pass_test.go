package restore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// asks counts the requests of a verb for a resource.
func (w *world) asks(verb, resource string) (n int) {
	for _, r := range w.Requests() {
		if r.Verb == verb && r.Resource == resource {
			n++
		}
	}
	return n
}

// softDelete is what the backup has of a soft-deleted Organization.
func (w *world) softDelete() {
	o := w.organization()
	o.Status.DeletionRequestedAt = &metav1.Time{Time: then}
	w.Put(orgs, o)
}

// rightsIn is what kcp has of rights, without what depends on the number of writes.
func (w *world) rightsIn() (all []string) {
	for _, line := range strings.Split(w.state(), "\n") {
		kind, raw, _ := strings.Cut(line, " ")
		var objects []map[string]any
		require.NoError(w.t, json.Unmarshal([]byte(raw), &objects))
		for _, o := range objects {
			u := unstructured.Unstructured{Object: o}
			for _, field := range []string{
				"resourceVersion", "generation", "uid", "managedFields", "creationTimestamp", "deletionTimestamp",
			} {
				unstructured.RemoveNestedField(o, "metadata", field)
			}
			for _, field := range map[string][]string{"bots": {"generation", "rightsGeneration"}, "leases": {"holderIdentity"}}[kind] {
				unstructured.RemoveNestedField(o, "spec", field)
			}
			text, err := json.Marshal(o)
			require.NoError(w.t, err)
			all = append(all, kind+" "+u.GetName()+" "+string(text))
		}
	}
	for _, name := range []string{"acme", "kept"} {
		if o := w.Get("/clusters/" + inWorkspace + "/apis/apis.kcp.io/v1alpha2/apibindings/" + name); o != nil {
			text, err := json.Marshal(o.Object["spec"])
			require.NoError(w.t, err)
			all = append(all, "binding "+name+" "+string(text))
		}
	}
	slices.Sort(all)
	return all
}

// ofAny is an event of any kind about what the world has.
func ofAny(r *rand.Rand) audit.Event {
	in := func(action, object string, f audit.Facts) audit.Event {
		return audit.Event{Action: action, Org: org, Workspace: ws, Object: object, Actor: audit.Actor{User: "alice"}, Facts: &f}
	}
	of := func(action, person string, f audit.Facts) audit.Event {
		return audit.Event{Action: action, Object: person, Actor: audit.Actor{User: person}, Facts: &f}
	}
	soon := now.Add(time.Hour)
	inOrg := func(action, object string, f audit.Facts) audit.Event {
		e := in(action, object, f)
		e.Workspace = ""
		return e
	}
	role := chosen(r, "admin", "member", "viewer")
	named, person := chosen(r, bot, removed), chosen(r, "bob", "carol")
	member, _ := ofMember(r)
	settings := audit.Facts{DefaultAccess: chosen(r, "none", "view"), WorkspaceCreation: chosen(r, "admin", "member")}
	rejected := []string{chosen(r, "secrets", "configmaps")}
	return chosen(
		r, member, member,
		in("PATCH "+ofBots, named, audit.Facts{Role: role}),
		in("DELETE "+ofBots+"/tokens/{token}", named, audit.Facts{Token: chosen(r, "a", "b", "c")}),
		in("DELETE "+ofBots+"/tokens", named, audit.Facts{All: true}),
		in("DELETE "+ofBots+"/trust/{trust}", named, audit.Facts{Trust: chosen(r, "rule", "other")}),
		in("DELETE "+ofBots, removed, audit.Facts{}),
		in("exchange token", bot, audit.Facts{JobToken: chosen(r, "x", "y"), JobTokenExpiresAt: &soon}),
		of("logout cli", "bob", audit.Facts{Session: chosen(r, "one", "two", "later")}),
		of("logout cli", "carol", audit.Facts{Session: "three"}),
		of("token refresh_token", "alice", audit.Facts{Session: "four", Generation: int64(r.IntN(9))}),
		of("DELETE /api/users/me/sessions", person, audit.Facts{All: true}),
		inOrg("PATCH "+placeInOrg, "", settings),
		inOrg("PATCH "+placeInOrg+"/members/{user}", "bob", audit.Facts{Role: role}),
		inOrg("DELETE "+placeInOrg+"/members/{user}", "alice", audit.Facts{}),
		in("PATCH "+placeInWorkspace, "", audit.Facts{ExpiresAt: chosen(r, "2032-01-01T00:00:00Z", "2033-01-01T00:00:00Z")}),
		in("POST "+placeInWorkspace+"/providers/{entry}/enable", provided, audit.Facts{RejectedClaims: rejected}),
		inOrg("DELETE "+placeInOrg+"/invitations/{invitation}", offer, audit.Facts{}),
		of("POST /api/invitations/{invitation}/decline", offer, audit.Facts{}),
		of("PATCH /api/admin/users/{name}", person, audit.Facts{Registration: chosen(r, "Rejected", "Pending")}),
		inOrg("DELETE "+placeInOrg+"/catalog/{entry}", "entry", audit.Facts{}),
	)
}

// A hub that carries out the plan has what one would have that replays the events one after the other.
func TestRun_endsInFewStepsWhatAllEventsEnded(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 2))
			var events []audit.Event
			for range 40 {
				events = append(events, ofAny(r))
			}
			h := restore.History{Events: answered(events)}
			few, each := newWorld(t), newWorld(t)
			if seed%3 == 0 {
				few.softDelete()
				each.softDelete()
			}
			steps := restore.PlanOf(h).Steps
			require.Less(t, len(steps), len(apart(events)))
			require.Empty(t, few.runAll(steps...).GivenUp())
			require.Empty(t, each.runAll(apart(events)...).GivenUp())
			require.Equal(t, each.rightsIn(), few.rightsIn())
		})
	}
}

// What an Organization has is read once for all who lost something in it.
func TestRun_readsAnOrgOnceInAPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applier.Waiting = func(left int, _ error) {
		require.Zero(t, left)
	}
	var steps []restore.Step
	claims := audit.Facts{RejectedClaims: []string{"pods"}}
	for i := range 50 {
		source := fmt.Sprint(i)
		steps = append(
			steps, restore.Step{Kind: restore.LimitMember, Object: "gone" + source, Facts: audit.Facts{Role: "viewer"}},
			restore.Step{Kind: restore.RemoveMember, Workspace: ws, Object: "gone" + source},
			restore.Step{Kind: restore.RevokeToken, Workspace: ws, Object: bot, Facts: audit.Facts{Token: "rotated" + source}},
			restore.Step{Kind: restore.LimitProvider, Workspace: ws, Object: provided, Facts: claims},
		)
	}
	for i := range steps {
		steps[i].Source, steps[i].Org = fmt.Sprint(i), org
	}
	r := w.runAll(steps...)
	require.Len(t, r.Done, len(steps))
	require.Equal(t, 1, w.asks("list", "memberships"))
	require.Equal(t, 1, w.asks("get", "organizations"))
	require.Equal(t, 1, w.asks("get", "bots"))
	require.Equal(t, 1, w.asks("list", "apibindings"))
	require.Empty(t, w.Writes(), "nothing is left to take")
}

// The controller of Organizations carries out what the backup has accepted while the hub looks at what is there.
func TestRun_takesAGrantThatIsCarriedOutBetweenTwoReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.organization()
	o.Spec.MembershipChanges = []v1alpha1.MembershipChange{
		{User: "carol", Role: v1alpha1.RoleAdmin, RequestedAt: metav1.NewMicroTime(then)},
	}
	w.Put(orgs, o)
	reads := 0
	w.FailBefore(func(r kcpfake.Request) error {
		if r.Verb == "list" && r.Resource == "memberships" || r.Verb == "get" && r.Resource == "organizations" {
			if reads++; reads == 2 {
				w.carryOut()
			}
		}
		return nil
	})
	w.run(restore.Step{Kind: restore.RemoveMember, Object: "carol"})
	require.GreaterOrEqual(t, reads, 2)
	require.Nil(t, w.member("carol"))
}

// A Step that lowers a role takes sudo that it does not name, and one that follows it and keeps sudo must not come before it.
func TestRun_lowersARoleInTheOrderOfTheEvents(t *testing.T) {
	t.Parallel()
	yes := true
	for _, deleted := range []bool{false, true} {
		w := newWorld(t)
		if deleted {
			w.softDelete()
		}
		fails := 1
		w.FailBefore(func(r kcpfake.Request) error {
			if r.Verb == "patch" && fails > 0 {
				fails--
				return apierrors.NewBadRequest("once")
			}
			return nil
		})
		lower := audit.Facts{Role: "viewer", Sudo: &yes, Roles: texts("view")}
		r := w.run(
			restore.Step{Kind: restore.LimitMember, Workspace: ws, Object: "bob", Facts: audit.Facts{Role: "member"}},
			restore.Step{Kind: restore.LimitMember, Workspace: ws, Object: "bob", Facts: lower},
		)
		require.Empty(t, r.Impossible)
		m := w.member(ws + ".bob")
		require.Equal(t, v1alpha1.RoleViewer, m.Spec.Role)
		require.False(t, m.Spec.Sudo)
		require.Empty(t, m.Spec.Roles)
	}
}

// kcp takes seconds to let the hub into what it activates, so that is done once for all who lost something there.
func TestRun_activatesASoftDeletedOrgOnceInAPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.softDelete()
	w.applier.Waiting = func(left int, why error) { require.Zero(t, left, why) }
	no := false
	steps := []restore.Step{
		{Kind: restore.DisableProvider, Workspace: ws, Object: provided},
		{Kind: restore.DisableProvider, Workspace: ws, Object: "other"},
		{Kind: restore.LimitMember, Workspace: ws, Object: "bob", Facts: audit.Facts{Role: "member", Roles: texts("view"), Sudo: &no}},
		{Kind: restore.LimitMember, Workspace: ws, Object: "bob", Facts: audit.Facts{ExpiresAt: "2032-01-01T00:00:00Z"}},
		{Kind: restore.AnswerInvitation, Object: offer, State: v1alpha1.InvitationRevoked},
		{Kind: restore.LimitBot, Workspace: ws, Object: bot, Facts: audit.Facts{Role: "viewer"}},
		{Kind: restore.DeleteEntry, Object: "entry"},
		{Kind: restore.EndWorkspace, Workspace: ws, Facts: audit.Facts{ExpiresAt: "2032-01-01T00:00:00Z"}},
	}
	for i := range 20 {
		steps = append(steps, restore.Step{Kind: restore.RemoveMember, Object: fmt.Sprint("gone", i)})
	}
	r := w.run(steps...)
	require.Len(t, r.Impossible, 1, "the provider that is not there")
	slices.Sort(w.activated)
	require.Equal(t, []string{inOrg, inWorkspace}, w.activated)
	m := w.member(ws + ".bob")
	require.Equal(t, v1alpha1.RoleMember, m.Spec.Role)
	require.False(t, m.Spec.Sudo)
	require.NotNil(t, m.Spec.ExpiresAt)
}

// Where a shard does not let the hub deactivate again what it activated, nothing of it counts as done.
func TestRun_repeatsWhatItCannotDeactivateAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.softDelete()
	within, tries := w.applier.Within, 0
	w.applier.Within = func(ctx context.Context, cluster string, deactivated func() bool, do func() error) error {
		err := within(ctx, cluster, deactivated, do)
		if tries++; tries == 1 {
			return apierrors.NewServiceUnavailable("a moment")
		}
		return err
	}
	r := w.run(
		restore.Step{Kind: restore.RemoveMember, Object: "bob"}, restore.Step{Kind: restore.DeleteBot, Workspace: ws, Object: "gone"},
	)
	require.Equal(t, 2, tries)
	require.Len(t, r.Done, 1)
	require.Len(t, r.Impossible, 1)
}

// What kcp removes for good is not activated for a Step.
func TestRun_activatesNothingThatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.organization()
	o.Finalizers, o.DeletionTimestamp = []string{"f"}, &metav1.Time{Time: now}
	o.Status.DeletionRequestedAt = &metav1.Time{Time: then}
	w.Put(orgs, o)
	w.applier.Waiting = func(left int, why error) { require.Zero(t, left, why) }
	r := w.run(
		restore.Step{Kind: restore.RemoveMember, Object: "bob"},
		restore.Step{Kind: restore.DisableProvider, Workspace: ws, Object: provided},
	)
	require.Len(t, r.Impossible, 2)
	require.Empty(t, w.activated)
}

// walks counts how often all people are looked at.
type walks struct {
	*world
	people int
}

func (w *walks) People() []*v1alpha1.User {
	w.people++
	return w.world.People()
}

// Somebody who makes an Organization after the backup, and adds and removes people there for hours, holds nobody up, and fills
// neither the report nor the log.
func TestRun_looksOnceForAnOrgThatTheBackupDoesNotHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applier.PersonalOrgs = true
	members := &walks{world: w}
	w.applier.Members = members
	const other = "5f8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0f6"
	steps := []restore.Step{{Kind: restore.RejectPerson, Source: "0", Object: "carol"}}
	for i := range 20 {
		uuid := fmt.Sprintf("6f8f0bd6-2d34-4c28-9ad4-6f0ee1b5a0%02d", i)
		steps = append(steps, restore.Step{Kind: restore.LimitOrg, Source: fmt.Sprint(i), Org: uuid})
	}
	for i := range 100 {
		one := restore.Step{Kind: restore.RemoveMember, Source: fmt.Sprint(i), Org: other, Object: fmt.Sprint("p", i), Events: 7}
		steps = append(steps, one)
	}
	steps = append(steps, restore.Step{Kind: restore.DeleteOrg, Source: "last", Org: other})
	core, logged := observer.New(zapcore.WarnLevel)
	ctx := log.Into(t.Context(), zap.New(core))
	plan := restore.Plan{Steps: steps}
	r, err := w.applier.Run(ctx, plan, restore.Report{})
	require.NoError(t, err)
	require.Len(t, r.Done, 1)
	require.Len(t, r.Impossible, 22, "a line for each kind")
	all, last := r.Impossible[20], r.Impossible[21]
	require.Equal(t, "p0", all.Object)
	require.Equal(t, 99, all.Others)
	require.Zero(t, last.Others)
	require.Equal(t, restore.DeleteOrg, last.Kind)
	require.Contains(t, all.Reason, "does not have the organization")
	require.Equal(t, 21, logged.Len())
	of := logged.FilterField(zap.String("org", other)).All()
	require.Len(t, of, 1)
	require.Equal(t, map[string]any{"org": other, "endings": int64(101), "reason": all.Reason}, of[0].ContextMap())
	require.Equal(t, 21, w.asks("get", "organizations"))
	require.Less(t, members.people, 6)

	// A start that follows does nothing again.
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	var read restore.Report
	require.NoError(t, json.Unmarshal(raw, &read))
	w.ForgetRequests()
	again, err := w.applier.Run(ctx, plan, read)
	require.NoError(t, err)
	require.Equal(t, read, again)
	require.Empty(t, w.Requests())
}
