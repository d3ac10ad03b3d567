package mergepatch

import (
	"encoding/json"
	"net/http"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// IsNull reports whether the patch removes the member.
func IsNull(raw []byte) bool { return string(raw) == "null" }

// Text reads a member that must be a string and cannot be removed. ok is false if the patch
// does not have it. The error names field.
func Text(field string, raw []byte) (value string, ok bool, err error) {
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

// DisplayName reads the member displayName (O-1). ok is false if the patch does not have it.
func DisplayName(raw []byte) (name string, ok bool, err error) {
	const field = "displayName"
	if name, ok, err = Text(field, raw); err != nil || !ok {
		return "", false, err
	}
	if err := tenancy.CheckDisplayName(field, name); err != nil {
		return "", false, err
	}
	return name, true, nil
}

// Description reads the member description. It returns nil if the body does not have it, and "" for null.
func Description(raw []byte) (*string, error) {
	const field = "description"
	switch {
	case raw == nil:
		return nil, nil
	case IsNull(raw):
		return new(string), nil
	}
	text, _, err := Text(field, raw)
	if err == nil {
		err = tenancy.CheckDescription(field, text)
	}
	if err != nil {
		return nil, err
	}
	return &text, nil
}

// Rename reads a patch whose only member is displayName. It returns nil if the patch does not have it.
func Rename(r *http.Request) (*string, error) {
	var in rest.RenameRequest
	if err := httpapi.Read(r, &in); err != nil {
		return nil, err
	}
	name, given, err := DisplayName(in.DisplayName)
	if err != nil || !given {
		return nil, err
	}
	return &name, nil
}

// Expiry reads the member expiresAt. It returns nil if the body does not have it, and an Expiry without a
// time for null.
func Expiry(raw []byte, now time.Time) (*tenancy.Expiry, error) {
	const field = "expiresAt"
	switch {
	case raw == nil:
		return nil, nil
	case IsNull(raw):
		return &tenancy.Expiry{}, nil
	}
	text, _, err := Text(field, raw)
	if err != nil {
		return nil, err
	}
	at, err := tenancy.ParseExpiry(field, text, now)
	return &tenancy.Expiry{At: at}, err
}
