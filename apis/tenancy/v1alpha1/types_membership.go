package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Membership says who is in what, with which role. Both scopes live in the Org
// workspace. Its name is "{user}" for the Org and "{workspace}.{user}" for a
// Workspace.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name == (self.spec.scope == 'org' ? self.spec.userRef.name : self.spec.workspaceRef.name + '.' + self.spec.userRef.name)",message="a Membership is named {user}, or {workspace}.{user} where scope is workspace"
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.userRef.name`
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.scope`
// +kubebuilder:printcolumn:name="Workspace",type=string,JSONPath=`.spec.workspaceRef.name`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
type Membership struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MembershipSpec `json:"spec"`
	// +optional
	Status MembershipStatus `json:"status,omitempty"`
}

// MembershipSpec is one person's right in one place.
//
// +kubebuilder:validation:XValidation:rule="(self.scope == 'workspace') == has(self.workspaceRef)",message="workspaceRef is given exactly when scope is workspace"
// +kubebuilder:validation:XValidation:rule="has(self.workspaceRef) == has(oldSelf.workspaceRef)",message="workspaceRef is immutable"
// +kubebuilder:validation:XValidation:rule="self.scope == 'workspace' || !has(self.sudo) || !self.sudo",message="sudo is for scope workspace only"
// +kubebuilder:validation:XValidation:rule="self.scope == 'workspace' || !has(self.roles) || size(self.roles) == 0",message="roles are for scope workspace only"
type MembershipSpec struct {
	// userRef names the User.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="userRef is immutable"
	UserRef NamedRef `json:"userRef"`
	// scope says whether this is about the Org or one of its Workspaces.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scope is immutable"
	Scope Scope `json:"scope"`
	// workspaceRef names the Workspace, exactly when scope is workspace.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="workspaceRef is immutable"
	WorkspaceRef *NamedRef `json:"workspaceRef,omitempty"`
	// role is the person's role there.
	Role Role `json:"role"`
	// roles are further ClusterRoles in the Workspace.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Roles []NamedRef `json:"roles,omitempty"`
	// sudo lets the person impersonate the Workspace's sudo group.
	// +optional
	Sudo bool `json:"sudo,omitempty"`
}

// MembershipStatus is what became of a Membership.
type MembershipStatus struct {
	CommonStatus `json:",inline"`
	// appliedRoles are the ClusterRoles of spec.roles that are bound.
	// +optional
	// +listType=set
	AppliedRoles []string `json:"appliedRoles,omitempty"`
}

// MembershipList is a list of Memberships.
//
// +kubebuilder:object:root=true
type MembershipList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Membership `json:"items"`
}
