package mergepatch

import (
	"encoding/json"
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// IsNull tells whether the patch takes the member away.
func IsNull(raw json.RawMessage) bool { return string(raw) == "null" }

// Text reads a member that must be a string and cannot be taken away. ok is
// false where the patch leaves it alone. The error names field.
func Text(field string, raw json.RawMessage) (value string, ok bool, err error) {
	switch {
	case raw == nil:
		return "", false, nil
	case IsNull(raw):
		return "", false, errs.InvalidField(field, "cannot be taken away; give it a string, or leave it out")
	case json.Unmarshal(raw, &value) != nil:
		return "", false, errs.InvalidField(field, "must be a string")
	}
	return value, true, nil
}

// DisplayName reads the member displayName (O-1). ok is false where the patch
// leaves it alone.
func DisplayName(raw json.RawMessage) (name string, ok bool, err error) {
	const field = "displayName"
	if name, ok, err = Text(field, raw); err != nil || !ok {
		return "", false, err
	}
	if err := tenancy.CheckDisplayName(field, name); err != nil {
		return "", false, err
	}
	return name, true, nil
}

// ReadDisplayName reads a patch of which displayName is the only member.
func ReadDisplayName(r *http.Request) (name string, ok bool, err error) {
	var in struct {
		DisplayName json.RawMessage `json:"displayName"`
	}
	if err := httpapi.Read(r, &in); err != nil {
		return "", false, err
	}
	return DisplayName(in.DisplayName)
}
