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
)

// Hold keeps an object until LetGo, however it is removed, and tells whether kcp
// knows of that already: what is removed before leaves all behind that it had.
func Hold(o metav1.Object) (held bool) {
	if Held(o) {
		return true
	}
	o.SetFinalizers(append(o.GetFinalizers(), v1alpha1.CascadeFinalizer))
	return false
}

// Held tells whether an object waits until all that it had is removed.
func Held(o metav1.Object) bool { return slices.Contains(o.GetFinalizers(), v1alpha1.CascadeFinalizer) }

// LetGo lets an object be removed.
func LetGo(o metav1.Object) {
	o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == v1alpha1.CascadeFinalizer }))
}

// Note writes down what an object has, before any of it goes: a cascade that is
// stopped and goes on finds less.
func Note(o metav1.Object, counts map[string]int) error {
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

// Noted is what was written down of an object; ok is false where that is yet to be
// done.
func Noted(o metav1.Object) (counts map[string]int, ok bool) {
	raw, ok := o.GetAnnotations()[v1alpha1.CascadeAnnotation]
	_ = json.Unmarshal([]byte(raw), &counts)
	return counts, ok
}

// InGrace is what becomes of something soft-deleted that can be undeleted until that
// time; over tells that it cannot any more.
func InGrace(what string, until *metav1.Time, now time.Time) (outcome Outcome, over bool) {
	left := max(0, until.Sub(now))
	return Outcome{
		Waiting: fmt.Sprintf("%s was deleted; until %s it can be undeleted", what, until.UTC().Format(time.RFC3339)),
		After:   left, Stop: true,
	}, left == 0
}

// closing is how soon something is closed after it was said that it will be.
const closing = 5 * time.Millisecond

// Announced closes what is soft-deleted in the pass after the one that says so: that
// it may be closed is in kcp before it is, as whoever finds the request withdrawn must
// know that there is something to open.
func (o Outcome) Announced(conditions []metav1.Condition, do func() error) (Outcome, error) {
	if !meta.IsStatusConditionFalse(conditions, v1alpha1.ConditionActive) {
		o.Reason, o.After = v1alpha1.ReasonProgressing, closing
		return o, nil
	}
	return o.Despite(do())
}
