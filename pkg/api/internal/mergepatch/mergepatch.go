package mergepatch

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
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

// Description reads the member description. null empties it. ok is false if the body does not have it.
func Description(raw []byte) (text string, ok bool, err error) {
	const field = "description"
	if IsNull(raw) {
		return "", true, nil
	}
	if text, ok, err = Text(field, raw); err == nil {
		err = tenancy.CheckDescription(field, text)
	}
	return text, ok, err
}

// OneOf returns what reads a member that has one of some values and cannot be removed. ok is false if the patch
// does not have it.
func OneOf(field string, values ...string) func(raw []byte) (value string, ok bool, err error) {
	return func(raw []byte) (value string, ok bool, err error) {
		if value, ok, err = Text(field, raw); ok && !slices.Contains(values, value) {
			err = errs.InvalidField(field, "must be "+strings.Join(values, " or "))
		}
		return value, ok, err
	}
}

// Given returns nil for a member that the patch does not have.
func Given(value string, ok bool, err error) (*string, error) {
	if err != nil || !ok {
		return nil, err
	}
	return &value, nil
}

// Rename reads a patch whose only member is displayName. It returns nil if the patch does not have it.
func Rename(r *http.Request) (*string, error) {
	var in rest.RenameRequest
	if err := httpapi.Read(r, &in); err != nil {
		return nil, err
	}
	return Given(DisplayName(in.DisplayName))
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
