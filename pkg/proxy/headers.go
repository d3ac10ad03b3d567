package proxy

import (
	"encoding/base64"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// bearerProtocol is the prefix of the subprotocol in which a browser's WebSocket sends a
// token to a Kubernetes API.
const bearerProtocol = "base64url.bearer.authorization.k8s.io." //nolint:gosec // a name, not a credential

// forwarded reports whether a header goes on to kcp. It is an allow-list: no header that
// claims an identity or a route is on it.
func forwarded(name string, upgrading bool) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Authorization", "Content-Type", "If-Match", "If-None-Match",
		"User-Agent", "Kubectl-Command", "Kubectl-Session":
		return true
	// kcp refuses a watch over a WebSocket without an Origin.
	case "Connection", "Upgrade", "Origin", "X-Stream-Protocol-Version", "Sec-Websocket-Key", "Sec-Websocket-Version",
		"Sec-Websocket-Protocol", "Sec-Websocket-Extensions":
		return upgrading
	}
	return false
}

// cleanHeader removes from out every header that is not forwarded. httputil.ReverseProxy has
// removed what Connection names, and kept Connection and Upgrade of an upgrade only.
// authorization is that of the incoming request, even if Connection names it.
func cleanHeader(out http.Header, authorization []string, requestID string) {
	upgrading := len(out["Upgrade"]) > 0
	for name := range out {
		if !forwarded(name, upgrading) {
			delete(out, name)
		}
	}
	out["Authorization"] = authorization
	if requestID != "" {
		// kcp's audit log then has the request id of the hub.
		out["Audit-Id"] = []string{requestID}
	}
}

// upgrades reports whether a request asks for another protocol. It decides as
// httputil.ReverseProxy does.
func upgrades(h http.Header) bool {
	return httpguts.HeaderValuesContainsToken(h["Connection"], "Upgrade") && h.Get("Upgrade") != ""
}

// checkHeaders refuses a second token, an upgrade to a protocol that carries further
// requests, which no gate would see, and one of a request that no limit of streams counts.
func checkHeaders(r *http.Request, info *request.RequestInfo, token string) error {
	h := r.Header
	switch {
	case !upgrades(h):
	case len(h["Upgrade"]) != 1 || !streamProtocol(h.Get("Upgrade")):
		return errs.InvalidField("header:Upgrade", "only websocket and SPDY/3.1 are served")
	case !streaming(r, info):
		return errs.InvalidField("header:Upgrade", "only watches, followed logs, exec, attach, portforward and proxy can be upgraded")
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

// checkProtocol refuses a subprotocol that carries a token other than the authenticated one.
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
