package proxy

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// passed are the headers that go on to kcp. Whatever is not here does not: an
// identity or a route that a client claims has no other way in.
var passed = [...]string{
	"Accept", "Accept-Encoding", "Authorization", "Content-Encoding", "Content-Type",
	"If-Match", "If-None-Match", "User-Agent", "Kubectl-Command", "Kubectl-Session",
}

// passedOnUpgrade go on too where the connection becomes a stream.
var passedOnUpgrade = [...]string{
	"Connection", "Upgrade", "X-Stream-Protocol-Version", "Sec-Websocket-Key", "Sec-Websocket-Version",
	"Sec-Websocket-Protocol", "Sec-Websocket-Extensions",
}

// bearerProtocol is how a browser's WebSocket carries a token to a Kubernetes
// API.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// outbound builds the headers that go to kcp from those that came.
func outbound(in http.Header) http.Header {
	out := make(http.Header, len(passed))
	copyHeaders(out, in, passed[:])
	if upgrade(in) != "" {
		copyHeaders(out, in, passedOnUpgrade[:])
		// What Connection names is hop-by-hop; only the upgrade itself goes on.
		out["Connection"] = []string{"Upgrade"}
	}
	if out.Get("User-Agent") == "" {
		// Otherwise the transport would sign with a name of its own.
		out["User-Agent"] = []string{""}
	}
	return out
}

func copyHeaders(out, in http.Header, names []string) {
	for _, name := range names {
		if values := in[name]; len(values) > 0 {
			out[name] = values
		}
	}
}

// upgrade is the protocol that a request asks to change to; empty for none.
func upgrade(h http.Header) string {
	for _, line := range h["Connection"] {
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return h.Get("Upgrade")
			}
		}
	}
	return ""
}

// checkHeaders refuses a second identity beside the one that is gated.
func checkHeaders(h http.Header, token string) error {
	for name := range h {
		if strings.HasPrefix(strings.ReplaceAll(strings.ToLower(name), "_", "-"), "impersonate-") {
			return errs.New(errs.Forbidden, "impersonation is not possible through the hub; use your own rights")
		}
	}
	for _, line := range h["Sec-Websocket-Protocol"] {
		for protocol := range strings.SplitSeq(line, ",") {
			encoded, ok := strings.CutPrefix(strings.TrimSpace(protocol), bearerProtocol)
			if !ok {
				continue
			}
			hidden, err := base64.RawURLEncoding.DecodeString(encoded)
			if err != nil || string(hidden) != token {
				return errs.New(errs.Forbidden, "the token in Sec-WebSocket-Protocol is not that of the Authorization header")
			}
		}
	}
	return nil
}
