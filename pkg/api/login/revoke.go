package login

import (
	"errors"
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// revoke ends the session of a secret. An unknown secret is answered like a known one (RFC 7009,
// section 2.2), and with 503 if it names a session that goes on. The client need not name itself: the secret
// says which session is meant.
func (h *Handler) revoke(w http.ResponseWriter, r *http.Request, in params) error {
	if in["client_id"] != "" {
		if err := in.client(); err != nil {
			return err
		}
	}
	secret, err := in.required("token")
	if err != nil {
		return err
	}
	if err := h.end(r, secret); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// end ends the session of a secret or of a cookie, if there is one.
func (h *Handler) end(r *http.Request, secret string) error {
	held, known := h.SessionOf(secret)
	var logout Event
	// An end is for good: with a secret of before one could repeat its events without end.
	if known = known && held.Spec.EndedAt == nil; known {
		logout = Event{User: held.Spec.UserRef.Name, Action: "logout " + string(held.Spec.Client), Session: held.Name}
		// A logout takes rights away, so it does not depend on the audit log.
		_ = h.intend(r, logout)
	}
	err := h.Sessions.Revoke(r.Context(), secret)
	if unknown := (*session.Error)(nil); errors.As(err, &unknown) {
		return nil
	}
	if known {
		code := http.StatusOK
		if err != nil {
			code = httpapi.StatusOf(err)
		}
		h.record(r, logout, code)
	}
	return err
}
