package controller_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

func TestIgnore_nothingIsDoneNorWritten(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*org){
		"new":        func(*org) {},
		"changed":    func(o *org) { o.Spec.DisplayName = "Other" },
		"terminated": deleting,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, calls := newServer(t), 0
			f := s.reconciler(on("A", func(context.Context, *org) (controller.Result, error) {
				calls++
				return controller.Result{}, nil
			}))
			s.edit(annotate(v1alpha1.OperationIgnore))
			s.edit(change)
			require.Zero(t, s.pass(f))
			require.Zero(t, calls)
			require.Empty(t, s.taken())
			require.Zero(t, s.stored.Status.ObservedGeneration)

			s.edit(removeAnnotation)
			s.pass(f)
			require.Equal(t, 1, calls)
			require.Equal(t, s.stored.Generation, s.stored.Status.ObservedGeneration)
		})
	}
}

func TestReconcileAnnotation_isRemovedAndThePassAfterItIsForced(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var forced []bool
	f := s.reconciler(on("A", func(ctx context.Context, _ *org) (controller.Result, error) {
		forced = append(forced, controller.Forced(ctx))
		return controller.Result{}, nil
	}))
	s.edit(func(o *org) { o.Annotations = map[string]string{"kept": "yes"} })
	s.edit(annotate(v1alpha1.OperationReconcile))

	s.pass(f)
	require.Empty(t, forced, "the pass ends with the patch")
	require.Equal(t, map[string]string{"kept": "yes"}, s.stored.Annotations)
	require.Equal(t, []sent{{body: map[string]any{"metadata": map[string]any{
		"uid": "uid-1", "resourceVersion": "3",
		"annotations": map[string]any{v1alpha1.OperationAnnotation: nil},
	}}}}, s.taken())

	s.pass(f)
	s.pass(f)
	require.Equal(t, []bool{true, false}, forced)
}

func TestForced_isNotLost(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		disturb func(*server)
		result  controller.Result
		err     error
		last    bool // the last step is the one that comes to this, not the first
	}{
		"when the first step stops":      {result: controller.Result{Message: "kcp", Stop: true}},
		"when the first step fails":      {err: boom},
		"when the last step fails":       {err: boom, last: true},
		"when a step meets a conflict":   {err: controller.ErrRetry},
		"when the status is not written": {disturb: func(s *server) { s.refuse = boom }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, hindered := newServer(t), true
			var forced []bool
			hinder := func(here bool) (controller.Result, error) {
				if hindered && here {
					return c.result, c.err
				}
				return controller.Result{}, nil
			}
			f := s.reconciler(on("A", func(ctx context.Context, _ *org) (controller.Result, error) {
				forced = append(forced, controller.Forced(ctx))
				return hinder(!c.last)
			}), on("B", func(context.Context, *org) (controller.Result, error) {
				return hinder(c.last)
			}))
			s.edit(annotate(v1alpha1.OperationReconcile))
			s.pass(f)

			if c.disturb != nil {
				c.disturb(s)
			}
			_, _ = f(t.Context(), acme)
			hindered = false
			s.pass(f)
			s.pass(f)
			require.Equal(t, []bool{true, true, false}, forced)
		})
	}
}

func TestForced_endsThoughTheLastStepStillWaits(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var forced []bool
	f := s.reconciler(on("A", func(ctx context.Context, _ *org) (controller.Result, error) {
		forced = append(forced, controller.Forced(ctx))
		return controller.Result{Message: "kcp", Stop: true}, nil
	}))
	s.edit(annotate(v1alpha1.OperationReconcile))
	for range 3 {
		s.pass(f)
	}
	require.Equal(t, []bool{true, false}, forced, "every step had its turn")
}

func TestForced_isKeptWhileTheAnnotationCannotBeRemoved(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var forced []bool
	f := s.reconciler(on("A", func(ctx context.Context, _ *org) (controller.Result, error) {
		forced = append(forced, controller.Forced(ctx))
		return controller.Result{}, nil
	}))
	s.edit(annotate(v1alpha1.OperationReconcile))
	s.lag()
	s.edit(func(o *org) { o.Spec.DisplayName = "Other" })
	_, err := f(t.Context(), acme)
	require.ErrorIs(t, err, controller.ErrRetry)
	s.catchUp()
	s.pass(f)
	s.pass(f)
	require.Equal(t, []bool{true}, forced)
}

func TestForced_isForgottenWithTheObject(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var forced []bool
	f := s.reconciler(on("A", func(ctx context.Context, _ *org) (controller.Result, error) {
		forced = append(forced, controller.Forced(ctx))
		return controller.Result{}, nil
	}))
	s.edit(annotate(v1alpha1.OperationReconcile))
	s.pass(f)
	held := s.stored
	s.stored = nil
	s.pass(f)
	s.stored = held
	s.pass(f)
	require.Equal(t, []bool{false}, forced)
}

func TestOperation_anUnknownValueChangesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := s.reconciler(gives("A", controller.Result{}, nil))
	s.edit(annotate("explode"))
	s.pass(f)
	require.Equal(t, v1alpha1.PhaseReady, s.stored.Status.Phase)
	require.Equal(t, "explode", s.stored.Annotations[v1alpha1.OperationAnnotation])
}
