package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CreateGroupMapping lets the members of a group of the identity provider in.
type CreateGroupMapping struct {
	// Group has the prefix that the hub gives it.
	Group string `json:"group"`
	Role  Role   `json:"role"`
	// Workspace is a UUID. Empty means the organization.
	Workspace string `json:"workspace,omitempty"`
}

// GroupMapping gives the members of a group of the identity provider a role, as long as they are in it.
type GroupMapping struct {
	Answer `json:"-"`
	ID     string `json:"id"`
	Group  string `json:"group"`
	Role   Role   `json:"role"`
	// Workspace is the UUID of the workspace. Empty for the organization.
	Workspace string `json:"workspace,omitempty"`
	// CreatedBy is the name of the person who made the mapping.
	CreatedBy string      `json:"createdBy,omitempty"`
	CreatedAt metav1.Time `json:"createdAt"`
	// People is how many people it lets in now.
	People int `json:"people"`
}
