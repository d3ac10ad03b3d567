package v1

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Answer is what the client keeps of an answer beside its fields. The hub leaves it empty.
type Answer struct {
	// ETag is the version of an object, for client.IfMatch, and Code the HTTP status. The items of
	// a list have neither.
	ETag string
	Code int
	// Raw is the JSON of the object as the hub sent it.
	Raw json.RawMessage
}

// Kept returns what the client keeps, to be set.
func (a *Answer) Kept() *Answer { return a }

// JSON returns the object as the hub sent it.
func (a Answer) JSON() []byte { return a.Raw }

// List is one page of a list. Continue is the token of the next page, empty on the last.
type List[T any] struct {
	Items    []T    `json:"items"`
	Continue string `json:"continue"`
}

// Field is a member of a merge patch: absent if it is nil, else JSON, which null takes away.
type Field[T any] []byte

// Set returns a member with a value.
func Set[T any](value T) Field[T] {
	// The types of the members can all be encoded.
	raw, _ := json.Marshal(value)
	return raw
}

// Null returns a member that takes the value away.
func Null[T any]() Field[T] { return Field[T]("null") }

// Value decodes the member.
func (f Field[T]) Value() (value T, err error) { return value, json.Unmarshal(f, &value) }

// MarshalJSON implements json.Marshaler.
func (f Field[T]) MarshalJSON() ([]byte, error) { return f, nil }

// UnmarshalJSON implements json.Unmarshaler. Value finds out whether the JSON is of the type.
func (f *Field[T]) UnmarshalJSON(raw []byte) error {
	*f = bytes.Clone(raw)
	return nil
}

// Condition has the fields of metav1.Condition. LastTransitionTime is text in RFC 3339 and UTC,
// because encoding/json validates and copies the output of metav1.Time's MarshalJSON, which took a
// fifth of the time of a request that lists Organizations.
type Condition struct {
	Type               string                 `json:"type"`
	Status             metav1.ConditionStatus `json:"status"`
	ObservedGeneration int64                  `json:"observedGeneration,omitempty"`
	LastTransitionTime string                 `json:"lastTransitionTime"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message"`
}

// PhaseReady is the phase of an object that is complete. The others are Progressing and Terminating.
const PhaseReady = "Ready"

// Role is admin, member or viewer.
type Role string

// The roles.
const (
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

// Quota is a limit and its use.
type Quota struct {
	Limit int `json:"limit"`
	Used  int `json:"used"`
}
