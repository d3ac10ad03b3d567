package controller

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Wakes tells whether the change from old to new is one that a reconciler must
// look at: not a status, whose writer it is itself. Annotations in which a kind
// keeps its status are named in own. Both are given for an update only.
//
// An object that is to be ignored wakes like any other: the loop leaves it alone,
// but what is derived from it elsewhere must still follow.
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
