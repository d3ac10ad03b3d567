package organization

import (
	"context"
	"slices"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	bindingsOrg = "231a151a-434e-4623-ad6e-69406abb9387"
	childUUID   = "6b1f0d3e-0000-4000-8000-000000000001"
)

// bound is a binding of an export in "root" that accepts a claim on each resource.
func bound(name, export string, resources ...string) *kcpapisv1alpha2.APIBinding {
	b := &kcpapisv1alpha2.APIBinding{}
	b.Name = name
	b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root", Name: export}
	b.Status.Phase, b.Status.APIExportClusterName = kcpapisv1alpha2.APIBindingPhaseBound, "root"
	for _, resource := range resources {
		c := kcpapisv1alpha2.AcceptablePermissionClaim{State: kcpapisv1alpha2.ClaimAccepted}
		c.Resource, c.Verbs, c.Selector.MatchAll = resource, []string{"get", "list"}, true
		b.Spec.PermissionClaims = append(b.Spec.PermissionClaims, c)
	}
	return b
}

// shop is the bindings of one Org in a kcp that follows at once.
type shop struct {
	*testing.T
	held     []kcpapisv1alpha2.APIBinding
	lists    int
	written  []string
	woken    []string
	failure  error
	clock    *clocktesting.FakePassiveClock
	bindings *Bindings
	org      *v1alpha1.Organization
	people   []*v1alpha1.Membership
	children []string
}

func newShop(t *testing.T) *shop {
	s := &shop{T: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)), org: tenancy.NewOrganization(bindingsOrg, "ACME", "alice")}
	s.held = []kcpapisv1alpha2.APIBinding{*bound("kcps-abcde", "kcps"), *bound("ours-fghij", "ours", "workspaces")}
	s.people = []*v1alpha1.Membership{tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin)}
	s.bindings = NewBindings(BindingsConfig{
		Clock:  s.clock,
		Wanted: []*kcpapisv1alpha2.APIBinding{bound("kcps", "kcps"), bound("ours", "ours", "workspaces")},
		Org:    func(uuid string) (string, bool) { return "org1", uuid == bindingsOrg },
		List: func(_ context.Context, cluster string) ([]kcpapisv1alpha2.APIBinding, error) {
			require.Equal(t, "org1", cluster)
			s.lists++
			return s.held, s.failure
		},
		Write: func(_ context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) error {
			require.Equal(t, "org1", cluster)
			s.written = append(s.written, b.Name)
			s.held = append(slices.DeleteFunc(slices.Clone(s.held), func(h kcpapisv1alpha2.APIBinding) bool { return h.Name == b.Name }), *b)
			return s.failure
		},
		Wake: func(org string) { s.woken = append(s.woken, org) },
	})
	s.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAsDesired)
	return s
}

func (s *shop) condition(name string, status metav1.ConditionStatus, reason string) {
	s.org.Status.Conditions = append(s.org.Status.Conditions, metav1.Condition{Type: name, Status: status, Reason: reason})
}

func (s *shop) pass() (controller.Outcome, error) {
	step := &binding{
		place:       func(string) (string, bool) { return "org1", true },
		existing:    func(string) []string { return s.children },
		memberships: func(string) []*v1alpha1.Membership { return s.people },
		bindings:    s.bindings,
	}
	require.Equal(s, v1alpha1.ConditionWatched, step.Condition())
	return step.Reconcile(s.Context(), s.org)
}

// An Org that nothing is wrong with costs no request: not while it is made, when
// nobody is in it yet, and not after that.
func TestASoundOrgIsNotAskedOf(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	made := s.org.DeepCopy()
	for _, c := range []struct {
		conditions []metav1.Condition
		people     []*v1alpha1.Membership
	}{
		{conditions: nil},
		{conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}, {Type: v1alpha1.ConditionWatched, Status: metav1.ConditionTrue}}},
		{conditions: made.Status.Conditions, people: s.people},
	} {
		s.org.Status.Conditions, s.people = c.conditions, c.people
		outcome, err := s.pass()
		require.NoError(t, err)
		require.Zero(t, outcome)
	}
	require.Zero(t, s.lists)
}

// O-11: what was done by hand to a binding is said and put right, without a second
// binding of an export.
func TestO11_TheBindingsOfAnOrgArePutRight(t *testing.T) {
	t.Parallel()
	gone := metav1.Now()
	reject := func(b *kcpapisv1alpha2.APIBinding) {
		b.Spec.PermissionClaims[0].State = kcpapisv1alpha2.ClaimRejected
	}
	for name, c := range map[string]struct {
		damage  func(s *shop)
		says    string
		written []string
	}{
		"nothing":                {damage: func(*shop) {}},
		"more claims":            {damage: func(s *shop) { s.held[1] = *bound("ours-fghij", "ours", "secrets", "workspaces") }},
		"found by its cluster":   {damage: func(s *shop) { s.held[1].Spec.Reference.Export.Path = "1abc:the-same" }},
		"a claim rejected":       {damage: func(s *shop) { reject(&s.held[1]) }, says: "the binding of ours by hand", written: []string{"ours-fghij"}},
		"a claim gone":           {damage: func(s *shop) { s.held[1].Spec.PermissionClaims = nil }, says: "the binding of ours by hand", written: []string{"ours-fghij"}},
		"a verb gone":            {damage: func(s *shop) { s.held[1].Spec.PermissionClaims[0].Verbs = []string{"get"} }, says: "the binding of ours by hand", written: []string{"ours-fghij"}},
		"a claim of few objects": {damage: func(s *shop) { s.held[1].Spec.PermissionClaims[0].Selector.MatchAll = false }, says: "the binding of ours by hand", written: []string{"ours-fghij", "ours-fghij"}},
		"the hub's API gone":     {damage: func(s *shop) { s.held = s.held[:1] }, says: "the binding of ours is gone", written: []string{"ours"}},
		"kcp's API gone":         {damage: func(s *shop) { s.held = s.held[1:] }, says: "the binding of kcps is gone", written: []string{"kcps"}},
		"both gone":              {damage: func(s *shop) { s.held = nil }, says: "the binding of kcps is gone", written: []string{"kcps", "ours"}},
		"another of that name, elsewhere": {damage: func(s *shop) {
			other := bound("elsewhere", "ours", "workspaces")
			other.Spec.Reference.Export.Path, other.Status.APIExportClusterName = "root:mallory", "2def"
			s.held[1] = *other
		}, says: "the binding of ours is gone", written: []string{"ours"}},
		"two of one export": {damage: func(s *shop) {
			reject(&s.held[1])
			second := bound("second", "ours", "workspaces")
			second.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBinding
			s.held = append(s.held, *second)
		}, says: "the binding of ours by hand", written: []string{"ours-fghij"}},
		"one that goes, and one that is there": {damage: func(s *shop) {
			going := bound("going", "ours", "workspaces")
			going.DeletionTimestamp = &gone
			s.held = append(s.held, *going)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			c.damage(s)
			s.bindings.Suspect(bindingsOrg)
			outcome, err := s.pass()
			require.NoError(t, err)
			require.Equal(t, c.says != "", outcome.Stop)
			require.Contains(t, outcome.Waiting, c.says)
			for ; outcome.Waiting != ""; outcome, err = s.pass() {
				require.NoError(t, err)
				require.Equal(t, following, outcome.After)
				require.LessOrEqual(t, len(s.written), len(c.written))
			}
			require.Equal(t, c.written, s.written)
			for _, want := range s.bindings.config.Wanted {
				_, waiting := compare(want, s.held)
				require.Empty(t, waiting)
			}
			lists := s.lists
			_, err = s.pass()
			require.NoError(t, err)
			require.Equal(t, lists, s.lists, "what is right again is left alone")
		})
	}
}

// While kcp is at it nothing is written, and the Org is not Ready.
func TestABindingThatKCPIsAtIsWaitedFor(t *testing.T) {
	t.Parallel()
	gone := metav1.Now()
	for name, c := range map[string]struct {
		is   func(b *kcpapisv1alpha2.APIBinding)
		says string
	}{
		"removed":             {is: func(b *kcpapisv1alpha2.APIBinding) { b.DeletionTimestamp = &gone }, says: "what kcp removes with it is lost"},
		"bound":               {is: func(b *kcpapisv1alpha2.APIBinding) { b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBinding }, says: "kcp is binding ours"},
		"of another's export": {is: func(b *kcpapisv1alpha2.APIBinding) { *b = *bound("ours", "mallorys") }, says: "another binding has the name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			c.is(&s.held[1])
			s.bindings.Suspect(bindingsOrg)
			for range 3 {
				outcome, err := s.pass()
				require.NoError(t, err)
				require.Contains(t, outcome.Waiting, c.says)
				require.True(t, outcome.Stop)
			}
			require.Empty(t, s.written)
		})
	}
}

// What a missing binding brings about has kcp asked, whatever this hub has seen.
func TestO11_TheStateOfAnOrgHintsAtItsBindings(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]func(s *shop){
		"nobody is in it":            func(s *shop) { s.people = nil },
		"somebody in a Workspace is": func(s *shop) { s.people = []*v1alpha1.Membership{tenancy.NewMembership("bob", childUUID, "")} },
		"it is not whole":            func(s *shop) { s.condition(v1alpha1.ConditionWatched, metav1.ConditionFalse, v1alpha1.ReasonWaiting) },
		"nobody can be put in":       func(s *shop) { s.condition(v1alpha1.ConditionFirstAdmin, metav1.ConditionFalse, v1alpha1.ReasonFailed) },
		"no Workspace can be made": func(s *shop) {
			s.condition(v1alpha1.ConditionClaimsHandled, metav1.ConditionFalse, v1alpha1.ReasonFailed)
		},
		"nobody can be taken out": func(s *shop) {
			s.condition(v1alpha1.ConditionMembersChanged, metav1.ConditionFalse, v1alpha1.ReasonFailed)
		},
		"the first look did not work": func(s *shop) {
			s.bindings.Suspect(bindingsOrg)
			s.failure = errDown
			_, _ = s.pass()
			s.failure = nil
			s.lists = 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			is(s)
			_, err := s.pass()
			require.NoError(t, err)
			require.Equal(t, 1, s.lists)
		})
	}
}

// O-11: a Workspace that was made and does not show is out of the hub's sight; a
// moment later than the write it may be.
func TestO11_AWorkspaceThatDoesNotShowHintsAtItsBindings(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.org.Spec.WorkspaceClaims = []v1alpha1.Claim{{UUID: childUUID, Request: &v1alpha1.ClaimRequest{}}}
	outcome, err := s.pass()
	require.NoError(t, err)
	require.Zero(t, outcome, "it was not made yet")

	s.org.Spec.WorkspaceClaims[0].Request = nil
	outcome, err = s.pass()
	require.NoError(t, err)
	require.Equal(t, controller.Outcome{After: unseen}, outcome)
	s.children = []string{childUUID}
	s.clock.SetTime(s.clock.Now().Add(unseen))
	outcome, err = s.pass()
	require.NoError(t, err)
	require.Zero(t, outcome)

	s.children = nil
	_, err = s.pass()
	require.NoError(t, err)
	s.clock.SetTime(s.clock.Now().Add(unseen - time.Second))
	outcome, err = s.pass()
	require.NoError(t, err)
	require.Equal(t, time.Second, outcome.After)
	require.Zero(t, s.lists)
	s.clock.SetTime(s.clock.Now().Add(time.Second))
	_, err = s.pass()
	require.NoError(t, err)
	require.Equal(t, 1, s.lists)
}

func TestWhatBecomesOfWorkspacesHintsAtTheBindings(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	ws := func(deleted, asked bool) *kcptenancyv1alpha1.Workspace {
		ws := &kcptenancyv1alpha1.Workspace{}
		ws.Name = childUUID
		if deleted {
			ws.DeletionTimestamp = &now
		}
		if asked {
			ws.Annotations = map[string]string{v1alpha1.DeletionRequestedAtAnnotation: "2026-01-01T00:00:00Z"}
		}
		return ws
	}
	for name, c := range map[string]struct {
		old, new *kcptenancyv1alpha1.Workspace
		orgGone  bool
		hint     bool
	}{
		"it is made":                         {new: ws(false, false)},
		"it changes":                         {old: ws(false, false), new: ws(false, false)},
		"somebody asks for its end":          {old: ws(false, false), new: ws(false, true)},
		"the hub removes it":                 {old: ws(false, true), new: ws(true, true)},
		"it is removed":                      {old: ws(true, true)},
		"it is gone at last":                 {old: ws(true, false)},
		"it is out of sight":                 {old: ws(false, false), hint: true},
		"it is removed, and nobody asked":    {old: ws(false, false), new: ws(true, false), hint: true},
		"it is removed with the Org that is": {old: ws(false, false), new: ws(true, false), orgGone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			if c.orgGone {
				s.org.Status.DeletionRequestedAt = &now
			}
			require.Equal(t, c.hint, s.bindings.Saw(tenancy.Org{Organization: s.org}, c.old, c.new))
			require.False(t, s.bindings.Saw(tenancy.Org{}, c.old, c.new), "an Org that is not in memory")
			_, err := s.pass()
			require.NoError(t, err)
			require.Equal(t, c.hint, s.lists == 1)
		})
	}
}

// A look at all Orgs brings back those that nothing hinted at.
func TestALookWakesOrgsWhoseBindingsAreNotRight(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	look := func(org string) error {
		_, err := s.bindings.Look(t.Context(), controller.Key{Cluster: "orgs", Name: org})
		return err
	}
	require.NoError(t, look(bindingsOrg))
	require.NoError(t, look("of nobody"))
	require.Equal(t, 1, s.lists)
	require.Empty(t, s.woken)
	s.held = s.held[:1]
	require.NoError(t, look(bindingsOrg))
	require.Equal(t, []string{bindingsOrg}, s.woken)
	require.Empty(t, s.written, "only the Org's own pass writes")
	outcome, err := s.pass()
	require.NoError(t, err)
	require.NotEmpty(t, outcome.Waiting)
	s.failure = errDown
	require.ErrorIs(t, look(bindingsOrg), errDown)
	_, err = s.pass()
	require.ErrorIs(t, err, errDown)
}
