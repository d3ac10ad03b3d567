package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase summarizes the conditions of an object: Ready when all are True, Progressing
// when some are not, Terminating while the object is being deleted.
//
// +kubebuilder:validation:Enum=Ready;Progressing;Terminating
type Phase string

// The phases of an object.
const (
	// PhaseReady means that every condition is True.
	PhaseReady Phase = "Ready"
	// PhaseProgressing means that some condition is not True; its message says why.
	PhaseProgressing Phase = "Progressing"
	// PhaseTerminating means that the object is being deleted.
	PhaseTerminating Phase = "Terminating"
)

// CommonStatus is the part of the status that all reconciled objects have.
type CommonStatus struct {
	// observedGeneration is the metadata.generation for which the conditions were last
	// computed. Set by the hub.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are the latest observations of the object's state. The condition Ready
	// summarizes the others. Set by the hub.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// phase summarizes the conditions: Ready, Progressing or Terminating. Set by the hub.
	// +optional
	Phase Phase `json:"phase,omitempty"`
}

// Role is the role of a User in an Organization or in a Workspace: admin, member or viewer.
//
// +kubebuilder:validation:Enum=admin;member;viewer
type Role string

// The roles.
const (
	// RoleAdmin manages the Organization or Workspace and its members. The admins of an
	// Organization are admins of all its Workspaces.
	RoleAdmin Role = "admin"
	// RoleMember works in the Organization or Workspace and does not manage it.
	RoleMember Role = "member"
	// RoleViewer sees the Organization or Workspace and changes nothing. It is also the effective role
	// of members of an Organization in its Workspaces if spec.defaultAccess is view.
	RoleViewer Role = "viewer"
)

// Roles returns all roles. Each has the rights of those before it.
func Roles() []Role { return []Role{RoleViewer, RoleMember, RoleAdmin} }

// AtLeast reports whether a role has all rights of another. A role that is none of Roles has no
// rights.
func (r Role) AtLeast(least Role) bool {
	return slices.Index(Roles(), r) >= slices.Index(Roles(), least)
}

// Scope tells whether a Membership is of an Organization or of one of its Workspaces:
// org or workspace.
//
// +kubebuilder:validation:Enum=org;workspace
type Scope string

// The scopes of a Membership.
const (
	// ScopeOrg is a Membership of the Organization in whose workspace it lives.
	ScopeOrg Scope = "org"
	// ScopeWorkspace is a Membership of one Workspace of that Organization.
	ScopeWorkspace Scope = "workspace"
)

// Who selects the people who may create something in an Organization: members for all
// of its members, admin for its admins only.
//
// +kubebuilder:validation:Enum=members;admin
type Who string

// The values of Who.
const (
	// WhoMembers allows all members of the Organization, admins included.
	WhoMembers Who = "members"
	// WhoAdmin allows only the admins of the Organization.
	WhoAdmin Who = "admin"
)

// Least returns the least role in the Organization of the people whom w selects. A value that is
// unknown selects admins.
func (w Who) Least() Role {
	if w == WhoMembers {
		return RoleMember
	}
	return RoleAdmin
}

// NamedRef refers to an object by its metadata.name.
type NamedRef struct {
	// name is the metadata.name of the object referred to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Claim counts one Organization or Workspace against a quota. It is written before the
// object is created, so that the quota holds under concurrent requests.
type Claim struct {
	// uuid is the name of the Organization or Workspace, a UUID in canonical lower case.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	UUID string `json:"uuid"`
	// request describes the object to create. The hub removes it when the object exists.
	// +optional
	Request *ClaimRequest `json:"request,omitempty"`
}

// ClaimRequest describes an Organization or Workspace that the hub is to create.
type ClaimRequest struct {
	// displayName is the display name of the object to create, 1 to 128 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DisplayName string `json:"displayName"`
	// description says what the object to create is for, at most 1024 characters. Absent for none.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
	// createdBy is the metadata.name of the User who made the request.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CreatedBy string `json:"createdBy"`
	// requestedAt is the time of the request.
	RequestedAt metav1.Time `json:"requestedAt"`
	// idempotencyKey is the hash of the Idempotency-Key header of the request. Absent if
	// the request had none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// expiresAt is the time at which the Workspace to create ends. Absent for one without an end, and for
	// an Organization.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// billing is that of the Organization or Workspace to create. Absent for none.
	// +optional
	Billing *RevisedBilling `json:"billing,omitempty"`
}
