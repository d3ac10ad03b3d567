package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Tag gives an answer the strong ETag of the object that it is about, whose
// resource version is given; none where that is empty, as with what is not made
// yet.
//
// The tag covers the one object of kcp that the answer is about: a User, an
// Organization, a Workspace or a Membership, with its status. It does not cover
// what an answer shows beside it: the caller's role, how much of a quota is used,
// who the first admin is, a member's name. So it says whether a change would go over
// somebody else's, and not whether an answer that was kept is still good: If-None-Match
// is not honoured, and answers are not to be stored.
func Tag(w http.ResponseWriter, version string) {
	if version != "" {
		w.Header().Set("ETag", tagOf(version))
	}
}

func tagOf(version string) string { return `"` + version + `"` }

// ifMatch is how errors name the header.
const ifMatch = "header:If-Match"

// IfMatch reads the condition of a request on the object that it changes. match
// refuses with errs.PreconditionFailed an object whose resource version is not
// among those that the caller named; it is nil where any will do, and for methods
// other than PATCH and DELETE, which have no such condition. Only who makes it part of
// the write itself has kept it.
func IfMatch(r *http.Request) (match func(version string) error, err error) {
	lines := r.Header.Values("If-Match")
	if len(lines) == 0 || r.Method != http.MethodPatch && r.Method != http.MethodDelete {
		return nil, nil
	}
	given := strings.Trim(strings.Join(lines, ","), " \t")
	if given == "*" {
		// What is not there is refused anyway.
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

// Changed refuses a request whose If-Match does not name what the object is at
// present: that resource version, where it is known.
func Changed(version string) error {
	message := "what the request is about was changed since it was read; read it again and repeat the request"
	if version != "" {
		message += ", with If-Match: " + tagOf(version) + " if it still applies"
	}
	e := errs.New(errs.PreconditionFailed, message, errs.Cause{Type: "PreconditionFailed", Field: ifMatch, Message: message})
	e.Version = version
	return e
}

// tags reads a list of entity tags (RFC 9110, 8.8.3) and returns the strong ones:
// weak ones never match. ok is false where it is no such list, or has none.
func tags(list string) (strong []string, ok bool) {
	found := false
	for {
		// Between commas there may be nothing (RFC 9110, 5.6.1).
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

// notInTag tells what an ETag cannot hold: spaces and control characters.
func notInTag(r rune) bool { return r <= ' ' || r == 0x7f }
