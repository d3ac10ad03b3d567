package login

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// maxState is the maximum length of the state of a client, in bytes.
const maxState = 512

// authorize begins the login of the command line, which ends on a page of the hub. Errors are a page: they are never sent to the
// redirect_uri of a malformed request.
func (h *Handler) authorize(w http.ResponseWriter, r *http.Request) error {
	in, err := parse(r.URL.RawQuery)
	if err != nil {
		return err
	}
	// A page of another site can send requests for images and frames.
	if dest := r.Header.Get("Sec-Fetch-Dest"); dest != "" && dest != "document" {
		return errs.New(errs.Invalid, "a login begins in a window of the browser, not inside of a page")
	}
	for _, must := range [][2]string{{"client_id", clientID}, {"response_type", "code"}, {"code_challenge_method", "S256"}} {
		if err := in.exactly(must[0], must[1]); err != nil {
			return err
		}
	}
	switch state, challenge := in["state"], in["code_challenge"]; {
	case !loopbackCallback(in["redirect_uri"]):
		return errs.InvalidField("redirect_uri", "must be http://127.0.0.1:{port}/callback or http://[::1]:{port}/callback")
	case state == "" || len(state) > maxState || strings.ContainsFunc(state, invisible):
		return errs.InvalidField("state", "must have 1 to 512 printable ASCII characters")
	case len(challenge) != 43 || !isUnreserved(challenge):
		return errs.InvalidField("code_challenge", "must be a SHA-256 hash in base64url, which has 43 characters")
	}
	return h.begin(w, r, progress{
		Kind: kindCLI, RedirectURI: in["redirect_uri"], ClientState: in["state"],
		Challenge: in["code_challenge"], Description: cleanDescription(in["description"]),
	})
}

// isUnreserved reports whether s has unreserved characters of RFC 3986 only, which a
// code_verifier and its hash consist of.
func isUnreserved(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		return !alphanumeric && !strings.ContainsRune("-._~", c)
	})
}

func invisible(c rune) bool { return c < ' ' || c > '~' }

// loopbackCallback reports whether a redirect_uri is the callback of a command line on the same
// machine as the browser, character by character (RFC 8252, section 7.3). A name such as
// localhost could resolve to another machine.
func loopbackCallback(uri string) bool {
	rest, v4 := strings.CutPrefix(uri, "http://127.0.0.1:")
	if !v4 {
		var v6 bool
		if rest, v6 = strings.CutPrefix(uri, "http://[::1]:"); !v6 {
			return false
		}
	}
	port, ok := strings.CutSuffix(rest, "/callback")
	n, err := strconv.ParseUint(port, 10, 16)
	return ok && err == nil && n > 0 && port == strconv.FormatUint(n, 10)
}
