package login

import (
	"context"
	"errors"
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/auth/session"
)

// revoke ends the session of a secret. An unknown secret is answered like a known one (RFC 7009,
// section 2.2). The client need not name itself: the secret says which session is meant.
func (h *Handler) revoke(w http.ResponseWriter, r *http.Request) error {
	in, err := form(r)
	if err != nil {
		return err
	}
	if in["client_id"] != "" {
		if err := in.client(); err != nil {
			return err
		}
	}
	secret, err := in.required("token")
	if err != nil {
		return err
	}
	if err := h.end(r.Context(), secret); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// end ends the session of a secret or of a cookie, if there is one.
func (h *Handler) end(ctx context.Context, secret string) error {
	err := h.Sessions.Revoke(ctx, secret)
	if unknown := (*session.Error)(nil); errors.As(err, &unknown) {
		return nil
	}
	return err
}
