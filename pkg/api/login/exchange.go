package login

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// exchangeGrant is the grant_type of RFC 8693.
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"

	tokenTypeJWT    = "urn:ietf:params:oauth:token-type:jwt"          //nolint:gosec // it names a type and is no credential
	tokenTypeID     = "urn:ietf:params:oauth:token-type:id_token"     //nolint:gosec // likewise
	tokenTypeAccess = "urn:ietf:params:oauth:token-type:access_token" //nolint:gosec // likewise

	// botsPath is the path of the resources for which a token is exchanged.
	botsPath = "/bots/"

	invalidGrant = "invalid_grant"
)

// Jobs verifies the ID tokens of jobs.
type Jobs interface {
	Verify(ctx context.Context, token string) (*auth.Workload, error)
	// Genuine returns the subject of a token that was signed with a known key. It makes no request.
	Genuine(token string) (subject string, ok bool)
}

// IssueJobToken gives a job a token of a bot and says when it ends. name is the name of the job for
// people. A refusal is tenancy.ErrNotTrusted.
type IssueJobToken = func(ctx context.Context, bot string, job tenancy.Workload, name string) (token string, until time.Time, err error)

// exchange answers the ID token of a job with a token of a bot. Every refusal of the token has one text,
// so that it says nothing about bots and what they trust.
func (h *Handler) exchange(w http.ResponseWriter, r *http.Request, in params) error {
	bot, token, err := h.exchanged(in)
	if err != nil {
		return err
	}
	job, err := h.Jobs.Verify(r.Context(), token)
	switch {
	case errs.Is(err, errs.Unavailable):
		return err
	case err != nil:
		log.From(r.Context()).Debug("the ID token of a job is not valid", zap.Error(err))
		return notTrusted(err)
	}
	issued, until, err := h.IssueJobToken(r.Context(), bot, tenancy.Workload{
		Issuer: job.Issuer, Audience: job.Audience, Claims: job.Claims, ExpiresAt: job.ExpiresAt, ID: job.ID,
	}, job.Name)
	if errors.Is(err, tenancy.ErrNotTrusted) {
		return notTrusted(err)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Pragma", "no-cache")
	return httpapi.Write(w, http.StatusOK, rest.ExchangedToken{
		AccessToken: issued, IssuedTokenType: tokenTypeAccess, TokenType: "Bearer",
		ExpiresIn: int64(max(until.Sub(h.Clock.Now()), 0) / time.Second),
	})
}

func notTrusted(err error) error {
	return &refusal{
		code: invalidGrant, status: http.StatusBadRequest, err: err,
		message: "this job gets no token of this bot; an admin of the workspace sees why in the trust rules of the bot and in the audit log",
	}
}

// exchanged reads the form of an exchange.
func (h *Handler) exchanged(in params) (bot, token string, err error) {
	if token, err = in.required("subject_token"); err != nil {
		return "", "", err
	}
	switch kind, err := in.required("subject_token_type"); {
	case err != nil:
		return "", "", err
	case kind != tokenTypeJWT && kind != tokenTypeID:
		return "", "", errs.InvalidField("subject_token_type", "must be "+tokenTypeJWT+" or "+tokenTypeID)
	}
	switch kind := in["requested_token_type"]; kind {
	case "", tokenTypeAccess, tokenTypeJWT:
	default:
		return "", "", errs.InvalidField("requested_token_type", "must be "+tokenTypeAccess)
	}
	if in["actor_token"] != "" {
		return "", "", errs.InvalidField("actor_token", "is not supported")
	}
	resource, err := in.required("resource")
	if err != nil {
		return "", "", err
	}
	bot, ok := strings.CutPrefix(resource, h.ExternalURL+botsPath)
	if !ok || !tenancy.IsUUID(bot) {
		return "", "", errs.InvalidField("resource", "must be "+h.ExternalURL+botsPath+" with the UUID of a bot")
	}
	return bot, token, nil
}

// job returns the subject of the genuine ID token of a job.
func (h *Handler) job(in params) string {
	if h.Jobs == nil || in["grant_type"] != exchangeGrant {
		return ""
	}
	if subject, ok := h.Jobs.Genuine(in["subject_token"]); ok {
		return "job " + subject
	}
	return ""
}
