package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

func TestPhase(t *testing.T) {
	t.Parallel()
	done := controller.Result{}
	foreign := func(status metav1.ConditionStatus) func(*org) {
		return func(o *org) {
			o.Status.Conditions = []metav1.Condition{{Type: "Foreign", Status: status, Reason: "R", Message: "somebody else says so"}}
		}
	}
	for name, c := range map[string]struct {
		edit    func(*org)
		steps   []step
		phase   v1alpha1.Phase
		message string
	}{
		"all there":                       {steps: []step{gives("A", done, nil), gives("B", done, nil)}, phase: v1alpha1.PhaseReady},
		"no steps":                        {phase: v1alpha1.PhaseReady},
		"one waits":                       {steps: []step{gives("A", controller.Result{Message: "kcp is busy"}, nil), gives("B", done, nil)}, phase: v1alpha1.PhaseProgressing, message: "kcp is busy"},
		"one was not reached":             {steps: []step{gives("A", controller.Result{Stop: true}, nil), gives("B", done, nil)}, phase: v1alpha1.PhaseProgressing, message: "B has not been looked at yet"},
		"one failed":                      {steps: []step{gives("A", done, nil), gives("B", done, errs.New(errs.Conflict, "the name is taken"))}, phase: v1alpha1.PhaseProgressing, message: "the name is taken"},
		"another's condition stands":      {edit: foreign(metav1.ConditionTrue), steps: []step{gives("A", done, nil)}, phase: v1alpha1.PhaseReady},
		"another's condition is False":    {edit: foreign(metav1.ConditionFalse), steps: []step{gives("A", done, nil)}, phase: v1alpha1.PhaseProgressing, message: "somebody else says so"},
		"another's condition is Unknown":  {edit: foreign(metav1.ConditionUnknown), steps: []step{gives("A", done, nil)}, phase: v1alpha1.PhaseProgressing, message: "somebody else says so"},
		"only an informative one waits":   {steps: []step{gives("Informative", controller.Result{Message: "kcp is busy"}, nil), gives("B", done, nil)}, phase: v1alpha1.PhaseReady},
		"only an informative one failed":  {steps: []step{gives("B", done, nil), gives("Informative", done, errors.New("boom"))}, phase: v1alpha1.PhaseReady},
		"one waits beside an informative": {steps: []step{gives("Informative", controller.Result{Message: "x"}, nil), gives("B", controller.Result{Message: "kcp is busy"}, nil)}, phase: v1alpha1.PhaseProgressing, message: "kcp is busy"},
		"all there but it is terminating": {edit: deleting, steps: []step{gives("A", done, nil)}, phase: v1alpha1.PhaseTerminating, message: "it is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			if c.edit != nil {
				s.edit(c.edit)
			}
			_, _ = s.reconciler(c.steps...)(t.Context(), acme)
			require.Equal(t, c.phase, s.stored.Status.Phase)
			require.Equal(t, int64(1), s.stored.Status.ObservedGeneration)
			ready := s.condition(v1alpha1.ConditionReady)
			require.Equal(t, c.message, ready.Message)
			require.Equal(t, c.phase == v1alpha1.PhaseReady, ready.Status == metav1.ConditionTrue)
			require.Equal(t, int64(1), ready.ObservedGeneration)
		})
	}
}

func TestNote_isTheMessageOfAConditionThatIsTrue(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.pass(s.reconciler(gives("A", controller.Result{Note: "removed 2 objects"}, nil), gives("B", controller.Result{Note: "n", Message: "w"}, nil)))
	require.Equal(t, "removed 2 objects", s.condition("A").Message)
	require.Equal(t, metav1.ConditionTrue, s.condition("A").Status)
	require.Equal(t, "w", s.condition("B").Message)
}

func TestReady_comesBackWithTheLastThatWasMissing(t *testing.T) {
	t.Parallel()
	s, waiting := newServer(t), "kcp"
	f := s.reconciler(on("A", func(context.Context, *org) (controller.Result, error) {
		return controller.Result{Message: waiting}, nil
	}))
	for range 2 {
		waiting = "kcp"
		s.pass(f)
		require.Equal(t, v1alpha1.PhaseProgressing, s.stored.Status.Phase)
		waiting = ""
		s.pass(f)
		require.Equal(t, v1alpha1.PhaseReady, s.stored.Status.Phase)
		require.Equal(t, metav1.ConditionTrue, s.condition(v1alpha1.ConditionReady).Status)
		require.Empty(t, s.condition(v1alpha1.ConditionReady).Message)
	}
}

func TestReady_aStepThatWasNotReachedDoesNotSpeakForANewGeneration(t *testing.T) {
	t.Parallel()
	s, stop := newServer(t), false
	f := s.reconciler(on("A", func(context.Context, *org) (controller.Result, error) {
		return controller.Result{Stop: stop}, nil
	}), gives("B", controller.Result{}, nil))
	s.pass(f)
	require.Equal(t, v1alpha1.PhaseReady, s.stored.Status.Phase)

	stop = true
	s.pass(f)
	require.Equal(t, v1alpha1.PhaseReady, s.stored.Status.Phase, "of the same generation it does")

	s.edit(func(o *org) { o.Spec.DisplayName = "Other" })
	s.pass(f)
	require.Equal(t, v1alpha1.PhaseProgressing, s.stored.Status.Phase)
	require.Equal(t, int64(1), s.condition("B").ObservedGeneration, "it is kept")
}

func TestConditions_keepTheirTimeAndOneAnother(t *testing.T) {
	t.Parallel()
	s, waiting := newServer(t), ""
	f := s.reconciler(on("A", func(context.Context, *org) (controller.Result, error) {
		return controller.Result{Message: waiting}, nil
	}))
	old := metav1.Condition{Type: "Old", Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.NewTime(s.clock.Now().Add(-time.Hour).Truncate(time.Second))}
	s.edit(func(o *org) { o.Status.Conditions = []metav1.Condition{old} })
	began := s.clock.Now().Truncate(time.Second)

	s.pass(f)
	require.True(t, began.Equal(s.condition("A").LastTransitionTime.Time))

	s.clock.Step(time.Minute)
	s.edit(func(o *org) { o.Spec.DisplayName = "Other" })
	s.pass(f)
	require.Equal(t, int64(2), s.condition("A").ObservedGeneration)
	require.True(t, began.Equal(s.condition("A").LastTransitionTime.Time), "the status is as before")

	s.clock.Step(time.Minute)
	waiting = "kcp"
	s.pass(f)
	require.True(t, began.Add(2*time.Minute).Equal(s.condition("A").LastTransitionTime.Time))
	require.True(t, old.LastTransitionTime.Equal(&s.condition("Old").LastTransitionTime))
}

func TestShown_internalTextStaysOffTheObject(t *testing.T) {
	t.Parallel()
	const generic = "it failed and is tried again; the hub's log says why"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"written for people":      {errs.New(errs.Conflict, "the name is taken"), "the name is taken"},
		"with a cause behind it":  {errs.Wrap(errs.Unavailable, errors.New("dial tcp 10.0.0.1: secret"), "kcp does not answer"), "kcp does not answer"},
		"wrapped by the step":     {fmt.Errorf("secret: %w", errs.New(errs.NotFound, "it is gone")), "it is gone"},
		"a library's":             {errors.New("dial tcp 10.0.0.1: secret"), generic},
		"internal":                {errs.Wrap(errs.Internal, errors.New("secret"), "secret"), generic},
		"without a code":          {&errs.Error{Message: "secret"}, generic},
		"without a message":       {&errs.Error{Code: errs.Conflict, Err: errors.New("secret")}, generic},
		"a library's beside ours": {errors.Join(errors.New("secret"), errs.New(errs.NotFound, "it is gone")), "it is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			_, err := s.reconciler(gives("A", controller.Result{}, c.err))(t.Context(), acme)
			require.ErrorIs(t, err, c.err, "the log has it whole")
			require.ErrorContains(t, err, "A: ")
			a := s.condition("A")
			require.Equal(t, metav1.ConditionFalse, a.Status)
			require.Equal(t, v1alpha1.ReasonFailed, a.Reason)
			require.Equal(t, c.want, a.Message)
			require.Equal(t, c.want, s.condition(v1alpha1.ConditionReady).Message)
		})
	}
}

func TestObservedGeneration_isSetWhenAStepFails(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := s.reconciler(gives("A", controller.Result{}, errors.New("boom")))
	s.edit(func(o *org) { o.Spec.DisplayName = "Other" })
	_, err := f(t.Context(), acme)
	require.Error(t, err)
	require.Equal(t, int64(2), s.stored.Status.ObservedGeneration)

	s.taken()
	_, err = f(t.Context(), acme)
	require.Error(t, err)
	require.Empty(t, s.taken(), "a failure that lasts is written once")
}

func TestConflictInAStep_saysNothingAgainstTheObject(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var result controller.Result
	var err error
	f := s.reconciler(on("A", func(context.Context, *org) (controller.Result, error) { return result, err }))
	s.pass(f)
	s.taken()

	err = fmt.Errorf("write: %w", controller.ErrRetry)
	_, got := f(t.Context(), acme)
	require.ErrorIs(t, got, controller.ErrRetry)
	require.Empty(t, s.taken())
	require.Equal(t, v1alpha1.PhaseReady, s.stored.Status.Phase)

	for i, waiting := range []string{"", "kcp is finishing"} {
		result.Message = waiting
		s.edit(func(o *org) { o.Spec.DisplayName = fmt.Sprint("Other", i) })
		_, got = f(t.Context(), acme)
		require.ErrorIs(t, got, controller.ErrRetry)
		require.Equal(t, s.stored.Generation, s.stored.Status.ObservedGeneration)
		require.Equal(t, v1alpha1.ReasonWaiting, s.condition("A").Reason, "nothing is known of the new generation")
		require.Contains(t, s.condition("A").Message, waiting)
		require.NotEmpty(t, s.condition("A").Message)
	}
}
