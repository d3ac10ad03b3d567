package template

import (
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Keeps returns a func that reports whether the hub keeps an APIBinding in every Workspace: it is of
// an export of the hub, or of one that the template binds.
func Keeps(template []*unstructured.Unstructured) func(*kcpapisv1alpha2.APIBinding) bool {
	bound := map[v1alpha1.APIExportRef]bool{}
	for _, o := range template {
		if o.GroupVersionKind().GroupKind() != kcpapisv1alpha2.Kind("APIBinding") {
			continue
		}
		// Load refuses a template without these fields.
		path, _, _ := unstructured.NestedString(o.Object, "spec", "reference", "export", "path")
		name, _, _ := unstructured.NestedString(o.Object, "spec", "reference", "export", "name")
		bound[v1alpha1.APIExportRef{Path: path, Name: name}] = true
	}
	return func(b *kcpapisv1alpha2.APIBinding) bool {
		ref := tenancy.ExportOf(b)
		return bound[ref] || tenancy.ReservedExport(ref.Name)
	}
}
