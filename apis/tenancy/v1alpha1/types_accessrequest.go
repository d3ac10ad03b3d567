package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AccessRequestState is the state of an AccessRequest.
//
// +kubebuilder:validation:Enum=Open;Approved;Denied;Withdrawn;Lapsed;Ended
type AccessRequestState string

// The states of an AccessRequest. Only an open one can be decided.
const (
	// RequestOpen is the state of a new AccessRequest.
	RequestOpen AccessRequestState = "Open"
	// RequestApproved means that the person has what they asked for, until status.endsAt.
	RequestApproved AccessRequestState = "Approved"
	// RequestDenied means that an admin refused it.
	RequestDenied AccessRequestState = "Denied"
	// RequestWithdrawn means that the person does not want it any more.
	RequestWithdrawn AccessRequestState = "Withdrawn"
	// RequestLapsed means that nobody decided in time.
	RequestLapsed AccessRequestState = "Lapsed"
	// RequestEnded means that what was approved is over, by time or before.
	RequestEnded AccessRequestState = "Ended"
)

// AccessRequestKind is what an AccessRequest asks for: sudo, admin or member.
//
// +kubebuilder:validation:Enum=sudo;admin;member
type AccessRequestKind string

// The values of AccessRequestKind.
const (
	// RequestSudo asks for sudo.
	RequestSudo AccessRequestKind = "sudo"
	// RequestAdmin and RequestMember ask for the role.
	RequestAdmin  AccessRequestKind = "admin"
	RequestMember AccessRequestKind = "member"
)

// AccessRequest asks for more rights in a Workspace, for a while. It lives in the workspace of the
// Organization. The name is a UUID.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')",message="the name of an AccessRequest is a UUID in canonical lower case"
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.userRef.name`
// +kubebuilder:printcolumn:name="Workspace",type=string,JSONPath=`.spec.workspaceRef.name`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ends",type=string,JSONPath=`.status.endsAt`
type AccessRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for, by whom and why. Immutable.
	Spec AccessRequestSpec `json:"spec"`
	// status says what became of the AccessRequest. Set by the hub.
	// +optional
	Status AccessRequestStatus `json:"status,omitempty"`
}

// AccessRequestSpec is what an AccessRequest asks for.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an AccessRequest is immutable"
type AccessRequestSpec struct {
	// userRef refers to the User who asks.
	UserRef NamedRef `json:"userRef"`
	// workspaceRef refers to the Workspace by its UUID.
	WorkspaceRef NamedRef `json:"workspaceRef"`
	// kind is sudo, admin or member.
	Kind AccessRequestKind `json:"kind"`
	// duration is how long the rights are to last from the approval on, 1m to 12h.
	Duration metav1.Duration `json:"duration"`
	// reason is why, at most 500 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	Reason string `json:"reason"`
}

// AccessRequestStatus says what became of an AccessRequest.
type AccessRequestStatus struct {
	// state is the state of the AccessRequest. Absent means Open.
	// +optional
	State AccessRequestState `json:"state,omitempty"`
	// decidedBy is the metadata.name of the User who approved, denied, withdrew or revoked it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DecidedBy string `json:"decidedBy,omitempty"`
	// note is what they said about it, at most 500 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Note string `json:"note,omitempty"`
	// endsAt is the end of what was approved.
	// +optional
	EndsAt *metav1.Time `json:"endsAt,omitempty"`
}

// RequestChange is an accepted change of one AccessRequest: a new one, or a decision about it. It is
// recorded on the Organization as a MembershipChange is.
type RequestChange struct {
	// name is the metadata.name of the AccessRequest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// request is the spec of a new AccessRequest.
	// +optional
	Request *AccessRequestSpec `json:"request,omitempty"`
	// status is that after the decision. Absent for a new AccessRequest.
	// +optional
	Status *AccessRequestStatus `json:"status,omitempty"`
	// requestedAt is the time at which the change was accepted.
	RequestedAt metav1.MicroTime `json:"requestedAt"`
}

// AccessRequestList is a list of AccessRequests.
//
// +kubebuilder:object:root=true
type AccessRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AccessRequest `json:"items"`
}
