package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Tag sets the ETag of an answer to a strong tag of the resource version. It sets none if the
// version is empty, as for an object that is not created yet.
//
// The tag covers the one object in kcp that the answer is about: a User, an Organization, a
// Workspace or a Membership, with its status; that of a Workspace also covers the billing that its
// Organization gave all of them. It does not cover other parts of the answer: the
// caller's role, the use of a quota, the first admin, a member's display name. It therefore
// protects against lost updates but does not validate cached answers: If-None-Match is ignored,
// and answers must not be stored.
func Tag(w http.ResponseWriter, version string) {
	if version != "" {
		w.Header().Set("ETag", tagOf(version))
	}
}

func tagOf(version string) string { return `"` + version + `"` }

// ifMatch is the name of the header in errors.
const ifMatch = "header:If-Match"

// IfMatch reads the precondition of a PUT, PATCH or DELETE request. match returns an error with the
// code PreconditionFailed for a resource version that the header does not list. It is nil if
// there is no precondition, and for other methods. The caller must make the version part of the
// write itself.
func IfMatch(r *http.Request) (match func(version string) error, err error) {
	lines := r.Header.Values("If-Match")
	if len(lines) == 0 || !slices.Contains([]string{http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method) {
		return nil, nil
	}
	given := strings.Trim(strings.Join(lines, ","), " \t")
	if given == "*" {
		// "*" accepts any version; a missing object is refused in any case.
		return nil, nil
	}
	strong, ok := tags(given)
	if !ok {
		return nil, errs.InvalidField(ifMatch, `must be * or a list of ETags in double quotes, such as "42"`)
	}
	return func(version string) error {
		if slices.Contains(strong, tagOf(version)) {
			return nil
		}
		return Changed(version)
	}, nil
}

// Changed is the error of a failed If-Match. version is the current resource version, if known.
func Changed(version string) error {
	message := "what the request is about was changed since it was read; read it again and repeat the request"
	if version != "" {
		message += ", with If-Match: " + tagOf(version) + " if it still applies"
	}
	e := errs.New(errs.PreconditionFailed, message, errs.Cause{Type: "PreconditionFailed", Field: ifMatch, Message: message})
	e.Version = version
	return e
}

// tags parses a list of entity tags (RFC 9110, 8.8.3) and returns the strong ones; weak ones
// never match. ok is false if the list is malformed or empty.
func tags(list string) (strong []string, ok bool) {
	found := false
	for {
		// List elements can be empty (RFC 9110, 5.6.1).
		if list = strings.TrimLeft(list, " \t,"); list == "" {
			return strong, found
		}
		tag, weak := strings.CutPrefix(list, "W/")
		if !strings.HasPrefix(tag, `"`) {
			return nil, false
		}
		end := strings.IndexByte(tag[1:], '"') + 2
		if end < 2 || strings.ContainsFunc(tag[1:end-1], notInTag) {
			return nil, false
		}
		if found = true; !weak {
			strong = append(strong, tag[:end])
		}
		if list = strings.TrimLeft(tag[end:], " \t"); list != "" && list[0] != ',' {
			return nil, false
		}
	}
}

// notInTag reports characters that an ETag cannot contain: spaces and control characters.
func notInTag(r rune) bool { return r <= ' ' || r == 0x7f }
