package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// AddFinalizer adds the cascade finalizer, so that kcp keeps a deleted object until
// RemoveFinalizer. It reports whether kcp has the finalizer already: an object must not
// be deleted before, because what it owns would stay behind.
func AddFinalizer(o metav1.Object) (present bool) {
	if HasFinalizer(o) {
		return true
	}
	o.SetFinalizers(append(o.GetFinalizers(), v1alpha1.CascadeFinalizer))
	return false
}

// HasFinalizer reports whether the object has the cascade finalizer.
func HasFinalizer(o metav1.Object) bool {
	return slices.Contains(o.GetFinalizers(), v1alpha1.CascadeFinalizer)
}

// RemoveFinalizer removes the cascade finalizer: kcp may remove the deleted object.
func RemoveFinalizer(o metav1.Object) {
	o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == v1alpha1.CascadeFinalizer }))
}

// Record writes into an annotation how many objects of each kind a cascade removes. It
// is called before the cascade removes the first one, because a resumed cascade finds
// fewer.
func Record(o metav1.Object, counts map[string]int) error {
	raw, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	annotations := map[string]string{}
	maps.Copy(annotations, o.GetAnnotations())
	annotations[v1alpha1.CascadeAnnotation] = string(raw)
	o.SetAnnotations(annotations)
	return nil
}

// Recorded returns the counts that Record wrote; ok is false if it has not been called
// for the object.
func Recorded(o metav1.Object) (counts map[string]int, ok bool) {
	raw, ok := o.GetAnnotations()[v1alpha1.CascadeAnnotation]
	_ = json.Unmarshal([]byte(raw), &counts)
	return counts, ok
}

// InGrace returns the result for a soft-deleted object that can be undeleted until that
// time; over is true after it. what names the object for people. held, if not nil, reports that nothing
// is purged at present: the object is looked at again later.
func InGrace(what string, until *metav1.Time, now time.Time, held func() bool) (result Result, over bool) {
	left := max(0, until.Sub(now))
	if left == 0 && held != nil && held() {
		return Result{
			Message:      what + " was deleted, and its removal is due; it can be undeleted until the operator lets removals run again after a restore",
			RequeueAfter: heldDelay, Stop: true,
		}, false
	}
	return Result{
		Message:      fmt.Sprintf("%s was deleted; until %s it can be undeleted", what, until.UTC().Format(time.RFC3339)),
		RequeueAfter: left, Stop: true,
	}, left == 0
}

const (
	// heldDelay is the time after which an object is looked at again whose purge is due and held.
	heldDelay = 15 * time.Second
	// announceDelay is the time between the pass that reports Active=False and the pass
	// that deactivates the logical cluster.
	announceDelay = 5 * time.Millisecond
	// forbiddenDelay is the time after which kcp is asked again to deactivate a logical
	// cluster, after it refused to.
	forbiddenDelay = time.Minute
)

// Deactivate calls deactivate for a soft-deleted object, one pass after the condition
// Active turned False. The condition is in kcp before the logical cluster is
// deactivated, so a pass that finds the deletion withdrawn knows from it that there may
// be something to activate.
//
// If the deactivation is Partial, the condition says what is missing, and nothing is tried again.
//
// If kcp forbids the hub to deactivate, the condition says so with the reason
// DeactivationForbidden, and kcp is asked again later.
func (r Result) Deactivate(conditions []metav1.Condition, deactivate func() error) (Result, error) {
	if !meta.IsStatusConditionFalse(conditions, v1alpha1.ConditionActive) {
		r.Reason, r.RequeueAfter = v1alpha1.ReasonProgressing, announceDelay
		return r, nil
	}
	err := deactivate()
	if Partial(err) {
		r.Message += "; " + shown(err)
		return r, nil
	}
	if !errs.Is(err, errs.Forbidden) {
		return r, err
	}
	r.Reason = v1alpha1.ReasonDeactivationForbidden
	r.Message += "; " + shown(err)
	if r.RequeueAfter == 0 || r.RequeueAfter > forbiddenDelay {
		r.RequeueAfter = forbiddenDelay
	}
	return r, nil
}

// Partial reports whether a logical cluster was deactivated, except that kcp does not end open
// watches.
func Partial(err error) bool { return errs.Is(err, errs.TooLarge) }
