package controller

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Wakes reports whether an update changes more than the status: spec, labels,
// annotations, finalizers or the start of the deletion. own names annotations that hold
// a status. An object with the annotation operation=ignore is no exception, because
// objects that are derived from it must still follow.
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
