package client

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Error is an error answer of a hub. It is an APIStatus of k8s.io/apimachinery/pkg/api/errors.
type Error struct {
	ErrStatus metav1.Status
	// RequestID is what the operator of the hub finds the request by.
	RequestID string
}

// Error is the message of the hub. It says what was wrong and what to do.
func (e *Error) Error() string { return e.ErrStatus.Message }

// Status is the hub's answer.
func (e *Error) Status() metav1.Status { return e.ErrStatus }

// Code is the HTTP status code.
func (e *Error) Code() int { return int(e.ErrStatus.Code) }

// Causes are the causes that the hub names. Each names the field at fault, if there is one.
func (e *Error) Causes() []metav1.StatusCause {
	if e.ErrStatus.Details == nil {
		return nil
	}
	return e.ErrStatus.Details.Causes
}

// failure converts an answer that is not 2xx.
func failure(a *Response) error {
	e := &Error{RequestID: a.Header.Get("X-Request-Id")}
	if json.Unmarshal(a.Body, &e.ErrStatus) != nil || e.ErrStatus.Message == "" {
		e.ErrStatus = metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonUnknown,
			Message: "the server answered " + strconv.Itoa(a.Code) + " " + http.StatusText(a.Code) + "; is it a kedge-hub?",
		}
	}
	e.ErrStatus.Code = int32(a.Code) //nolint:gosec // A status code has three digits.
	return e
}

// UnreachableError means that the hub could not be reached or did not answer.
type UnreachableError struct {
	Server string
	Err    error
}

// Error names the hub.
func (e *UnreachableError) Error() string {
	what := "gave no answer"
	if dial := new(net.OpError); errors.As(e.Err, &dial) && dial.Op == "dial" {
		what = "cannot be reached"
	}
	return "the hub at " + e.Server + " " + what + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// CertificateError means that the certificate of the hub is not trusted, or not valid at this
// time.
type CertificateError struct {
	Server string
	// Untrusted is true if the authority that signed the certificate is not trusted.
	Untrusted bool
	Err       error
}

// Error names the hub.
func (e *CertificateError) Error() string {
	if e.Untrusted {
		return "the certificate of " + e.Server + " is signed by an authority that is not trusted"
	}
	return "the certificate of " + e.Server + " is not valid at this time; check the clock of this computer, then tell the hub's operator"
}

// Unwrap returns the cause.
func (e *CertificateError) Unwrap() error { return e.Err }

// Explain converts the error of a request to a hub that got no answer.
func Explain(server string, err error) error {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return &CertificateError{Server: server, Untrusted: true, Err: err}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return &CertificateError{Server: server, Err: err}
	}
	// url.Error adds the method and path of the API, which callers do not need.
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	return &UnreachableError{Server: server, Err: err}
}
