package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Registration says whether a person may work.
//
// +kubebuilder:validation:Enum=Approved;Pending;Rejected
type Registration string

// The states of a registration.
const (
	RegistrationApproved Registration = "Approved"
	RegistrationPending  Registration = "Pending"
	RegistrationRejected Registration = "Rejected"
)

// User is a person. (issuer, subject) is the identity; an email never is.
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

	Spec UserSpec `json:"spec"`
	// +optional
	Status UserStatus `json:"status,omitempty"`
}

// UserSpec is what is known of a person.
type UserSpec struct {
	// email is information only; nothing is ever looked up by it.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Email string `json:"email,omitempty"`
	// displayName is how the person is shown to others.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DisplayName string `json:"displayName"`
	// issuer is who vouches for the subject.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="issuer is immutable"
	Issuer string `json:"issuer"`
	// subject is the person's identifier at the issuer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="subject is immutable"
	Subject string `json:"subject"`
	// rbacIdentity is the username that kcp derives from the same credential.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="rbacIdentity is immutable"
	RBACIdentity string `json:"rbacIdentity"`
	// orgQuota overrides the number of Orgs that the person may create (O-5);
	// 0 or absent means the default.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	OrgQuota int32 `json:"orgQuota,omitempty"`
	// orgClaims are the Orgs that count against the quota.
	// +optional
	// +listType=map
	// +listMapKey=uuid
	// +kubebuilder:validation:MaxItems=10000
	OrgClaims []Claim `json:"orgClaims,omitempty"`
	// registration says whether the person may work.
	// +optional
	// +kubebuilder:default=Approved
	Registration Registration `json:"registration,omitempty"`
	// defaultCluster is a landing hint only, the ID of a logical cluster.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]{0,32}$`
	DefaultCluster string `json:"defaultCluster,omitempty"`
}

// UserStatus is what the hub found and made for a person.
type UserStatus struct {
	CommonStatus `json:",inline"`
	// personalOrg is the UUID of the person's own Org.
	// +optional
	PersonalOrg string `json:"personalOrg,omitempty"`
	// defaultWorkspace is the UUID of the Workspace that the hub made for them.
	// +optional
	DefaultWorkspace string `json:"defaultWorkspace,omitempty"`
	// deletionRequestedAt is set while the person is soft-deleted (O-8).
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
