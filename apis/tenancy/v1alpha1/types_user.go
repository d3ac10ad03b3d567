package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Registration is the state of a User's registration: Approved, Pending or Rejected.
//
// +kubebuilder:validation:Enum=Approved;Pending;Rejected
type Registration string

// The states of a registration.
const (
	// RegistrationApproved lets the User work.
	RegistrationApproved Registration = "Approved"
	// RegistrationPending refuses the User until a platform admin approves them.
	RegistrationPending Registration = "Pending"
	// RegistrationRejected refuses the User.
	RegistrationRejected Registration = "Rejected"
)

// User is a person. The pair of spec.issuer and spec.subject is the identity. The name is
// a readable DNS label that the hub derives once from the preferred username or the local
// part of the email address; it never changes.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Display name",type=string,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="Registration",type=string,JSONPath=`.spec.registration`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type User struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the identity of the User and what platform admins decided about it.
	Spec UserSpec `json:"spec"`
	// status is the observed state of the User. Set by the hub.
	// +optional
	Status UserStatus `json:"status,omitempty"`
}

// UserSpec is the desired state of a User.
type UserSpec struct {
	// email is the email address that the issuer reported at sign-up. It is informational:
	// it identifies nobody and is never used for lookups.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Email string `json:"email,omitempty"`
	// displayName is the name shown to people, 1 to 128 characters. It need not be unique
	// and can be changed by the User.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DisplayName string `json:"displayName"`
	// issuer identifies the authenticator of the User: the URL of an OIDC issuer, or
	// "static" for static tokens. Set at sign-up. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="issuer is immutable"
	Issuer string `json:"issuer"`
	// subject is the identifier of the User at the issuer. Set at sign-up. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="subject is immutable"
	Subject string `json:"subject"`
	// rbacIdentity is the username that kcp authenticates the same credential as. It is
	// the subject of the User's RBAC bindings. Set at sign-up. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="rbacIdentity is immutable"
	RBACIdentity string `json:"rbacIdentity"`
	// orgQuota is the highest number of Organizations that the User may have created,
	// soft-deleted ones included and the personal one not. 0 or absent means the hub's
	// default (--default-org-quota). Set by platform admins.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	OrgQuota int32 `json:"orgQuota,omitempty"`
	// orgClaims are the Organizations that count against the quota, those still to be
	// created included. Set by the hub.
	// +optional
	// +listType=map
	// +listMapKey=uuid
	// +kubebuilder:validation:MaxItems=10000
	OrgClaims []Claim `json:"orgClaims,omitempty"`
	// registration is Approved, Pending or Rejected. Only an approved User can use the hub.
	// Set at sign-up by --registration, later by platform admins. Defaults to Approved.
	// +optional
	// +kubebuilder:default=Approved
	Registration Registration `json:"registration,omitempty"`
	// rejectionReason is why a platform admin rejected the User, at most 512 characters. The
	// User is shown it. Empty unless the registration is Rejected.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	RejectionReason string `json:"rejectionReason,omitempty"`
	// tokensValidAfter is the time of the User's last sign-out everywhere. The hub refuses
	// every ID token that was issued at or before it. Set by the hub.
	// +optional
	TokensValidAfter *metav1.Time `json:"tokensValidAfter,omitempty"`
	// defaultCluster is the ID of the logical cluster of the User's default Workspace. It
	// is a hint for clients and grants nothing. Set by the hub.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]{0,32}$`
	DefaultCluster string `json:"defaultCluster,omitempty"`
	// groups are what the hub has heard of the groups of the User at the identity provider. Absent if it
	// has heard nothing. Set by the hub.
	// +optional
	Groups *UserGroups `json:"groups,omitempty"`
}

// UserGroups are the groups of a User according to their newest credential.
type UserGroups struct {
	// issuedAt is the time at which that credential was issued. The groups count from then on for
	// --group-max-age, and a credential that is not newer changes nothing.
	IssuedAt metav1.Time `json:"issuedAt"`
	// hashes are the first 128 bits of the SHA-256 hashes of the groups, each with its prefix, in base64
	// for URLs and in order. At most 1000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Hashes []GroupHash `json:"hashes,omitempty"`
}

// GroupHash is a hash of a group.
//
// +kubebuilder:validation:MaxLength=22
type GroupHash string

// UserStatus is the observed state of a User.
type UserStatus struct {
	CommonStatus `json:",inline"`
	// personalOrg is the UUID of the personal Organization that the hub created for the
	// User. Empty if there is none. Set by the hub.
	// +optional
	PersonalOrg string `json:"personalOrg,omitempty"`
	// defaultWorkspace is the UUID of the Workspace that the hub created in the personal
	// Organization. Empty if there is none. Set by the hub.
	// +optional
	DefaultWorkspace string `json:"defaultWorkspace,omitempty"`
	// deletionRequestedAt is the time at which deletion was requested. It is set while the
	// User is soft-deleted: the User can only read and undelete their account until the
	// grace period (--deletion-grace) ends. Set by the hub.
	// +optional
	DeletionRequestedAt *metav1.Time `json:"deletionRequestedAt,omitempty"`
}

// UserList is a list of Users.
//
// +kubebuilder:object:root=true
type UserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []User `json:"items"`
}
