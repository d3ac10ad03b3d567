package mergepatch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// The limits of the schema of Billing, in characters. They are checked here for better messages.
const (
	maxBillingKey   = 63
	maxBillingValue = 256
)

// Billing reads the member billing. It returns nil if the body does not have it.
func Billing(raw []byte) (tenancy.BillingEdit, error) {
	if raw == nil {
		return nil, nil
	}
	in, err := Object("billing", raw)
	if err != nil {
		return nil, err
	}
	if in == nil {
		return func(*v1alpha1.Billing) *v1alpha1.Billing { return nil }, nil
	}
	var edits []func(*v1alpha1.Billing)
	for _, field := range slices.Sorted(maps.Keys(in)) {
		switch field {
		case "costCenter":
			value, err := textOrNull("billing.costCenter", in[field], tenancy.MaxCostCenter)
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
	return func(held *v1alpha1.Billing) *v1alpha1.Billing {
		changed := &v1alpha1.Billing{}
		if held != nil {
			changed = held.DeepCopy()
		}
		for _, edit := range edits {
			edit(changed)
		}
		return changed
	}, nil
}

func labels(raw json.RawMessage) (func(*v1alpha1.Billing), error) {
	in, err := Object("billing.labels", raw)
	if err != nil {
		return nil, err
	}
	if in == nil {
		return func(b *v1alpha1.Billing) { b.Labels = nil }, nil
	}
	values := map[string]*string{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if n := utf8.RuneCountInString(key); n < 1 || n > maxBillingKey || strings.ContainsFunc(key, unicode.IsControl) {
			return nil, errs.InvalidField("billing.labels", fmt.Sprintf("keys have 1 to %d characters, and no control characters", maxBillingKey))
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

// Object reads a member that is an object. It returns nil if the patch removes it.
func Object(field string, raw json.RawMessage) (map[string]json.RawMessage, error) {
	if IsNull(raw) {
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
	if IsNull(raw) {
		return nil, nil
	}
	value, _, err := Text(field, raw)
	if err != nil {
		return nil, err
	}
	switch {
	case utf8.RuneCountInString(value) > limit:
		return nil, errs.InvalidField(field, fmt.Sprintf("must have at most %d characters", limit))
	case strings.ContainsFunc(value, unicode.IsControl):
		return nil, errs.InvalidField(field, "must not contain control characters")
	}
	return &value, nil
}
