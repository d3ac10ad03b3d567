package tenancy

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// HubObject reports whether an object of a child Workspace, in JSON, is the hub's own, and so does not count
// as stored by the tenant. kind is "group/resource". The policy refuses tenants these labels and
// bindings. It is of kinds that tenants cannot write at all, or not before kcp enforces the policy.
func HubObject(kind string, object []byte) bool {
	if kind == kindAPIBindings {
		var b struct {
			Spec struct {
				Reference struct {
					Export struct {
						Name string `json:"name"`
					} `json:"export"`
				} `json:"reference"`
			} `json:"spec"`
		}
		return json.Unmarshal(object, &b) == nil &&
			slices.Contains([]string{exportKCPTenancy, exportKCPTopology, ExportTenancy, ExportAccess}, b.Spec.Reference.Export.Name)
	}
	if !slices.Contains(hubKinds, kind) && !slices.Contains(policyKinds, kind) || !bytes.Contains(object, []byte(labelPrefix)) {
		return false
	}
	var o struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if json.Unmarshal(object, &o) != nil {
		return false
	}
	labels := o.Metadata.Labels
	return labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByHub || labels[v1alpha1.TemplateLabel] == "true"
}
