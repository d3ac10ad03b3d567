package orgs

import (
	"encoding/json"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// patchRequest is the JSON merge patch of an Org. Raw values tell what is absent
// from what is null.
type patchRequest struct {
	DisplayName          json.RawMessage `json:"displayName"`
	WorkspaceCreation    json.RawMessage `json:"workspaceCreation"`
	CatalogEntryCreation json.RawMessage `json:"catalogEntryCreation"`
	DefaultAccess        json.RawMessage `json:"defaultAccess"`
	Billing              json.RawMessage `json:"billing"`
}

// billingPatch is the merge patch of an Org's billing: null takes a value away.
type billingPatch struct {
	CostCenter json.RawMessage             `json:"costCenter"`
	Labels     map[string]*json.RawMessage `json:"labels"`
}

// spec is the patch of the Organization's spec that the request means.
func (p patchRequest) spec() (map[string]any, error) {
	spec := map[string]any{}
	if p.DisplayName != nil {
		var name string
		if err := text("displayName", p.DisplayName, &name); err != nil {
			return nil, err
		}
		if err := tenancy.CheckDisplayName("displayName", name); err != nil {
			return nil, err
		}
		spec["displayName"] = name
	}
	for field, choice := range map[string]struct {
		raw     json.RawMessage
		allowed [2]string
	}{
		"workspaceCreation":    {p.WorkspaceCreation, [2]string{string(v1alpha1.WhoMembers), string(v1alpha1.WhoAdmin)}},
		"catalogEntryCreation": {p.CatalogEntryCreation, [2]string{string(v1alpha1.WhoMembers), string(v1alpha1.WhoAdmin)}},
		"defaultAccess":        {p.DefaultAccess, [2]string{string(v1alpha1.DefaultAccessNone), string(v1alpha1.DefaultAccessView)}},
	} {
		if choice.raw == nil {
			continue
		}
		var value string
		if err := text(field, choice.raw, &value); err != nil {
			return nil, err
		}
		if value != choice.allowed[0] && value != choice.allowed[1] {
			return nil, errs.InvalidField(field, "must be "+choice.allowed[0]+" or "+choice.allowed[1])
		}
		spec[field] = value
	}
	if p.Billing != nil {
		billing, err := billingOf(p.Billing)
		if err != nil {
			return nil, err
		}
		spec["billing"] = billing
	}
	return spec, nil
}

func text(field string, raw json.RawMessage, into *string) error {
	if string(raw) == "null" || json.Unmarshal(raw, into) != nil {
		return errs.InvalidField(field, "must be a string")
	}
	return nil
}

func billingOf(raw json.RawMessage) (any, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	var in billingPatch
	if err := httpapi.Decode(raw, &in); err != nil {
		return nil, errs.InvalidField("billing", "must be an object with costCenter and labels, both of strings")
	}
	billing := map[string]any{}
	if in.CostCenter != nil {
		value, err := orNull("billing.costCenter", in.CostCenter, 128)
		if err != nil {
			return nil, err
		}
		billing["costCenter"] = value
	}
	if len(in.Labels) > 0 {
		labels := map[string]any{}
		for key, raw := range in.Labels {
			if key == "" || len(key) > 63 {
				return nil, errs.InvalidField("billing.labels", "keys have 1 to 63 characters")
			}
			if raw == nil {
				labels[key] = nil
				continue
			}
			value, err := orNull("billing.labels."+key, *raw, 256)
			if err != nil {
				return nil, err
			}
			labels[key] = value
		}
		billing["labels"] = labels
	}
	return billing, nil
}

func orNull(field string, raw json.RawMessage, max int) (any, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	var value string
	if err := text(field, raw, &value); err != nil {
		return nil, err
	}
	if len(value) > max {
		return nil, errs.InvalidField(field, "is too long")
	}
	return value, nil
}
