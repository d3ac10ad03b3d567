package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// InvitationState is the state of an Invitation.
//
// +kubebuilder:validation:Enum=Open;Accepted;Declined;Revoked;Expired
type InvitationState string

// The states of an Invitation. Only an open one can be accepted.
const (
	// InvitationOpen is the state of a new Invitation.
	InvitationOpen InvitationState = "Open"
	// InvitationAccepted means that somebody became a member by it.
	InvitationAccepted InvitationState = "Accepted"
	// InvitationDeclined means that the invited person does not want it.
	InvitationDeclined InvitationState = "Declined"
	// InvitationRevoked means that an admin took it back.
	InvitationRevoked InvitationState = "Revoked"
	// InvitationExpired means that spec.expiresAt has passed.
	InvitationExpired InvitationState = "Expired"
)

// Invitation offers a place in an Organization, or in one of its Workspaces, to a person whom the
// hub may not know yet. It lives in the workspace of the Organization. The name is a UUID.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')",message="the name of an Invitation is a UUID in canonical lower case"
// +kubebuilder:printcolumn:name="Workspace",type=string,JSONPath=`.spec.workspaceRef.name`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expiresAt`
type Invitation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the place that is offered, and by whom. Immutable.
	Spec InvitationSpec `json:"spec"`
	// status says what became of the Invitation. Set by the hub.
	// +optional
	Status InvitationStatus `json:"status,omitempty"`
}

// InvitationSpec is what an Invitation offers.
//
// +kubebuilder:validation:XValidation:rule="(self.scope == 'workspace') == has(self.workspaceRef)",message="workspaceRef is given exactly when scope is workspace"
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an Invitation is immutable"
type InvitationSpec struct {
	// role is the role that the person gets: admin, member or viewer.
	Role Role `json:"role"`
	// scope is org for a place in the Organization, or workspace for one in a Workspace of it.
	Scope Scope `json:"scope"`
	// workspaceRef refers to the Workspace by its UUID. Required if scope is workspace,
	// forbidden otherwise.
	// +optional
	WorkspaceRef *NamedRef `json:"workspaceRef,omitempty"`
	// email is the address that the person must have, verified by the identity provider, in
	// lower case. Absent means that the secret of the link suffices.
	// +optional
	// +kubebuilder:validation:MaxLength=254
	Email string `json:"email,omitempty"`
	// note is a text for the person, at most 500 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Note string `json:"note,omitempty"`
	// invitedBy is the User who invites, and the Membership that entitles them. The
	// Invitation is void while that Membership does not entitle them.
	InvitedBy Inviter `json:"invitedBy"`
	// expiresAt is the time from which on the Invitation cannot be accepted.
	ExpiresAt metav1.Time `json:"expiresAt"`
	// membershipExpiresAt is the end of the Membership that the person gets. From then on the
	// Invitation cannot be accepted either. Absent means that the Membership does not end by time.
	// +optional
	MembershipExpiresAt *metav1.Time `json:"membershipExpiresAt,omitempty"`
	// secretHash is the SHA-256 hash of the secret of the link, in hexadecimal digits.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SecretHash string `json:"secretHash"`
}

// Inviter is the User who invites somebody.
type Inviter struct {
	// name is the metadata.name of the User.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// membershipUID is the metadata.uid of the Membership that entitled the User.
	MembershipUID types.UID `json:"membershipUID"`
}

// InvitationStatus says what became of an Invitation.
type InvitationStatus struct {
	// state is the state of the Invitation. Absent means Open.
	// +optional
	State InvitationState `json:"state,omitempty"`
	// acceptedBy is the metadata.name of the User who accepted it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	AcceptedBy string `json:"acceptedBy,omitempty"`
	// signedUp is the identity that signed up with the Invitation, as the label
	// tenancy.kedge.faros.sh/identity of its User has it. An Invitation signs up one person.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	SignedUp string `json:"signedUp,omitempty"`
}

// InvitationChange is an accepted change of one Invitation: a new one, an answer to it, or a
// person who signs up with it. It is recorded on the Organization as a MembershipChange is.
type InvitationChange struct {
	// name is the metadata.name of the Invitation.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// invitation is the spec of a new Invitation.
	// +optional
	Invitation *InvitationSpec `json:"invitation,omitempty"`
	// state is Accepted, Declined or Revoked. Absent if the change is no answer.
	// +optional
	State InvitationState `json:"state,omitempty"`
	// signedUp is the identity that signs up with the Invitation.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	SignedUp string `json:"signedUp,omitempty"`
	// by is the metadata.name of the User who made the request. Absent for a sign-up.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
	// requestedAt is the time at which the change was accepted.
	RequestedAt metav1.MicroTime `json:"requestedAt"`
}

// InvitationList is a list of Invitations.
//
// +kubebuilder:object:root=true
type InvitationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Invitation `json:"items"`
}
