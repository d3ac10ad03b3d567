package login

import (
	"net/http"
	"time"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// proof returns the session or the login of a genuine secret in a request. It is empty for the request
// of a stranger. It computes MACs and reads nothing, so that a forged secret costs nothing else.
type proof func(*http.Request) string

func stranger(*http.Request) string { return "" }

// returning returns the session of the cookie of the portal, or the person of the known cookie: a
// browser in which somebody logged in before.
func (h *Handler) returning(r *http.Request) string {
	if cookies := r.CookiesNamed(sessionCookie); len(cookies) == 1 {
		if key := h.genuine(cookies[0].Value); key != "" {
			return key
		}
	}
	var k known
	if cookies := r.CookiesNamed(knownCookie); len(cookies) != 1 || h.open(sealKnown, cookies[0].Value, &k) != nil ||
		!h.Clock.Now().Before(time.Unix(k.ExpiresAt, 0)) {
		return ""
	}
	return "person " + k.User
}

// inProgress returns the login in progress of this browser.
func (h *Handler) inProgress(r *http.Request) string {
	if p, err := h.progress(r); err == nil {
		return "login " + p.State
	}
	return h.returning(r)
}

func (h *Handler) genuine(presented string) string {
	if name, ok := h.Keyring.Genuine(presented); ok {
		return "session " + name
	}
	return ""
}

// page serves an endpoint that browsers open. It reports errors as a page.
func (h *Handler) page(of proof, serve httpapi.Handler) http.HandlerFunc {
	return h.pages.handle(h.admit(of, serve))
}

// admit refuses requests beyond the limit, and all requests while kcp is unavailable.
func (h *Handler) admit(of proof, serve httpapi.Handler) httpapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := h.limit(r, of(r)); err != nil {
			return err
		}
		if err := h.Available(r.Context()); err != nil {
			return err
		}
		return serve(w, r)
	}
}

// admitSecret is admit for an endpoint of the command line. The fields of its form can have a genuine
// secret.
func (h *Handler) admitSecret(serve func(http.ResponseWriter, *http.Request, params) error, fields ...string) httpapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		in, malformed := form(r)
		of := func(*http.Request) string {
			for _, field := range fields {
				if key := h.genuine(in[field]); key != "" {
					return key
				}
			}
			return h.job(in)
		}
		return h.admit(of, func(w http.ResponseWriter, r *http.Request) error {
			if malformed != nil {
				return malformed
			}
			return serve(w, r, in)
		})(w, r)
	}
}

// limit takes a request from the limit of its session or login or, without one, from that of its
// peer.
func (h *Handler) limit(r *http.Request, key string) error {
	if key == "" {
		return h.Limits.Stranger(r.Context())
	}
	return h.Limits.Session(key)
}
