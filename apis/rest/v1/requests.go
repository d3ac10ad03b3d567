package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The states of a request for rights. Only an open one can be decided.
const (
	RequestOpen      = "Open"
	RequestApproved  = "Approved"
	RequestDenied    = "Denied"
	RequestWithdrawn = "Withdrawn"
	RequestLapsed    = "Lapsed"
	RequestEnded     = "Ended"
)

// CreateAccessRequest asks for rights in the workspace of the path.
type CreateAccessRequest struct {
	// Kind is sudo, admin or member.
	Kind string `json:"kind"`
	// For is a Go duration of 1m to 12h. The default is 1h.
	For    string `json:"for,omitempty"`
	Reason string `json:"reason"`
}

// CreateOrgAccessRequest asks for rights in a workspace of the organization.
type CreateOrgAccessRequest struct {
	// Workspace is the UUID of the workspace.
	Workspace string `json:"workspace"`
	CreateAccessRequest
}

// DecideAccessRequest decides about a request, or ends what it gave.
type DecideAccessRequest struct {
	Note string `json:"note,omitempty"`
}

// AccessRequest is a request for rights in a workspace, for a while.
type AccessRequest struct {
	Answer `json:"-"`
	ID     string `json:"id"`
	State  string `json:"state"`
	// User is the name of the person who asks.
	User      string      `json:"user"`
	Workspace string      `json:"workspace"`
	Kind      string      `json:"kind"`
	For       string      `json:"for"`
	Reason    string      `json:"reason"`
	CreatedAt metav1.Time `json:"createdAt"`
	// DecidedBy is the name of the person who decided, and Note what they said.
	DecidedBy string `json:"decidedBy,omitempty"`
	Note      string `json:"note,omitempty"`
	// EndsAt is the end of what was approved.
	EndsAt *metav1.Time `json:"endsAt,omitempty"`
	// Receipt is in the answer to a change that takes rights, for a client that prefers a representation.
	Receipt *Receipt `json:"receipt,omitempty"`
}

// RequestableWorkspace is a workspace in which every member of the organization may ask for rights.
type RequestableWorkspace struct {
	Answer      `json:"-"`
	UUID        string `json:"uuid"`
	DisplayName string `json:"displayName"`
}
