package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Phase sums an object's conditions up in one word.
//
// +kubebuilder:validation:Enum=Ready;Progressing;Terminating
type Phase string

// The phases.
const (
	// PhaseReady means that every condition is True.
	PhaseReady Phase = "Ready"
	// PhaseProgressing means that some condition is not True and says why.
	PhaseProgressing Phase = "Progressing"
	// PhaseTerminating means that the object is being deleted.
	PhaseTerminating Phase = "Terminating"
)

// CommonStatus is part of the status of every reconciled object.
type CommonStatus struct {
	// observedGeneration is the metadata.generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions say what is there and what is missing.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// phase sums the conditions up.
	// +optional
	Phase Phase `json:"phase,omitempty"`
}

// Role is a person's role in an Org or in a Workspace.
//
// +kubebuilder:validation:Enum=admin;member
type Role string

// The roles.
const (
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

// Scope tells whether a Membership is in an Org or in one of its Workspaces.
//
// +kubebuilder:validation:Enum=org;workspace
type Scope string

// The scopes.
const (
	ScopeOrg       Scope = "org"
	ScopeWorkspace Scope = "workspace"
)

// Who names those who may create something in an Org (O-7).
//
// +kubebuilder:validation:Enum=members;admin
type Who string

// The values of Who.
const (
	WhoMembers Who = "members"
	WhoAdmin   Who = "admin"
)

// NamedRef points to an object by metadata.name.
type NamedRef struct {
	// name is the metadata.name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Claim is a place taken in a quota (O-5, O-6) by something that exists, or that
// the hub is asked to make. It is written before what it is for, so that a quota
// holds whoever else writes at the same time.
type Claim struct {
	// uuid names the Organization or Workspace.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	UUID string `json:"uuid"`
	// request says what is to be made; it is taken away once it has been.
	// +optional
	Request *ClaimRequest `json:"request,omitempty"`
}

// ClaimRequest is what somebody asked the hub to make.
type ClaimRequest struct {
	// displayName of what is to be made.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DisplayName string `json:"displayName"`
	// createdBy names the User who asked.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CreatedBy string `json:"createdBy"`
	// requestedAt is when they did.
	RequestedAt metav1.Time `json:"requestedAt"`
	// idempotencyKey is the hash of the request's Idempotency-Key.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
}
