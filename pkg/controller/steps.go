package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Outcome is what a step found.
type Outcome struct {
	// Waiting says, for people, what is not there yet; empty when all is.
	Waiting string
	// After asks for another pass after that time.
	After time.Duration
	// Stop leaves the steps that follow to a later pass.
	Stop bool
}

// Step is one part of the expected state. It may change obj, which is a copy,
// but not its status: the loop keeps that.
type Step[T any] interface {
	// Condition is the type of the condition that the step is shown as.
	Condition() string
	// Reconcile makes the part so, or says what it waits for.
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
	// Patch sends a JSON merge patch; subresource is empty or "status".
	Patch func(ctx context.Context, key Key, patch []byte, subresource string) error
	Clock clock.PassiveClock
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
	obj := r.kind.Copy(held)
	switch obj.GetAnnotations()[v1alpha1.OperationAnnotation] {
	case v1alpha1.OperationIgnore:
		return Result{}, nil
	case v1alpha1.OperationReconcile:
		annotations := maps.Clone(obj.GetAnnotations())
		delete(annotations, v1alpha1.OperationAnnotation)
		obj.SetAnnotations(annotations)
		r.force(key, true)
		return Result{}, r.commit(ctx, key, held, obj)
	}
	if r.isForced(key) {
		ctx = context.WithValue(ctx, forcedKey{}, true)
	}
	after, failure := r.run(ctx, obj)
	if err := r.commit(ctx, key, held, obj); err != nil {
		return Result{}, errors.Join(err, failure)
	}
	if failure == nil {
		r.force(key, false)
	}
	return Result{After: after}, failure
}

// run walks through the steps and keeps the common status.
func (r *reconciler[T]) run(ctx context.Context, obj T) (after time.Duration, failure error) {
	status := r.kind.Status(obj)
	status.ObservedGeneration = obj.GetGeneration()
	for _, step := range r.steps {
		outcome, err := step.Reconcile(ctx, obj)
		if outcome.After > 0 && (after == 0 || outcome.After < after) {
			after = outcome.After
		}
		c := metav1.Condition{Type: step.Condition(), Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAsDesired}
		switch {
		case err != nil:
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonFailed, shown(err)
			failure = fmt.Errorf("%s: %w", step.Condition(), err)
		case outcome.Waiting != "":
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonWaiting, outcome.Waiting
		}
		r.set(obj, status, c)
		if err != nil || outcome.Stop {
			break
		}
	}
	r.summarize(obj, status)
	return after, failure
}

// shown is what of an error may stand on the object: what was written for
// people, never a library's text.
func shown(err error) string {
	var e *errs.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "it failed and is tried again; the hub's log says why"
}

func (r *reconciler[T]) set(obj T, status *v1alpha1.CommonStatus, c metav1.Condition) {
	c.ObservedGeneration = obj.GetGeneration()
	c.LastTransitionTime = metav1.NewTime(r.kind.Clock.Now().UTC().Truncate(time.Second))
	meta.SetStatusCondition(&status.Conditions, c)
}

func (r *reconciler[T]) summarize(obj T, status *v1alpha1.CommonStatus) {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAsDesired}
	// A step that was not reached has no say in an older pass's name.
	for _, step := range r.steps {
		c := meta.FindStatusCondition(status.Conditions, step.Condition())
		if c == nil || c.Status != metav1.ConditionTrue {
			ready.Status, ready.Reason = metav1.ConditionFalse, v1alpha1.ReasonProgressing
			if c != nil {
				ready.Message = c.Message
			}
			break
		}
	}
	status.Phase = v1alpha1.PhaseReady
	if ready.Status != metav1.ConditionTrue {
		status.Phase = v1alpha1.PhaseProgressing
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		status.Phase = v1alpha1.PhaseTerminating
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, v1alpha1.ReasonTerminating, "it is being deleted"
	}
	r.set(obj, status, ready)
}

// commit sends what changed. Metadata or spec, and status, never go in one pass:
// the event of the first brings the key back for the second.
func (r *reconciler[T]) commit(ctx context.Context, key Key, old, new T) error {
	patch, subresource, err := r.diff(old, new)
	if err != nil || patch == nil {
		return err
	}
	err = r.kind.Patch(ctx, key, patch, subresource)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("patch %s: %w", key.Name, ErrRetry)
	case err != nil:
		return fmt.Errorf("patch %s: %w", key.Name, err)
	}
	return nil
}

func (r *reconciler[T]) diff(old, new T) (patch []byte, subresource string, err error) {
	from, err := r.kind.Encode(old)
	if err != nil {
		return nil, "", fmt.Errorf("encode: %w", err)
	}
	to, err := r.kind.Encode(new)
	if err != nil {
		return nil, "", fmt.Errorf("encode: %w", err)
	}
	raw, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, "", fmt.Errorf("compare: %w", err)
	}
	var changes map[string]any
	if err := json.Unmarshal(raw, &changes); err != nil {
		return nil, "", fmt.Errorf("compare: %w", err)
	}
	status, hasStatus := changes["status"]
	delete(changes, "status")
	if len(changes) == 0 {
		if !hasStatus {
			return nil, "", nil
		}
		changes, subresource = map[string]any{"status": status}, "status"
	}
	metadata, _ := changes["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	// A patch must never hit a newer object, nor another one of the same name.
	metadata["uid"], metadata["resourceVersion"] = string(old.GetUID()), old.GetResourceVersion()
	changes["metadata"] = metadata
	patch, err = json.Marshal(changes)
	return patch, subresource, err
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

// Wakes tells whether the change from old to new is one that a reconciler must
// look at: not a status, whose writer it is itself. Annotations in which a kind
// keeps its status are named in own. Both are given for an update only.
func Wakes(old, new metav1.Object, own ...string) bool {
	strip := func(o metav1.Object) map[string]string {
		annotations := maps.Clone(o.GetAnnotations())
		for _, name := range own {
			delete(annotations, name)
		}
		return annotations
	}
	return old.GetUID() != new.GetUID() ||
		old.GetGeneration() != new.GetGeneration() ||
		old.GetDeletionTimestamp().IsZero() != new.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(old.GetLabels(), new.GetLabels()) ||
		!maps.Equal(strip(old), strip(new)) ||
		!slices.Equal(old.GetFinalizers(), new.GetFinalizers())
}
