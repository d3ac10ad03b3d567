package login

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

func (h *Handler) token(w http.ResponseWriter, r *http.Request, in params) error {
	if in["grant_type"] == exchangeGrant && h.Jobs != nil {
		return h.exchange(w, r, in)
	}
	grantType, err := in.required("grant_type")
	if h.Provider == nil && err == nil {
		err = unsupportedGrant(exchangeGrant)
	}
	if h.Provider != nil {
		err = cmp.Or(in.client(), err)
	}
	if err != nil {
		return err
	}
	var t session.Tokens
	switch grantType {
	case "authorization_code":
		t, err = h.redeem(r.Context(), in)
	case "refresh_token":
		t, err = withSecret(r.Context(), in, "refresh_token", h.Sessions.Refresh)
	case deviceGrant:
		t, err = withSecret(r.Context(), in, "device_code", h.Devices.PollDevice)
	default:
		return unsupportedGrant("authorization_code, refresh_token or " + deviceGrant)
	}
	issued := Event{User: t.User, Action: "token " + grantType, Session: t.Session, Generation: t.Generation}
	if err != nil {
		e := refusalOf(r, err)
		if e.code != session.CodeAuthorizationPending && e.code != session.CodeSlowDown {
			if held, ok := h.SessionOf(in["refresh_token"]); ok {
				issued.User = held.Spec.UserRef.Name
			}
			if refusal := (*session.Error)(nil); errors.As(err, &refusal) {
				issued.Session = refusal.Ended
			}
			h.record(r, issued, e.status)
		}
		return e
	}
	// The login has an intent, and the session goes on: a full audit log does not end it. The
	// cache may not have the session yet.
	h.record(r, issued, http.StatusOK)
	w.Header().Set("Pragma", "no-cache")
	return httpapi.Write(w, http.StatusOK, rest.Tokens{
		AccessToken: t.IDToken, TokenType: "Bearer", RefreshToken: t.Secret,
		ExpiresIn: int64(max(t.ExpiresAt.Sub(h.Clock.Now()), 0) / time.Second),
	})
}

func unsupportedGrant(supported string) error {
	return &refusal{code: "unsupported_grant_type", status: http.StatusBadRequest, message: "grant_type: must be " + supported}
}

func (h *Handler) redeem(ctx context.Context, in params) (session.Tokens, error) {
	code, err := in.required("code")
	if err != nil {
		return session.Tokens{}, err
	}
	verifier, err := in.required("code_verifier")
	if err != nil {
		return session.Tokens{}, err
	}
	if len(verifier) < 43 || len(verifier) > 128 || !isUnreserved(verifier) {
		return session.Tokens{}, errs.InvalidField("code_verifier", "must have 43 to 128 of the characters A-Z a-z 0-9 - . _ ~")
	}
	redirectURI, err := in.required("redirect_uri")
	if err != nil {
		return session.Tokens{}, err
	}
	return h.Sessions.Redeem(ctx, code, verifier, redirectURI)
}

func withSecret(ctx context.Context, in params, name string, get func(context.Context, string) (session.Tokens, error)) (session.Tokens, error) {
	secret, err := in.required(name)
	if err != nil {
		return session.Tokens{}, err
	}
	return get(ctx, secret)
}
