package views

import (
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// What a tenant writes into the metadata of a binding takes little of the memory of all.
func TestCompactBinding_keepsLittleOfWhatTenantsWrite(t *testing.T) {
	t.Parallel()
	binding := func(note string) *kcpapisv1alpha2.APIBinding {
		b := &kcpapisv1alpha2.APIBinding{ObjectMeta: metav1.ObjectMeta{
			Name: "widgets", UID: "u", ResourceVersion: "7", Labels: map[string]string{"team": "x"},
			Annotations: map[string]string{
				logicalcluster.AnnotationKey: "c-w", v1alpha1.CatalogEntryAnnotation: "{}",
				corev1.LastAppliedConfigAnnotation: "{}", "note": note,
			},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		}}
		b.Spec.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root:p", Name: "widgets"}
		b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBound
		b.Status.BoundResources = []kcpapisv1alpha2.BoundAPIResource{{Group: "example.com", Resource: "widgets", StorageVersions: []string{"v1"}}}
		b.Status.Conditions = conditionsv1alpha1.Conditions{{
			Type: kcpapisv1alpha2.APIExportValid, Status: corev1.ConditionFalse, Message: strings.Repeat("x", 1000),
		}}
		return b
	}
	small, large := binding("short"), binding(strings.Repeat("x", 64<<10))
	want := small.DeepCopy()
	want.ManagedFields = nil
	delete(want.Annotations, corev1.LastAppliedConfigAnnotation)
	want.Status.Conditions[0].Message = strings.Repeat("x", keptMessage)
	compactBinding(small)
	require.Equal(t, want, small)
	want.Labels = nil
	delete(want.Annotations, "note")
	compactBinding(large)
	require.Equal(t, want, large)
}
