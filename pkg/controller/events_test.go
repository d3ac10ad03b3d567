package controller_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

func TestWakes(t *testing.T) {
	t.Parallel()
	status := func(o *org) {
		o.ResourceVersion = "2"
		o.Status.Phase = v1alpha1.PhaseReady
		o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kedge-hub"}}
	}
	own := func(o *org) { metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.StatusAnnotation, "{}") }
	for name, c := range map[string]struct {
		before, change func(*org)
		own            []string
		want           bool
	}{
		"nothing":                           {},
		"its own status":                    {change: status},
		"its own status in an annotation":   {change: own, own: []string{v1alpha1.StatusAnnotation}},
		"that goes away again":              {before: own, change: func(o *org) { delete(o.Annotations, v1alpha1.StatusAnnotation) }, own: []string{v1alpha1.StatusAnnotation}},
		"such an annotation of another":     {change: own, want: true},
		"another annotation beside its own": {change: func(o *org) { own(o); annotate("x")(o) }, own: []string{v1alpha1.StatusAnnotation}, want: true},
		"the spec":                          {change: func(o *org) { o.Generation++ }, want: true},
		"a deletion":                        {change: func(o *org) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, want: true},
		"another time of deletion":          {before: deleting, change: func(o *org) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }},
		"another object":                    {change: func(o *org) { o.UID = "uid-2" }, want: true},
		"a label":                           {change: func(o *org) { o.Labels = map[string]string{"a": "b"} }, want: true},
		"a finalizer":                       {change: func(o *org) { o.Finalizers = []string{"example.com/held"} }, want: true},
		"reconcile":                         {change: annotate(v1alpha1.OperationReconcile), want: true},
		"reconcile is removed":              {before: annotate(v1alpha1.OperationReconcile), change: removeAnnotation, want: true},
		"ignore ends":                       {before: annotate(v1alpha1.OperationIgnore), change: removeAnnotation, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := newServer(t).stored
			if c.before != nil {
				c.before(old)
			}
			changed := old.DeepCopy()
			if c.change != nil {
				c.change(changed)
			}
			wantOld, wantChanged := old.DeepCopy(), changed.DeepCopy()
			require.Equal(t, c.want, controller.Wakes(old, changed, c.own...))
			require.Equal(t, wantOld, old, "what memory holds is shared")
			require.Equal(t, wantChanged, changed)
		})
	}
}
