package orgs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/mergepatch"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// The limits of the Organization's schema, in characters. They are checked here for better
// messages.
const (
	maxCostCenter   = 128
	maxBillingKey   = 63
	maxBillingValue = 256
)

// specOf converts the request to a patch of the Organization's spec. It is empty if nothing
// changes.
func specOf(p rest.UpdateOrgRequest) (map[string]any, error) {
	spec := map[string]any{}
	name, given, err := mergepatch.DisplayName(p.DisplayName)
	if err != nil {
		return nil, err
	}
	if given {
		spec["displayName"] = name
	}
	const members, admin = string(v1alpha1.WhoMembers), string(v1alpha1.WhoAdmin)
	for _, choice := range []struct {
		field         string
		raw           []byte
		first, second string
	}{
		{"workspaceCreation", p.WorkspaceCreation, members, admin},
		{"catalogEntryCreation", p.CatalogEntryCreation, members, admin},
		{"defaultAccess", p.DefaultAccess, string(v1alpha1.DefaultAccessNone), string(v1alpha1.DefaultAccessView)},
	} {
		value, given, err := mergepatch.Text(choice.field, choice.raw)
		switch {
		case err != nil:
			return nil, err
		case !given:
		case value != choice.first && value != choice.second:
			return nil, errs.InvalidField(choice.field, "must be "+choice.first+" or "+choice.second)
		default:
			spec[choice.field] = value
		}
	}
	if p.Billing != nil {
		if spec["billing"], err = billing(p.Billing); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

// intentOf returns the intent of a patch of the spec.
func intentOf(spec map[string]any) httpmw.Intent {
	i := httpmw.Intent{Reduces: len(spec) > 0}
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		value, _ := spec[field].(string)
		narrows := false
		switch field {
		case "defaultAccess":
			i.Facts.DefaultAccess, narrows = value, value == string(v1alpha1.DefaultAccessNone)
		case "workspaceCreation":
			i.Facts.WorkspaceCreation, narrows = value, value == string(v1alpha1.WhoAdmin)
		case "catalogEntryCreation":
			i.Facts.CatalogEntryCreation, narrows = value, value == string(v1alpha1.WhoAdmin)
		default:
			i.Facts.Fields = append(i.Facts.Fields, field)
		}
		i.Reduces = i.Reduces && narrows
	}
	return i
}

// billing converts the request to a merge patch of spec.billing, or nil to remove it.
func billing(raw []byte) (any, error) {
	in, err := object("billing", raw)
	if err != nil || in == nil {
		return nil, err
	}
	out := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(in)) {
		switch field {
		case "costCenter":
			out[field], err = textOrNull("billing.costCenter", in[field], maxCostCenter)
		case "labels":
			out[field], err = labels(in[field])
		default:
			err = errs.InvalidField("billing."+field, "is not a field that may be given here; free keys go into billing.labels")
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func labels(raw json.RawMessage) (any, error) {
	in, err := object("billing.labels", raw)
	if err != nil || in == nil {
		return nil, err
	}
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if n := utf8.RuneCountInString(key); n < 1 || n > maxBillingKey {
			return nil, errs.InvalidField("billing.labels", fmt.Sprintf("keys have 1 to %d characters", maxBillingKey))
		}
		if out[key], err = textOrNull("billing.labels."+key, in[key], maxBillingValue); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// object reads a member that is an object. It returns nil if the patch removes it.
func object(field string, raw json.RawMessage) (map[string]json.RawMessage, error) {
	if mergepatch.IsNull(raw) {
		return nil, nil
	}
	in := map[string]json.RawMessage{}
	if httpapi.Decode(raw, &in) != nil {
		return nil, errs.InvalidField(field, "must be an object in which no field is given twice")
	}
	return in, nil
}

// textOrNull reads a string of at most limit characters. It returns nil if the patch removes
// it.
func textOrNull(field string, raw json.RawMessage, limit int) (any, error) {
	if mergepatch.IsNull(raw) {
		return nil, nil
	}
	value, _, err := mergepatch.Text(field, raw)
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(value) > limit {
		return nil, errs.InvalidField(field, fmt.Sprintf("must have at most %d characters", limit))
	}
	return value, nil
}
