package login

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// The error codes of OAuth that this package answers with. Those of a session.Error are passed
// on.
const (
	invalidRequest         = "invalid_request"
	accessDenied           = "access_denied"
	serverError            = "server_error"
	temporarilyUnavailable = "temporarily_unavailable"
)

// defaultRetryAfter is sent with a 429 or a 503 whose error does not say when to try again.
const defaultRetryAfter = 2 * time.Second

// refusal is an error in OAuth's form.
type refusal struct {
	// code is the error code of OAuth, status the HTTP status.
	code   string
	status int
	// message is a sentence for people, without a period; title is that of a page, if not the
	// one of the status.
	message    string
	title      string
	retryAfter time.Duration
	err        error
}

func (e *refusal) Error() string {
	if e.err == nil {
		return e.message
	}
	return e.message + ": " + e.err.Error()
}

func (e *refusal) Unwrap() error { return e.err }

// refusalOf converts an error. An unexpected one is logged as such and becomes a 503: all that
// can fail here is kcp or the provider.
func refusalOf(r *http.Request, err error) *refusal {
	var (
		known *refusal
		ended *session.Error
		e     *errs.Error
	)
	switch {
	case errors.As(err, &known):
	case errors.As(err, &ended):
		known = &refusal{code: ended.Code, status: http.StatusBadRequest, message: ended.Description, err: err}
	case errors.As(err, &e):
		known = ofCode(e)
	default:
		known = &refusal{code: temporarilyUnavailable, status: http.StatusServiceUnavailable, message: "the login service is not available at the moment", err: err}
		log.From(r.Context()).Error("login failed unexpectedly", zap.Error(err))
	}
	if (known.status == http.StatusServiceUnavailable || known.status == http.StatusTooManyRequests) && known.retryAfter == 0 {
		known.retryAfter = defaultRetryAfter
	}
	return known
}

// ofCode is the table of OAuth's errors by code.
func ofCode(e *errs.Error) *refusal {
	known := &refusal{code: invalidRequest, status: http.StatusBadRequest, message: e.Message, retryAfter: e.RetryAfter, err: e}
	switch e.Code {
	case errs.Forbidden, errs.Unauthenticated, errs.Conflict:
		known.code, known.status = accessDenied, http.StatusForbidden
	case errs.NotFound:
		known.status = http.StatusNotFound
	case errs.TooLarge:
		known.status = http.StatusRequestEntityTooLarge
	case errs.UnsupportedMediaType:
		known.status = http.StatusUnsupportedMediaType
	case errs.TooManyRequests:
		known.code, known.status = temporarilyUnavailable, http.StatusTooManyRequests
	case errs.Unavailable, errs.BadGateway, errs.Timeout:
		known.code, known.status = temporarilyUnavailable, http.StatusServiceUnavailable
	case errs.InsufficientStorage:
		known.code, known.status = temporarilyUnavailable, http.StatusInsufficientStorage
	case errs.Internal:
		known.code, known.status, known.message = temporarilyUnavailable, http.StatusServiceUnavailable, "the login service is not available at the moment"
	}
	return known
}

// report logs a refusal and sets the headers that it has in every form.
func (e *refusal) report(w http.ResponseWriter, r *http.Request) {
	logger := log.From(r.Context())
	if e.status >= http.StatusInternalServerError {
		logger.Warn("login request failed", zap.Int("code", e.status), zap.Error(e))
	} else {
		logger.Debug("login request refused", zap.Int("code", e.status), zap.Error(e))
	}
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.retryAfter.Seconds()))))
	}
}

// writeJSON serves an endpoint that reports errors as RFC 6749, section 5.2, says.
func writeJSON(serve httpapi.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := serve(w, r)
		if err == nil {
			return
		}
		e := refusalOf(r, err)
		e.report(w, r)
		status := e.status
		if status == http.StatusForbidden {
			status = http.StatusBadRequest
		}
		if err := httpapi.Write(w, status, rest.OAuthError{Error: e.code, Description: describe(e.message)}); err != nil {
			log.From(r.Context()).Debug("the answer could not be sent", zap.Error(err))
		}
	}
}

// describe returns a text with the characters only that RFC 6749 permits in an
// error_description.
func describe(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '"':
			return '\''
		case c < ' ', c > '~', c == '\\':
			return ' '
		}
		return c
	}, s)
}
