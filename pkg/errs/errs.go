package errs

import (
	"errors"
	"time"
)

// Code is the kind of a failure, independent of HTTP.
type Code int

// The codes. The zero value is not a code: an error without one is Internal.
const (
	// Internal is a bug of ours; its text never leaves the process.
	Internal Code = iota + 1
	// Invalid is input that the caller can mend; Causes name the fields.
	Invalid
	// Unauthenticated is a missing or bad credential.
	Unauthenticated
	// Forbidden is a right that the caller does not have.
	Forbidden
	// NotFound is something that the caller may know is missing.
	NotFound
	// Conflict is a state of the object that stands against the request.
	Conflict
	// AlreadyExists is a name that is taken.
	AlreadyExists
	// PreconditionFailed is an If-Match that does not.
	PreconditionFailed
	// TooLarge is a body over the limit.
	TooLarge
	// UnsupportedMediaType is a body that is not JSON.
	UnsupportedMediaType
	// MethodNotAllowed is a verb that the resource does not have.
	MethodNotAllowed
	// Unprocessable is well-formed input that a locked field stands against.
	Unprocessable
	// TooManyRequests is a rate limit; RetryAfter says when to come back.
	TooManyRequests
	// Unavailable is a dependency that is down for now.
	Unavailable
	// BadGateway is kcp not answering a proxied request.
	BadGateway
	// Timeout is kcp answering too slowly.
	Timeout
)

// Cause is one reason for a failure, with the field at fault where there is one.
type Cause struct {
	// Type is a machine-readable word, for example "FieldValueInvalid" or
	// "QuotaExceeded".
	Type string
	// Field is the JSON path, header ("header:X-Kedge-Org") or query parameter
	// ("query:limit") at fault.
	Field string
	// Message is for people.
	Message string
}

// Error is a failure that a caller is told of. Message, Reason and Causes are
// written for the caller and hold no internal text; Err is for the log.
type Error struct {
	Code Code
	// Reason overrides the code's own metav1.StatusReason where it is not empty.
	Reason  string
	Message string
	Causes  []Cause
	// RetryAfter is sent as the Retry-After header where it is not zero.
	RetryAfter time.Duration
	// Version is what the object of a failed precondition is at present; it is sent
	// as the ETag header where it is not empty.
	Version string
	Err     error
}

// Error returns the message and, for the log, what is behind it.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns what is behind the error.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error for the caller.
func New(code Code, message string, causes ...Cause) *Error {
	return &Error{Code: code, Message: message, Causes: causes}
}

// Wrap makes an error for the caller around one for the log.
func Wrap(code Code, err error, message string) *Error {
	return &Error{Code: code, Message: message, Err: err}
}

// InvalidField is a 400 about one field.
func InvalidField(field, message string) *Error {
	return New(Invalid, field+": "+message, Cause{Type: "FieldValueInvalid", Field: field, Message: message})
}

// CodeOf finds the code of err; Internal where it has none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// Is tells whether err is an *Error of the given code.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
