package errs

import (
	"errors"
	"time"
)

// Code classifies a failure, independent of HTTP.
type Code int

// The codes. The zero value is none of them; an error without a code is Internal.
const (
	// Internal is an unexpected failure. Clients see a generic text only.
	Internal Code = iota + 1
	// Invalid means that the input is malformed or out of range; Causes name the fields.
	Invalid
	// Unauthenticated means that the credential is missing or invalid.
	Unauthenticated
	// Forbidden means that the caller lacks a right.
	Forbidden
	// NotFound means that the object does not exist, and that the caller may know so.
	NotFound
	// Conflict means that the state of the object does not permit the request.
	Conflict
	// AlreadyExists means that the name is taken.
	AlreadyExists
	// PreconditionFailed means that If-Match does not match the object.
	PreconditionFailed
	// TooLarge means that the request body exceeds the limit.
	TooLarge
	// UnsupportedMediaType means that the request body is not JSON.
	UnsupportedMediaType
	// MethodNotAllowed means that the resource does not support the HTTP method.
	MethodNotAllowed
	// Unprocessable means that the input is well-formed but changes an immutable field, or is out of
	// range at present.
	Unprocessable
	// TooManyRequests means that a rate limit is reached; RetryAfter tells when to retry.
	TooManyRequests
	// Unavailable means that a dependency, such as kcp, is down; a retry may succeed.
	Unavailable
	// InsufficientStorage means that nothing more can be stored for the caller. A retry without a
	// deletion does not help.
	InsufficientStorage
	// BadGateway means that kcp gave no valid answer to a proxied request.
	BadGateway
	// Timeout means that kcp did not answer in time.
	Timeout
	// NotImplemented means that the hub runs without what the request needs; a flag changes that.
	NotImplemented
)

// Cause is one reason for a failure, with the invalid field if there is one.
type Cause struct {
	// Type is machine-readable, for example "FieldValueInvalid" or "QuotaExceeded".
	Type string
	// Field is the invalid JSON path, header ("header:X-Kedge-Org") or query parameter
	// ("query:limit").
	Field string
	// Message is a sentence for people.
	Message string
}

// Error is a failure that is reported to the client. Message, Reason and Causes are sent
// to the client and hold no internal text; Err goes to the log only.
type Error struct {
	Code Code
	// Reason overrides the metav1.StatusReason of the code if it is not empty.
	Reason  string
	Message string
	Causes  []Cause
	// RetryAfter is sent as the Retry-After header if it is not zero.
	RetryAfter time.Duration
	// Version is the current resource version of the object whose precondition failed. It
	// is sent as the ETag header if it is not empty.
	Version string
	Err     error
}

// Error returns the message and the text of the wrapped error, for the log.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error for the client.
func New(code Code, message string, causes ...Cause) *Error {
	return &Error{Code: code, Message: message, Causes: causes}
}

// Wrap returns an error for the client that wraps err, which goes to the log only.
func Wrap(code Code, err error, message string) *Error {
	return &Error{Code: code, Message: message, Err: err}
}

// After sets when a client may retry, and returns the error.
func (e *Error) After(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

// InvalidField returns an Invalid error about one field.
func InvalidField(field, message string) *Error {
	return New(Invalid, field+": "+message, Cause{Type: "FieldValueInvalid", Field: field, Message: message})
}

// UnprocessableField returns an Unprocessable error about one field.
func UnprocessableField(field, message string) *Error {
	e := InvalidField(field, message)
	e.Code = Unprocessable
	return e
}

// CodeOf returns the code of err, or Internal if it has none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// Is reports whether err is or wraps an *Error with the code.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
