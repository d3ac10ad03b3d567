package proxy

import (
	"encoding/base64"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// bearerProtocol is how a browser's WebSocket carries a token to a Kubernetes
// API.
const bearerProtocol = "base64url.bearer.authorization.k8s.io." //nolint:gosec // a name, not a credential

// passes is the list of the headers that go on to kcp. Whatever is not here does
// not: an identity or a route that a client claims has no other way in.
func passes(name string, upgrading bool) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Authorization", "Content-Type", "If-Match", "If-None-Match",
		"User-Agent", "Kubectl-Command", "Kubectl-Session":
		return true
	// kcp serves no watch over a WebSocket that has no Origin.
	case "Connection", "Upgrade", "Origin", "X-Stream-Protocol-Version", "Sec-Websocket-Key", "Sec-Websocket-Version",
		"Sec-Websocket-Protocol", "Sec-Websocket-Extensions":
		return upgrading
	}
	return false
}

// clean leaves in out what goes on to kcp. out comes from httputil.ReverseProxy,
// which took away what Connection names and left of Connection and Upgrade the
// upgrade itself; authorization is what came in, whatever Connection says of it.
func clean(out http.Header, authorization []string, requestID string) {
	upgrading := len(out["Upgrade"]) > 0
	for name := range out {
		if !passes(name, upgrading) {
			delete(out, name)
		}
	}
	out["Authorization"] = authorization
	if requestID != "" {
		// kcp's audit log then names the request as the hub's log does.
		out["Audit-Id"] = []string{requestID}
	}
}

// upgrades tells whether a request asks for another protocol, as
// httputil.ReverseProxy does.
func upgrades(h http.Header) bool {
	return httpguts.HeaderValuesContainsToken(h["Connection"], "Upgrade") && h.Get("Upgrade") != ""
}

// checkHeaders refuses a second token beside the one that is gated, and a change
// to a protocol in which the next request would pass ungated.
func checkHeaders(h http.Header, token string) error {
	if upgrades(h) && (len(h["Upgrade"]) != 1 || !streamProtocol(h.Get("Upgrade"))) {
		return errs.InvalidField("header:Upgrade", "only websocket and SPDY/3.1 are served")
	}
	for _, line := range h["Sec-Websocket-Protocol"] {
		for protocol := range strings.SplitSeq(line, ",") {
			if err := checkProtocol(strings.TrimSpace(protocol), token); err != nil {
				return err
			}
		}
	}
	return nil
}

func streamProtocol(s string) bool {
	return strings.EqualFold(s, "websocket") || strings.EqualFold(s, "SPDY/3.1")
}

// checkProtocol refuses a subprotocol that hides another token than the gated.
func checkProtocol(protocol, token string) error {
	if len(protocol) < len(bearerProtocol) || !strings.EqualFold(protocol[:len(bearerProtocol)], bearerProtocol) {
		return nil
	}
	hidden, err := base64.RawURLEncoding.DecodeString(protocol[len(bearerProtocol):])
	if err != nil || string(hidden) != token {
		return errs.New(errs.Forbidden, "the token in Sec-WebSocket-Protocol is not that of the Authorization header")
	}
	return nil
}
