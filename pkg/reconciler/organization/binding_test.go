package organization

import (
	"context"
	"slices"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const bindingsOrg = "231a151a-434e-4623-ad6e-69406abb9387"

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

// shop is the bindings of one Org in a kcp that follows at once, and in a memory that
// does, unless it has one of its own.
type shop struct {
	*testing.T
	held     []kcpapisv1alpha2.APIBinding
	memory   func() []*kcpapisv1alpha2.APIBinding
	lists    int
	written  []string
	failure  error
	bindings Bindings
	org      *v1alpha1.Organization
}

func newShop(t *testing.T) *shop {
	s := &shop{T: t, org: tenancy.NewOrganization(bindingsOrg, "ACME", "alice")}
	s.held = []kcpapisv1alpha2.APIBinding{*bound("kcps-abcde", "kcps"), *bound("ours-fghij", "ours", "workspaces", "apibindings")}
	s.memory = func() (held []*kcpapisv1alpha2.APIBinding) {
		for i := range s.held {
			held = append(held, &s.held[i])
		}
		return held
	}
	s.bindings = Bindings{
		Wanted: []*kcpapisv1alpha2.APIBinding{bound("kcps", "kcps"), bound("ours", "ours", "workspaces", "apibindings")},
		Held: func(cluster string) []*kcpapisv1alpha2.APIBinding {
			require.Equal(t, "org1", cluster)
			return s.memory()
		},
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
	}
	s.watched(metav1.ConditionTrue)
	return s
}

func (s *shop) watched(status metav1.ConditionStatus) {
	s.org.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWatched, Status: status}}
}

// pass shows on the Org what came of it, as the loop does.
func (s *shop) pass() (controller.Outcome, error) {
	step := &binding{place: func(string) (string, bool) { return "org1", true }, Bindings: s.bindings}
	require.Equal(s, v1alpha1.ConditionWatched, step.Condition())
	outcome, err := step.Reconcile(s.Context(), s.org)
	s.watched(metav1.ConditionTrue)
	if err != nil || outcome.Waiting != "" {
		s.watched(metav1.ConditionFalse)
	}
	return outcome, err
}

// remembers has memory stay as it is.
func (s *shop) remembers(held ...*kcpapisv1alpha2.APIBinding) {
	s.memory = func() []*kcpapisv1alpha2.APIBinding { return held }
}

// A sound Org costs no request. A new one costs none either, while memory is behind
// what kcp has just made; it is looked at again.
func TestASoundOrgIsNotAskedOf(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for range 2 {
		outcome, err := s.pass()
		require.NoError(t, err)
		require.Zero(t, outcome)
	}
	s.org.Status.Conditions = nil
	outcome, err := s.pass()
	require.NoError(t, err)
	require.Zero(t, outcome)

	s.org.Status.Conditions = nil
	s.remembers()
	outcome, err = s.pass()
	require.NoError(t, err)
	require.Equal(t, controller.Outcome{After: unseen}, outcome)
	require.Zero(t, s.lists)
	_, err = s.pass()
	require.NoError(t, err)
	require.Equal(t, 1, s.lists, "the control: it is behind for a moment only")
}

// What memory lacks, or has as it was, is not written while kcp has it.
func TestWhatMemoryLacksIsNotTakenToBeGone(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string][]*kcpapisv1alpha2.APIBinding{
		"of all bindings":   nil,
		"of one":            {bound("ours-fghij", "ours", "workspaces", "apibindings")},
		"of what it became": {bound("kcps-abcde", "kcps"), bound("ours-fghij", "ours")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.remembers(memory...)
			outcome, err := s.pass()
			require.NoError(t, err)
			require.Zero(t, outcome)
			require.Equal(t, 1, s.lists)
			require.Empty(t, s.written)

			s.held = nil
			_, err = s.pass()
			require.NoError(t, err)
			require.Equal(t, []string{"kcps", "ours"}, s.written, "the control: nor has kcp")
		})
	}
}

// What an Org says of a repair is asked for until kcp has it, whatever memory has, and
// also where kcp was not to be had.
func TestARepairIsFollowed(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.remembers(s.memory()...)
	s.held = s.held[:1]
	s.watched(metav1.ConditionFalse)
	s.failure = errDown
	_, err := s.pass()
	require.ErrorIs(t, err, errDown)
	s.failure = nil
	for range 2 {
		_, err = s.pass()
		require.NoError(t, err)
	}
	require.Equal(t, []string{"ours"}, s.written)
	require.Equal(t, 3, s.lists)
	outcome, err := s.pass()
	require.NoError(t, err)
	require.Zero(t, outcome)
	require.Equal(t, 3, s.lists)
}

// Who asks for a full reconciliation does not trust memory.
func TestAForcedPassAsksKCPForTheBindings(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.remembers(s.memory()...)
	s.held = s.held[:1]
	pass := controller.Reconcile(controller.Kind[*v1alpha1.Organization]{
		Get:    func(controller.Key) (*v1alpha1.Organization, bool) { return s.org, true },
		Copy:   (*v1alpha1.Organization).DeepCopy,
		Status: func(o *v1alpha1.Organization) *v1alpha1.CommonStatus { return &o.Status.CommonStatus },
		Patch:  func(context.Context, controller.Key, []byte, string) error { return nil },
		Clock:  clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)),
	}, &binding{place: func(string) (string, bool) { return "org1", true }, Bindings: s.bindings})
	key := controller.Key{Name: s.org.Name}
	_, err := pass(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, s.written, "the control: nobody asked")

	s.org.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationReconcile
	_, err = pass(t.Context(), key)
	require.NoError(t, err)
	delete(s.org.Annotations, v1alpha1.OperationAnnotation)
	_, err = pass(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, []string{"ours"}, s.written)
}

// Bindings that are right, or nobody's concern, wake no Org.
func TestWhichBindingsAreRight(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	going := bound("kcps-abcde", "kcps")
	going.DeletionTimestamp = &now
	binding := bound("kcps-abcde", "kcps")
	binding.Status.Phase = ""
	elsewhere := bound("ours", "ours")
	elsewhere.Spec.Reference.Export.Path, elsewhere.Status.APIExportClusterName = "root:mallory", "2def"
	s := newShop(t)
	for _, b := range []*kcpapisv1alpha2.APIBinding{
		&s.held[0], &s.held[1], bound("others", "others"), elsewhere, binding, bound("more", "ours", "secrets", "apibindings", "workspaces"),
	} {
		require.True(t, s.bindings.Right(b), "%v", b)
	}
	for _, b := range []*kcpapisv1alpha2.APIBinding{going, bound("ours-fghij", "ours"), bound("ours-fghij", "ours", "workspaces"), bound("ours-fghij", "ours", "apibindings")} {
		require.False(t, s.bindings.Right(b), "%v", b)
	}
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
		"nothing":              {damage: func(*shop) {}},
		"more claims":          {damage: func(s *shop) { s.held[1] = *bound("ours-fghij", "ours", "secrets", "workspaces", "apibindings") }},
		"found by its cluster": {damage: func(s *shop) { s.held[1].Spec.Reference.Export.Path = "1abc:the-same" }},
		"a claim rejected":     {damage: func(s *shop) { reject(&s.held[1]) }, says: "the binding of ours does not accept", written: []string{"ours-fghij"}},
		"applied, of few verbs": {damage: func(s *shop) {
			s.held[1].Spec.PermissionClaims[0].Verbs = []string{"get"}
			s.held[1].Status.AppliedPermissionClaims = []kcpapisv1alpha2.ScopedPermissionClaim{s.held[1].Spec.PermissionClaims[0].ScopedPermissionClaim}
		}, says: "the binding of ours does not accept", written: []string{"ours-fghij"}},
		"no claim yet":           {damage: func(s *shop) { s.held[1].Spec.PermissionClaims = s.held[1].Spec.PermissionClaims[:1] }, says: "the binding of ours does not accept", written: []string{"ours-fghij"}},
		"a claim gone":           {damage: func(s *shop) { s.held[1].Spec.PermissionClaims = nil }, says: "the binding of ours does not accept", written: []string{"ours-fghij"}},
		"a verb gone":            {damage: func(s *shop) { s.held[1].Spec.PermissionClaims[0].Verbs = []string{"get"} }, says: "the binding of ours does not accept", written: []string{"ours-fghij"}},
		"a claim of few objects": {damage: func(s *shop) { s.held[1].Spec.PermissionClaims[0].Selector.MatchAll = false }, says: "the binding of ours does not accept", written: []string{"ours-fghij", "ours-fghij"}},
		"the hub's API gone":     {damage: func(s *shop) { s.held = s.held[:1] }, says: "the binding of ours is gone", written: []string{"ours"}},
		"kcp's API gone":         {damage: func(s *shop) { s.held = s.held[1:] }, says: "the binding of kcps is gone", written: []string{"kcps"}},
		"both gone":              {damage: func(s *shop) { s.held = nil }, says: "the binding of kcps is gone", written: []string{"kcps", "ours"}},
		"another of that name, elsewhere": {damage: func(s *shop) {
			other := bound("elsewhere", "ours", "workspaces", "apibindings")
			other.Spec.Reference.Export.Path, other.Status.APIExportClusterName = "root:mallory", "2def"
			s.held[1] = *other
		}, says: "the binding of ours is gone", written: []string{"ours"}},
		"two of one export": {damage: func(s *shop) {
			reject(&s.held[1])
			second := bound("second", "ours", "workspaces", "apibindings")
			second.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBinding
			s.held = append(s.held, *second)
		}, says: "the binding of ours does not accept", written: []string{"ours-fghij"}},
		"one that goes, and one that is there": {damage: func(s *shop) {
			going := bound("going", "ours", "workspaces", "apibindings")
			going.DeletionTimestamp = &gone
			s.held = append(s.held, *going)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			c.damage(s)
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
			for _, want := range s.bindings.Wanted {
				_, waiting := compare(want, s.held)
				require.Empty(t, waiting)
			}
			s.held = slices.DeleteFunc(s.held, func(b kcpapisv1alpha2.APIBinding) bool { return b.DeletionTimestamp != nil })
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
		"removed": {is: func(b *kcpapisv1alpha2.APIBinding) { b.DeletionTimestamp = &gone }, says: "what kcp removes with it is lost"},
		"bound":   {is: func(b *kcpapisv1alpha2.APIBinding) { b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBinding }, says: "kcp is binding ours"},
		"hidden": {is: func(b *kcpapisv1alpha2.APIBinding) {
			b.Status.AppliedPermissionClaims = []kcpapisv1alpha2.ScopedPermissionClaim{b.Spec.PermissionClaims[0].ScopedPermissionClaim}
			b.Spec.PermissionClaims[0].State = kcpapisv1alpha2.ClaimRejected
		}, says: "does not accept all claims"},
		"hidden, and the claim is gone": {is: func(b *kcpapisv1alpha2.APIBinding) {
			b.Status.AppliedPermissionClaims = []kcpapisv1alpha2.ScopedPermissionClaim{b.Spec.PermissionClaims[0].ScopedPermissionClaim}
			b.Spec.PermissionClaims = nil
		}, says: "does not accept all claims"},
		"of another's export": {is: func(b *kcpapisv1alpha2.APIBinding) { *b = *bound("ours", "mallorys") }, says: "another binding has the name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			c.is(&s.held[1])
			s.watched(metav1.ConditionFalse)
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
