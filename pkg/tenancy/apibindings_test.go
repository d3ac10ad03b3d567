package tenancy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// bound returns a binding of an export in "root" that accepts a claim on each resource.
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

// errDown is the error of an unreachable kcp.
var errDown = errors.New("kcp cannot be reached")

// shop holds the bindings of one Organization in a fake kcp that reconciles at once. The
// cache is up to date unless remembers was called.
type shop struct {
	*testing.T
	held     []kcpapisv1alpha2.APIBinding
	memory   func() []*kcpapisv1alpha2.APIBinding
	lists    int
	written  []string
	failure  error
	bindings Bindings
	said     *metav1.Condition
}

// outcome is the result of a pass.
type outcome struct {
	waiting string
	after   time.Duration
}

func newShop(t *testing.T) *shop {
	s := &shop{T: t}
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
			s.written = append(s.written, cmp.Or(b.Name, b.GenerateName))
			s.held = append(slices.DeleteFunc(slices.Clone(s.held), func(h kcpapisv1alpha2.APIBinding) bool { return h.Name == b.Name }), *b)
			return s.failure
		},
	}
	s.watched(metav1.ConditionTrue)
	return s
}

func (s *shop) watched(status metav1.ConditionStatus) {
	s.said = &metav1.Condition{Type: v1alpha1.ConditionWatched, Status: status}
}

// pass runs Keep and records the condition, as the queue loop does.
func (s *shop) pass() (outcome, error) { return s.does(false) }

func (s *shop) does(forced bool) (outcome, error) {
	waiting, after, err := s.bindings.Keep(s.Context(), "org1", s.said, forced)
	s.watched(metav1.ConditionTrue)
	if err != nil || waiting != "" {
		s.watched(metav1.ConditionFalse)
	}
	return outcome{waiting, after}, err
}

// remembers freezes the cache in its current state.
func (s *shop) remembers(held ...*kcpapisv1alpha2.APIBinding) {
	s.memory = func() []*kcpapisv1alpha2.APIBinding { return held }
}

// An Organization as desired costs no request. A new one whose bindings are not in the cache
// yet costs none either; it is checked again.
func TestKeep_doesNotListWhatIsAsDesired(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for range 2 {
		got, err := s.pass()
		require.NoError(t, err)
		require.Zero(t, got)
	}
	s.said = nil
	got, err := s.pass()
	require.NoError(t, err)
	require.Zero(t, got)

	s.said = nil
	s.remembers()
	got, err = s.pass()
	require.NoError(t, err)
	require.Equal(t, outcome{after: recheckNew}, got)
	require.Zero(t, s.lists)
	_, err = s.pass()
	require.NoError(t, err)
	require.Equal(t, 1, s.lists, "the control: it is behind for a moment only")
}

// A binding that is missing or outdated in the cache only is not written.
func TestKeep_listsBeforeItCreates(t *testing.T) {
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
			got, err := s.pass()
			require.NoError(t, err)
			require.Zero(t, got)
			require.Equal(t, 1, s.lists)
			require.Empty(t, s.written)

			s.held = nil
			for range 2 {
				_, err = s.pass()
				require.NoError(t, err)
			}
			require.Equal(t, []string{"kcps", "ours"}, s.written, "the control: nor has kcp")
		})
	}
}

// A repair is checked in kcp until it is complete, whatever the cache has, and also after kcp
// was unreachable.
func TestKeep_checksAgainAfterARepair(t *testing.T) {
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
	got, err := s.pass()
	require.NoError(t, err)
	require.Zero(t, got)
	require.Equal(t, 3, s.lists)
}

// A forced reconciliation does not trust the cache.
func TestKeep_listsWhenForced(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.remembers(s.memory()...)
	s.held = s.held[:1]
	_, err := s.pass()
	require.NoError(t, err)
	require.Empty(t, s.written, "the control: nobody asked")
	for range 2 {
		_, err = s.does(true)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"ours"}, s.written)
}

// O-11: the write of the condition can fail, and a repair that came first would never be reported.
func TestKeep_saysWhatIsMissingBeforeItRepairs(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.held = s.held[:1]
	for range 2 {
		got, err := s.pass()
		require.NoError(t, err)
		require.Equal(t, outcome{"the binding of ours is missing; the hub is creating it", recheckRepair}, got)
		require.Empty(t, s.written)
		s.watched(metav1.ConditionTrue) // kcp refused the condition
	}
	s.watched(metav1.ConditionFalse)
	_, err := s.pass()
	require.NoError(t, err)
	require.Equal(t, []string{"ours"}, s.written)
}

func TestKeep_withoutBindingsDoesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.bindings.Wanted = nil
	_, err := s.does(true)
	require.NoError(t, err)
	require.Zero(t, s.lists)
}

// Bindings that are as desired, or not wanted, enqueue no Organization.
func TestRight_comparesExportAndClaims(t *testing.T) {
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

// A manual change of a binding is reported and repaired, without a second binding of the
// export (O-11).
func TestKeep_repairsBindings(t *testing.T) {
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
		"no claim yet":           {damage: func(s *shop) { s.held[1].Spec.PermissionClaims = s.held[1].Spec.PermissionClaims[:1] }, written: []string{"ours-fghij"}},
		"a claim gone":           {damage: func(s *shop) { s.held[1].Spec.PermissionClaims = nil }, says: "the binding of ours does not accept", written: []string{"ours-fghij"}},
		"a verb gone":            {damage: func(s *shop) { s.held[1].Spec.PermissionClaims[0].Verbs = []string{"get"} }, says: "the binding of ours does not accept", written: []string{"ours-fghij"}},
		"a claim of few objects": {damage: func(s *shop) { s.held[1].Spec.PermissionClaims[0].Selector.MatchAll = false }, says: "the binding of ours does not accept", written: []string{"ours-fghij", "ours-fghij"}},
		"the hub's API gone":     {damage: func(s *shop) { s.held = s.held[:1] }, says: "the binding of ours is missing", written: []string{"ours"}},
		"kcp's API gone":         {damage: func(s *shop) { s.held = s.held[1:] }, says: "the binding of kcps is missing", written: []string{"kcps"}},
		"both gone":              {damage: func(s *shop) { s.held = nil }, says: "the binding of kcps is missing", written: []string{"kcps", "ours"}},
		"another of that name, elsewhere": {damage: func(s *shop) {
			other := bound("elsewhere", "ours", "workspaces", "apibindings")
			other.Spec.Reference.Export.Path, other.Status.APIExportClusterName = "root:mallory", "2def"
			s.held[1] = *other
		}, says: "the binding of ours is missing", written: []string{"ours"}},
		"deleted, and held": {damage: func(s *shop) {
			s.held[1].DeletionTimestamp, s.held[1].Finalizers = &gone, []string{finalizer, "example.com/held"}
		}, says: "what kcp deletes with it is lost", written: []string{"ours-fghij", "ours"}},
		"its name taken": {damage: func(s *shop) { s.held[1] = *bound("ours", "mallorys") }, says: "the binding of ours is missing", written: []string{"ours-"}},
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
			got, err := s.pass()
			require.NoError(t, err)
			require.Equal(t, c.says != "", got.waiting != "")
			require.Contains(t, got.waiting, c.says)
			for ; got.waiting != ""; got, err = s.pass() {
				require.NoError(t, err)
				require.Equal(t, recheckRepair, got.after)
				require.LessOrEqual(t, len(s.written), len(c.written))
				// kcp removes its own finalizer.
				s.held = slices.DeleteFunc(s.held, func(b kcpapisv1alpha2.APIBinding) bool {
					return b.DeletionTimestamp != nil && slices.Equal(b.Finalizers, []string{finalizer})
				})
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

// Nothing is written while kcp binds, and the Organization is not Ready.
func TestKeep_waitsForABindingInProgress(t *testing.T) {
	t.Parallel()
	gone := metav1.Now()
	for name, c := range map[string]struct {
		is   func(b *kcpapisv1alpha2.APIBinding)
		says string
	}{
		"removed": {is: func(b *kcpapisv1alpha2.APIBinding) { b.DeletionTimestamp = &gone }, says: "what kcp deletes with it is lost"},
		"bound":   {is: func(b *kcpapisv1alpha2.APIBinding) { b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBinding }, says: "kcp is binding ours"},
		"hidden": {is: func(b *kcpapisv1alpha2.APIBinding) {
			b.Status.AppliedPermissionClaims = []kcpapisv1alpha2.ScopedPermissionClaim{b.Spec.PermissionClaims[0].ScopedPermissionClaim}
			b.Spec.PermissionClaims[0].State = kcpapisv1alpha2.ClaimRejected
		}, says: "does not accept all claims"},
		"hidden, and the claim is gone": {is: func(b *kcpapisv1alpha2.APIBinding) {
			b.Status.AppliedPermissionClaims = []kcpapisv1alpha2.ScopedPermissionClaim{b.Spec.PermissionClaims[0].ScopedPermissionClaim}
			b.Spec.PermissionClaims = nil
		}, says: "does not accept all claims"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			c.is(&s.held[1])
			s.watched(metav1.ConditionFalse)
			for range 3 {
				got, err := s.pass()
				require.NoError(t, err)
				require.Contains(t, got.waiting, c.says)
			}
			require.Empty(t, s.written)
		})
	}
}
