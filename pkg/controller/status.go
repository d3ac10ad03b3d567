package controller

import (
	"cmp"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// report sets the condition of a step from its result.
func (r *reconciler[T]) report(obj T, step Step[T], result Result, err error) {
	c := metav1.Condition{Type: step.Condition(), Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAsDesired, Message: result.Note}
	switch {
	case errors.Is(err, ErrRetry):
		// An expected failure says nothing about the object. A condition of this generation
		// stays as it is.
		known := meta.FindStatusCondition(r.kind.Status(obj).Conditions, c.Type)
		if known != nil && known.ObservedGeneration == obj.GetGeneration() {
			return
		}
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonWaiting, result.Message
		if c.Message == "" {
			c.Message = "it changed meanwhile and is looked at again"
		}
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonFailed, shown(err)
	case result.Message != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, cmp.Or(result.Reason, v1alpha1.ReasonWaiting), result.Message
	}
	r.set(obj, c)
}

// shown returns the message of an error for a condition: that of an *errs.Error, never the text of
// a library.
func shown(err error) string {
	var e *errs.Error
	if errors.As(err, &e) && e.Message != "" && e.Code != 0 && e.Code != errs.Internal {
		return e.Message
	}
	return "it failed and is tried again; the hub's log says why"
}

// set sets a condition. The transition time changes only with the status.
func (r *reconciler[T]) set(obj T, c metav1.Condition) {
	c.ObservedGeneration = obj.GetGeneration()
	c.LastTransitionTime = metav1.NewTime(r.kind.Clock.Now())
	meta.SetStatusCondition(&r.kind.Status(obj).Conditions, c)
}

// summarize sets the condition Ready, the phase and observedGeneration.
func (r *reconciler[T]) summarize(obj T) {
	status := r.kind.Status(obj)
	status.ObservedGeneration = obj.GetGeneration()
	status.Phase = v1alpha1.PhaseReady
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAsDesired}
	if missing, message := r.missing(obj); missing {
		status.Phase = v1alpha1.PhaseProgressing
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, v1alpha1.ReasonProgressing, message
	}
	switch {
	case !obj.GetDeletionTimestamp().IsZero():
		status.Phase = v1alpha1.PhaseTerminating
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, v1alpha1.ReasonTerminating, "it is being deleted"
	case r.kind.Leaving != nil && r.kind.Leaving(obj):
		status.Phase = v1alpha1.PhaseTerminating
		ready.Status, ready.Reason = metav1.ConditionFalse, v1alpha1.ReasonTerminating
	}
	r.set(obj, ready)
}

// missing reports whether a condition keeps the object from being Ready, and its
// message: that of a step, which must be of this generation, or one that somebody else
// wrote. Informative conditions do not count.
func (r *reconciler[T]) missing(obj T) (missing bool, message string) {
	conditions := r.kind.Status(obj).Conditions
	for _, step := range r.steps {
		if slices.Contains(r.kind.Informative, step.Condition()) {
			continue
		}
		c := meta.FindStatusCondition(conditions, step.Condition())
		switch {
		case c == nil || c.Status == metav1.ConditionTrue && c.ObservedGeneration != obj.GetGeneration():
			return true, step.Condition() + " has not been looked at yet"
		case c.Status != metav1.ConditionTrue:
			return true, c.Message
		}
	}
	for _, c := range conditions {
		if c.Type != v1alpha1.ConditionReady && !slices.Contains(r.kind.Informative, c.Type) && c.Status != metav1.ConditionTrue {
			return true, c.Message
		}
	}
	return false, ""
}
