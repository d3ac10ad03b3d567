package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Outcome is what a step found.
type Outcome struct {
	// Waiting says, for people, what is not there yet; empty when all is.
	Waiting string
	// Reason is the condition's while something is Waiting; ReasonWaiting where empty.
	Reason string
	// After asks for another pass after that time.
	After time.Duration
	// Stop leaves the steps that follow to a later pass.
	Stop bool
}

// Despite tells people of a refusal that trying again does not heal, in place of
// failing with it.
func (o Outcome) Despite(err error) (Outcome, error) {
	if !errs.Is(err, errs.Forbidden) {
		return o, err
	}
	o.Waiting += "; " + shown(err)
	return o, nil
}

// Step is one part of the expected state. It may change obj, which is a copy,
// but not its common status: the loop keeps that.
type Step[T any] interface {
	// Condition is the type of the condition that the step is shown as.
	Condition() string
	// Reconcile makes the part so, or says what it waits for. Of an error, only
	// the message of an *errs.Error is shown on the object; ErrRetry is no failure.
	Reconcile(ctx context.Context, obj T) (Outcome, error)
}

// Kind is how the loop handles the objects of a kind.
type Kind[T metav1.Object] struct {
	// Get reads the object from memory.
	Get func(Key) (T, bool)
	// Copy makes a deep copy.
	Copy func(T) T
	// Status points to the object's common status.
	Status func(T) *v1alpha1.CommonStatus
	// Encode is the object as it is stored; json.Marshal where nil.
	Encode func(T) ([]byte, error)
	// Patch sends a JSON merge patch; subresource is empty or "status". The
	// patch holds the uid and the resourceVersion that it was made for.
	Patch func(ctx context.Context, key Key, patch []byte, subresource string) error
	Clock clock.PassiveClock
	// Leaving tells whether the object is on its way out, though nobody has deleted
	// it yet; never where nil.
	Leaving func(T) bool
}

type forcedKey struct{}

// Forced tells a step that somebody asked for this pass by hand: a shortcut that
// would leave work out is not to be taken.
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
		// The event of this patch brings the key back for the steps.
		r.force(key, true)
		return Result{}, r.commit(ctx, key, held, obj)
	}
	if r.isForced(key) {
		ctx = context.WithValue(ctx, forcedKey{}, true)
	}
	p := r.run(ctx, held)
	if ctx.Err() != nil {
		// The steps failed because the hub ends or leads no more: that is not
		// the object's state, and not this replica's to write.
		return Result{}, worse(p.failure, ctx.Err())
	}
	err := r.commit(ctx, key, held, p.obj)
	if p.failure == nil && err == nil && p.reached == len(r.steps) {
		r.force(key, false)
	}
	return Result{After: p.after}, worse(p.failure, err)
}

// worse keeps a failure from being taken for the expected one beside it.
func worse(a, b error) error {
	switch {
	case a == nil, b != nil && errors.Is(a, ErrRetry):
		return b
	case b == nil, errors.Is(b, ErrRetry):
		return a
	}
	return errors.Join(a, b)
}

// passed is what one pass through the steps came to.
type passed[T any] struct {
	obj T
	// reached is how many steps had their turn.
	reached int
	after   time.Duration
	failure error
}

// run walks through the steps with a copy and keeps the common status.
func (r *reconciler[T]) run(ctx context.Context, held T) passed[T] {
	p := passed[T]{obj: r.kind.Copy(held)}
	for _, step := range r.steps {
		p.reached++
		outcome, err := perform(ctx, step, p.obj)
		if outcome.After > 0 && (p.after == 0 || outcome.After < p.after) {
			p.after = outcome.After
		}
		var bug *panicError
		if errors.As(err, &bug) {
			// Nobody knows how far it came with the object.
			p.obj = r.kind.Copy(held)
		}
		r.report(p.obj, step, outcome, err)
		if err != nil {
			p.failure = fmt.Errorf("%s: %w", step.Condition(), err)
			break
		}
		if outcome.Stop {
			break
		}
	}
	r.summarize(p.obj)
	return p
}

func perform[T any](ctx context.Context, step Step[T], obj T) (outcome Outcome, err error) {
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
