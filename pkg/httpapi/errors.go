package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// Handler is an HTTP handler that returns an error.
type Handler func(w http.ResponseWriter, r *http.Request) error

// ServeHTTP implements http.Handler. It answers with the error of the handler.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		WriteError(w, r, err)
	}
}

// Handle converts the Handler of a route to an http.HandlerFunc, for chi. Below Parameters.Declare it refuses a query that the
// route does not have.
func Handle(h Handler) http.HandlerFunc {
	return Handler(func(w http.ResponseWriter, r *http.Request) error {
		if err := checkQuery(r); err != nil {
			return err
		}
		return h(w, r)
	}).ServeHTTP
}

// The reasons of a 412, a 501 and a 507. Kubernetes has none for them.
const (
	reasonNotImplemented      metav1.StatusReason = "NotImplemented"
	reasonPreconditionFailed  metav1.StatusReason = "PreconditionFailed"
	reasonInsufficientStorage metav1.StatusReason = "InsufficientStorage"
)

// statusOf is the table of HTTP statuses and reasons by code.
func statusOf(code errs.Code) (int, metav1.StatusReason) {
	switch code {
	case errs.Invalid:
		return http.StatusBadRequest, metav1.StatusReasonBadRequest
	case errs.Unauthenticated:
		return http.StatusUnauthorized, metav1.StatusReasonUnauthorized
	case errs.Forbidden:
		return http.StatusForbidden, metav1.StatusReasonForbidden
	case errs.NotFound:
		return http.StatusNotFound, metav1.StatusReasonNotFound
	case errs.Conflict:
		return http.StatusConflict, metav1.StatusReasonConflict
	case errs.AlreadyExists:
		return http.StatusConflict, metav1.StatusReasonAlreadyExists
	case errs.PreconditionFailed:
		return http.StatusPreconditionFailed, reasonPreconditionFailed
	case errs.TooLarge:
		return http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge
	case errs.UnsupportedMediaType:
		return http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType
	case errs.MethodNotAllowed:
		return http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed
	case errs.Unprocessable:
		return http.StatusUnprocessableEntity, metav1.StatusReasonInvalid
	case errs.TooManyRequests:
		return http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	case errs.Unavailable:
		return http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	case errs.InsufficientStorage:
		return http.StatusInsufficientStorage, reasonInsufficientStorage
	case errs.BadGateway:
		return http.StatusBadGateway, metav1.StatusReasonServiceUnavailable
	case errs.Timeout:
		return http.StatusGatewayTimeout, metav1.StatusReasonTimeout
	case errs.NotImplemented:
		return http.StatusNotImplemented, reasonNotImplemented
	}
	return http.StatusInternalServerError, metav1.StatusReasonInternalError
}

// StatusOf returns the HTTP status of an error.
func StatusOf(err error) int {
	code, _ := statusOf(errs.CodeOf(err))
	return code
}

// internalMessage is the message of all internal errors.
const internalMessage = "internal error; the response's X-Request-Id names it in the hub's log"

// defaultRetryAfter is sent with a 429 or a 503 whose error does not say when to try again.
const defaultRetryAfter = 2 * time.Second

// discovers reports whether a request is for aggregated discovery. Only kubectl and similar
// clients send such requests.
func discovers(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList")
}

// plain answers with plain text.
func plain(w http.ResponseWriter, code int, message string) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, message)
}

// WriteError answers with the metav1.Status of an error. Refusals of aggregated discovery are
// plain text, because kubectl shows nothing but "unknown" of a Status there. The wrapped error
// goes to the log; the answer to an internal error has a generic message.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	var e *errs.Error
	if !errors.As(err, &e) {
		e = errs.Wrap(errs.Internal, err, "")
	}
	code, reason := statusOf(e.Code)
	if e.Reason != "" {
		reason = metav1.StatusReason(e.Reason)
	}
	message := e.Message
	if code == http.StatusInternalServerError {
		message = internalMessage
	}
	logger := log.From(r.Context())
	switch {
	case code == http.StatusInternalServerError:
		logger.Error("request failed", zap.Error(err))
	case code > http.StatusInternalServerError:
		logger.Warn("request failed", zap.Int("code", code), zap.Error(err))
	default:
		logger.Debug("request refused", zap.Int("code", code), zap.Error(err))
	}
	if (code == http.StatusForbidden || code == http.StatusNotFound) && discovers(r) {
		plain(w, code, message)
		return
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  message,
		Reason:   reason,
		Code:     int32(code), //nolint:gosec // an HTTP status fits
	}
	header, retryAfter := w.Header(), e.RetryAfter
	if retryAfter == 0 && (code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests) {
		retryAfter = defaultRetryAfter
	}
	if len(e.Causes) > 0 || retryAfter > 0 {
		status.Details = &metav1.StatusDetails{}
	}
	for _, c := range e.Causes {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: metav1.CauseType(c.Type), Field: c.Field, Message: c.Message})
	}
	if retryAfter > 0 {
		seconds := int32(math.Ceil(retryAfter.Seconds()))
		status.Details.RetryAfterSeconds = seconds
		header.Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	Tag(w, e.Version)
	if code == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", "Bearer")
	}
	if err := Write(w, code, &status); err != nil {
		logger.Debug("the answer could not be sent", zap.Error(err))
	}
}

// NotFound answers a request for a path without a route.
func NotFound(w http.ResponseWriter, r *http.Request) {
	WriteError(w, r, errs.New(errs.NotFound, "there is nothing at this path; the API is under /api, clusters are under /clusters/{id}"))
}

// MethodNotAllowed answers a request with a method that the path does not support. The header
// Allow lists the supported ones.
func MethodNotAllowed(w http.ResponseWriter, r *http.Request) {
	var has []string
	if routing := chi.RouteContext(r.Context()); routing != nil && routing.Routes != nil {
		path := cmp.Or(r.URL.RawPath, r.URL.Path)
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			routed := method
			if method == http.MethodHead {
				// Every GET route serves HEAD too.
				routed = http.MethodGet
			}
			if routing.Routes.Match(chi.NewRouteContext(), routed, path) {
				has = append(has, method)
			}
		}
	}
	w.Header().Set("Allow", strings.Join(has, ", "))
	WriteError(w, r, errs.New(errs.MethodNotAllowed, fmt.Sprintf("this path does not have the method %s", safeMethod(r.Method))))
}

func safeMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "of this request"
}
