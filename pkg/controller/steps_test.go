package controller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

func TestSteps_runInOrderUntilOneStopsOrFails(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		second controller.Result
		err    error
		want   []string
		after  time.Duration
	}{
		"all":           {want: []string{"A", "B", "C"}, after: 3 * time.Minute},
		"one waits":     {second: controller.Result{Message: "kcp"}, want: []string{"A", "B", "C"}, after: 3 * time.Minute},
		"soonest again": {second: controller.Result{RequeueAfter: time.Second}, want: []string{"A", "B", "C"}, after: time.Second},
		"later again":   {second: controller.Result{RequeueAfter: time.Hour}, want: []string{"A", "B", "C"}, after: 3 * time.Minute},
		"one stops":     {second: controller.Result{Stop: true}, want: []string{"A", "B"}, after: 5 * time.Minute},
		"one fails":     {err: boom, want: []string{"A", "B"}, after: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			var ran []string
			record := func(name string, result controller.Result, err error) step {
				return on(name, func(context.Context, *org) (controller.Result, error) {
					ran = append(ran, name)
					return result, err
				})
			}
			result, err := s.reconciler(
				record("A", controller.Result{RequeueAfter: 5 * time.Minute}, nil),
				record("B", c.second, c.err),
				record("C", controller.Result{RequeueAfter: 3 * time.Minute}, nil),
			)(t.Context(), acme)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.want, ran)
			require.Equal(t, c.after, result.RequeueAfter)
		})
	}
}

// A step that makes something can fail for long. Those that end something run all the same, unless the object is out of date.
func TestSteps_runBesideTheFailureOfAnIndependentOne(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for failure, want := range map[error][]string{boom: {"A", "Independent", "C", "D"}, controller.ErrRetry: {"A", "Independent"}} {
		s := newServer(t)
		var ran []string
		record := func(name string, err error) step {
			return on(name, func(context.Context, *org) (controller.Result, error) {
				ran = append(ran, name)
				return controller.Result{}, err
			})
		}
		pass := s.reconciler(record("A", nil), record("Independent", failure), record("C", nil), record("D", boom), record("E", nil))
		_, err := pass(t.Context(), acme)
		require.ErrorIs(t, err, failure)
		require.Equal(t, want, ran)
	}
}

func TestSteps_seeWhatThoseBeforeThemChanged(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var seen string
	s.pass(s.reconciler(on("A", func(_ context.Context, o *org) (controller.Result, error) {
		o.Status.WorkspacePath = "root:orgs:acme"
		return controller.Result{}, nil
	}), on("B", func(_ context.Context, o *org) (controller.Result, error) {
		seen = o.Status.WorkspacePath
		return controller.Result{}, nil
	})))
	require.Equal(t, "root:orgs:acme", seen)
	require.Equal(t, "root:orgs:acme", s.stored.Status.WorkspacePath)
}

func TestSteps_changeACopy(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.edit(func(o *org) { o.Labels = map[string]string{"a": "b"} })
	s.edit(annotate(v1alpha1.OperationReconcile))
	f := s.reconciler(on("A", func(_ context.Context, o *org) (controller.Result, error) {
		o.Labels["a"] = "c"
		return controller.Result{}, nil
	}))
	for range 3 {
		held := s.stored
		before := held.DeepCopy()
		s.pass(f)
		require.Equal(t, before, held, "what memory holds is shared")
	}
	require.Equal(t, "c", s.stored.Labels["a"])
}

func TestSteps_ofAMissingObjectDoNotRun(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.stored = nil
	s.pass(s.reconciler(on("A", func(context.Context, *org) (controller.Result, error) {
		t.Error("there is no object")
		return controller.Result{}, nil
	})))
	require.Empty(t, s.taken())
}

func TestO11_whatWasTakenAwayIsPutBackEachTime(t *testing.T) {
	t.Parallel()
	s, there, made := newServer(t), false, 0
	f := s.reconciler(on("A", func(context.Context, *org) (controller.Result, error) {
		if !there {
			there = true
			made++
		}
		return controller.Result{}, nil
	}))
	for i := range 5 {
		there = false
		s.pass(f)
		require.Equal(t, i+1, made)
	}
	require.Len(t, s.taken(), 1, "and nothing is written while the status is as it was")
}

func TestPanicInAStep_nothingHalfChangedIsWritten(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := s.reconciler(on("A", func(_ context.Context, o *org) (controller.Result, error) {
		o.Finalizers = []string{"example.com/half"}
		o.Spec.DisplayName = ""
		o.Status.WorkspacePath = "half"
		panic("secret")
	}))
	_, err := f(t.Context(), acme)
	require.ErrorContains(t, err, "secret")
	require.Empty(t, s.stored.Finalizers)
	require.Equal(t, "Acme", s.stored.Spec.DisplayName)
	require.Empty(t, s.stored.Status.WorkspacePath)
	require.Equal(t, int64(1), s.stored.Status.ObservedGeneration)
	require.Equal(t, metav1.ConditionFalse, s.condition("A").Status)
	require.NotContains(t, s.condition("A").Message, "secret")
}

func TestEndedContext_nothingIsWrittenByOneWhoLeadsNoMore(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	end := true
	f := s.reconciler(on("A", func(ctx context.Context, _ *org) (controller.Result, error) {
		if end {
			cancel()
		}
		return controller.Result{}, ctx.Err()
	}))
	_, err := f(ctx, acme)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, s.taken())

	end = false
	s.pass(f)
	require.Len(t, s.taken(), 1)
}
