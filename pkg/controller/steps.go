package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// Step is one part of the expected state of an object. It may change obj, which is a
// copy, except for the common status, which the loop maintains.
type Step[T any] interface {
	// Condition is the type of the condition that reports the step.
	Condition() string
	// Reconcile establishes the part, or says in the Result what is missing. The
	// condition shows the message of an *errs.Error and no other error text. ErrRetry
	// does not count as a failure.
	Reconcile(ctx context.Context, obj T) (Result, error)
}

// Kind tells the loop how to handle the objects of a kind.
type Kind[T metav1.Object] struct {
	// Get reads the object from the cache.
	Get func(Key) (T, bool)
	// Copy returns a deep copy.
	Copy func(T) T
	// Status returns a pointer to the object's common status.
	Status func(T) *v1alpha1.CommonStatus
	// Encode returns the object as JSON, as kcp stores it; nil means json.Marshal.
	Encode func(T) ([]byte, error)
	// Patch sends a JSON merge patch; subresource is empty or "status". The patch
	// contains the uid and the resourceVersion of the object that it applies to.
	Patch func(ctx context.Context, key Key, patch []byte, subresource string) error
	// Clock is the time of conditions.
	Clock clock.PassiveClock
	// Informative are the types of conditions that Ready does not wait for.
	Informative []string
	// Independent are the types of conditions of steps whose failure holds up none of the steps after them.
	Independent []string
	// Leaving reports a soft-deleted object: its phase is Terminating although it has no
	// deletionTimestamp. nil means never.
	Leaving func(T) bool
}

type forcedKey struct{}

// Forced reports that a person requested this pass with the operation annotation. A
// step then compares everything with kcp and takes no shortcut.
func Forced(ctx context.Context) bool { return ctx.Value(forcedKey{}) != nil }

// Reconcile runs the steps of a kind in order and sends at most one patch.
func Reconcile[T metav1.Object](kind Kind[T], steps ...Step[T]) Func {
	r := &reconciler[T]{kind: kind, steps: steps, forced: map[Key]bool{}}
	if r.kind.Encode == nil {
		r.kind.Encode = func(o T) ([]byte, error) { return json.Marshal(o) }
	}
	return r.reconcile
}

type reconciler[T metav1.Object] struct {
	kind  Kind[T]
	steps []Step[T]

	mu     sync.Mutex
	forced map[Key]bool
}

func (r *reconciler[T]) reconcile(ctx context.Context, key Key) (Result, error) {
	held, ok := r.kind.Get(key)
	if !ok {
		r.force(key, false)
		return Result{}, nil
	}
	switch held.GetAnnotations()[v1alpha1.OperationAnnotation] {
	case v1alpha1.OperationIgnore:
		return Result{}, nil
	case v1alpha1.OperationReconcile:
		obj := r.kind.Copy(held)
		annotations := obj.GetAnnotations()
		delete(annotations, v1alpha1.OperationAnnotation)
		obj.SetAnnotations(annotations)
		// The event of this patch enqueues the key again, for the steps.
		r.force(key, true)
		return Result{}, r.commit(ctx, key, held, obj)
	}
	if r.isForced(key) {
		ctx = context.WithValue(ctx, forcedKey{}, true)
	}
	p := r.run(ctx, held)
	if ctx.Err() != nil {
		// The steps failed because the hub stops or lost the lease. That says nothing
		// about the object, and this replica must not write any more.
		return Result{}, worse(p.failure, ctx.Err())
	}
	err := r.commit(ctx, key, held, p.obj)
	if p.failure == nil && err == nil && p.reached == len(r.steps) {
		r.force(key, false)
	}
	return Result{RequeueAfter: p.requeueAfter}, worse(p.failure, err)
}

// worse joins two errors so that a failure next to an ErrRetry still counts as a
// failure.
func worse(a, b error) error {
	switch {
	case a == nil, b != nil && errors.Is(a, ErrRetry):
		return b
	case b == nil, errors.Is(b, ErrRetry):
		return a
	}
	return errors.Join(a, b)
}

// passed is the outcome of one pass through the steps.
type passed[T any] struct {
	obj T
	// reached is the number of steps that ran.
	reached      int
	requeueAfter time.Duration
	failure      error
}

// run calls the steps with a copy of the object and maintains the common status.
func (r *reconciler[T]) run(ctx context.Context, held T) passed[T] {
	p := passed[T]{obj: r.kind.Copy(held)}
	for _, step := range r.steps {
		p.reached++
		result, err := perform(ctx, step, p.obj)
		if result.RequeueAfter > 0 && (p.requeueAfter == 0 || result.RequeueAfter < p.requeueAfter) {
			p.requeueAfter = result.RequeueAfter
		}
		var bug *panicError
		if errors.As(err, &bug) {
			// The step may have changed the copy in part.
			p.obj = r.kind.Copy(held)
		}
		r.report(p.obj, step, result, err)
		if err != nil {
			p.failure = worse(p.failure, fmt.Errorf("%s: %w", step.Condition(), err))
			if errors.Is(err, ErrRetry) || !slices.Contains(r.kind.Independent, step.Condition()) {
				break
			}
		}
		if result.Stop {
			break
		}
	}
	r.summarize(p.obj)
	return p
}

func perform[T any](ctx context.Context, step Step[T], obj T) (result Result, err error) {
	defer contain(ctx, &err)
	return step.Reconcile(ctx, obj)
}

func (r *reconciler[T]) force(key Key, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on {
		r.forced[key] = true
	} else {
		delete(r.forced, key)
	}
}

func (r *reconciler[T]) isForced(key Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forced[key]
}
