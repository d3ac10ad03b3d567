package orgs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"k8s.io/utils/ptr"

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

// edit is a change of one field.
type edit = func(*v1alpha1.OrganizationSpec)

// editsOf returns the changes that a request makes, with its intent. It reduces rights if every
// change does.
func editsOf(p rest.UpdateOrgRequest) (edits []edit, i httpmw.Intent, err error) {
	wider := false
	name, given, err := mergepatch.DisplayName(p.DisplayName)
	if err != nil {
		return nil, i, err
	}
	if given {
		edits, wider = append(edits, func(o *v1alpha1.OrganizationSpec) { o.DisplayName = name }), true
		i.Facts.Fields = append(i.Facts.Fields, "displayName")
	}
	const members, admin = string(v1alpha1.WhoMembers), string(v1alpha1.WhoAdmin)
	const none, all = string(v1alpha1.DefaultAccessNone), string(v1alpha1.DefaultAccessView)
	facts := &i.Facts
	type spec = v1alpha1.OrganizationSpec
	for _, choice := range []struct {
		field                 string
		raw                   []byte
		first, second, narrow string
		fact                  *string
		set                   func(*spec, string)
	}{
		{"workspaceCreation", p.WorkspaceCreation, members, admin, admin, &facts.WorkspaceCreation,
			func(o *spec, v string) { o.WorkspaceCreation = v1alpha1.Who(v) }},
		{"catalogEntryCreation", p.CatalogEntryCreation, members, admin, admin, &facts.CatalogEntryCreation,
			func(o *spec, v string) { o.CatalogEntryCreation = v1alpha1.Who(v) }},
		{"defaultAccess", p.DefaultAccess, none, all, none, &facts.DefaultAccess,
			func(o *spec, v string) { o.DefaultAccess = v1alpha1.DefaultAccess(v) }},
	} {
		value, given, err := mergepatch.Text(choice.field, choice.raw)
		switch {
		case err != nil:
			return nil, i, err
		case !given:
			continue
		case value != choice.first && value != choice.second:
			return nil, i, errs.InvalidField(choice.field, "must be "+choice.first+" or "+choice.second)
		}
		edits, wider = append(edits, func(o *v1alpha1.OrganizationSpec) { choice.set(o, value) }), wider || value != choice.narrow
		*choice.fact = value
	}
	if p.Billing != nil {
		change, err := billing(p.Billing)
		if err != nil {
			return nil, i, err
		}
		edits, wider = append(edits, change), true
		i.Facts.Fields = append([]string{"billing"}, i.Facts.Fields...)
	}
	i.Reduces = len(edits) > 0 && !wider
	return edits, i, nil
}

// billing converts the request to a change of spec.billing.
func billing(raw []byte) (edit, error) {
	in, err := object("billing", raw)
	if err != nil {
		return nil, err
	}
	if in == nil {
		return func(o *v1alpha1.OrganizationSpec) { o.Billing = nil }, nil
	}
	var edits []func(*v1alpha1.Billing)
	for _, field := range slices.Sorted(maps.Keys(in)) {
		switch field {
		case "costCenter":
			value, err := textOrNull("billing.costCenter", in[field], maxCostCenter)
			if err != nil {
				return nil, err
			}
			edits = append(edits, func(b *v1alpha1.Billing) { b.CostCenter = ptr.Deref(value, "") })
		case "labels":
			labels, err := labels(in[field])
			if err != nil {
				return nil, err
			}
			edits = append(edits, labels)
		default:
			return nil, errs.InvalidField("billing."+field, "is not a field that may be given here; free keys go into billing.labels")
		}
	}
	return func(o *v1alpha1.OrganizationSpec) {
		if o.Billing == nil {
			o.Billing = &v1alpha1.Billing{}
		}
		for _, edit := range edits {
			edit(o.Billing)
		}
	}, nil
}

func labels(raw json.RawMessage) (func(*v1alpha1.Billing), error) {
	in, err := object("billing.labels", raw)
	if err != nil {
		return nil, err
	}
	if in == nil {
		return func(b *v1alpha1.Billing) { b.Labels = nil }, nil
	}
	values := map[string]*string{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if n := utf8.RuneCountInString(key); n < 1 || n > maxBillingKey {
			return nil, errs.InvalidField("billing.labels", fmt.Sprintf("keys have 1 to %d characters", maxBillingKey))
		}
		if values[key], err = textOrNull("billing.labels."+key, in[key], maxBillingValue); err != nil {
			return nil, err
		}
	}
	return func(b *v1alpha1.Billing) {
		if b.Labels == nil {
			b.Labels = map[string]v1alpha1.BillingValue{}
		}
		for key, value := range values {
			if value == nil {
				delete(b.Labels, key)
			} else {
				b.Labels[key] = v1alpha1.BillingValue(*value)
			}
		}
	}, nil
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
func textOrNull(field string, raw json.RawMessage, limit int) (*string, error) {
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
	return &value, nil
}
