package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Membership gives one User a role in an Organization or in one of its Workspaces. It
// lives in the workspace of the Organization in both cases. Its name is "{user}" in
// scope org and "{workspace}.{user}" in scope workspace.
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
// +kubebuilder:printcolumn:name="Expires",type=date,JSONPath=`.spec.expiresAt`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
type Membership struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the User, what the Membership is of, and the rights that it gives.
	Spec MembershipSpec `json:"spec"`
	// status is what the hub observed of the Membership. Set by the hub.
	// +optional
	Status MembershipStatus `json:"status,omitempty"`
}

// MembershipSpec is the desired state of a Membership.
//
// +kubebuilder:validation:XValidation:rule="(self.scope == 'workspace') == has(self.workspaceRef)",message="workspaceRef is given exactly when scope is workspace"
// +kubebuilder:validation:XValidation:rule="has(self.workspaceRef) == has(oldSelf.workspaceRef)",message="workspaceRef is immutable"
// +kubebuilder:validation:XValidation:rule="self.scope == 'workspace' || !has(self.sudo) || !self.sudo",message="sudo is for scope workspace only"
// +kubebuilder:validation:XValidation:rule="self.scope == 'workspace' || !has(self.roles) || size(self.roles) == 0",message="roles are for scope workspace only"
// +kubebuilder:validation:XValidation:rule="self.scope == 'workspace' || !has(self.manager) || !self.manager",message="manager is for scope workspace only"
// +kubebuilder:validation:XValidation:rule="self.scope == 'workspace' || !has(self.extra) || !self.extra.exists(x, has(x.sudo) && x.sudo)",message="sudo is for scope workspace only"
// +kubebuilder:validation:XValidation:rule="has(self.role) || has(self.manager) && self.manager || has(self.extra) && size(self.extra) > 0",message="role is required, but for a manager and where extra gives something"
// +kubebuilder:validation:XValidation:rule="has(self.role) || !(has(self.sudo) && self.sudo) && !(has(self.roles) && size(self.roles) > 0)",message="sudo and roles need a role"
type MembershipSpec struct {
	// userRef refers to the User by metadata.name. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="userRef is immutable"
	UserRef NamedRef `json:"userRef"`
	// scope is org for a Membership of the Organization, or workspace for one of a
	// Workspace of it. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scope is immutable"
	Scope Scope `json:"scope"`
	// workspaceRef refers to the Workspace by its UUID. Required if scope is workspace,
	// forbidden otherwise. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="workspaceRef is immutable"
	WorkspaceRef *NamedRef `json:"workspaceRef,omitempty"`
	// role is the role of the User: admin, member or viewer. An admin of an Organization is an
	// admin of all its Workspaces. Absent for a manager without one, and where nothing was given by hand.
	// +optional
	Role Role `json:"role,omitempty"`
	// manager allows the User to manage the definition and the members of the Workspace, without
	// any right to its content. For scope workspace only. Defaults to false.
	// +optional
	Manager bool `json:"manager,omitempty"`
	// roles are additional ClusterRoles and Roles of the Workspace to bind to the User. At
	// most 32; for scope workspace only. The hub binds a role only if the ClusterRole
	// kedge:workspace:admin of the Workspace covers all its rules, or if it is a ClusterRole
	// that the operator lists with --bindable-cluster-role. The hub removes the binding when
	// this does not hold any more. The condition RolesApplied names the roles that are not
	// bound and says why. Names that begin with "kedge:" or "system:", and cluster-admin, are
	// never bound.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=32
	Roles []RoleRef `json:"roles,omitempty"`
	// sudo allows the User to impersonate the group "kedge:workspace:{workspace}:sudo",
	// which has the rights of a Workspace admin, with kubectl --as and --as-group. For
	// scope workspace only. Defaults to false.
	// +optional
	Sudo bool `json:"sudo,omitempty"`
	// expiresAt is the time from which on the Membership gives nothing. The hub removes it then.
	// Absent means that it does not end by time. An Organization keeps an admin without it.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// extra are the parts that were not given by hand: by an AccessRequest or by a group of the identity
	// provider. The Membership gives the highest role of its parts that have not ended. expiresAt, role,
	// sudo, roles and manager are of the part given by hand. Set by the hub.
	// +optional
	// +listType=map
	// +listMapKey=source
	// +kubebuilder:validation:MaxItems=64
	Extra []MembershipExtra `json:"extra,omitempty"`
}

// MembershipExtra is a part of a Membership that was not given by hand: a role, or sudo.
//
// +kubebuilder:validation:XValidation:rule="has(self.role) != (has(self.sudo) && self.sudo)",message="a part gives either a role or sudo"
type MembershipExtra struct {
	// source is what gave it: "request:" and the ID of an AccessRequest, or "group:" and the ID of the
	// mapping of a group.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(request|group):[0-9a-z]([-0-9a-z]*[0-9a-z])?$`
	Source string `json:"source"`
	// role is the role that it gives. Absent for sudo.
	// +optional
	Role Role `json:"role,omitempty"`
	// sudo gives what spec.sudo gives. For scope workspace only. Defaults to false.
	// +optional
	Sudo bool `json:"sudo,omitempty"`
	// expiresAt is the time from which on it gives nothing. Absent means that it does not end by time.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// RoleRef refers to a ClusterRole or a Role of a Workspace.
type RoleRef struct {
	// name is the metadata.name of the role.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// namespace is the namespace in which the role is bound, by a RoleBinding. There, a Role
	// of that name comes before a ClusterRole of that name. Defaults to empty: the ClusterRole
	// is bound in the whole Workspace.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
}

// MembershipStatus is the observed state of a Membership.
type MembershipStatus struct {
	CommonStatus `json:",inline"`
	// appliedRoles are the roles in spec.roles that are bound at present: "name" for a role
	// of the whole Workspace, "namespace/name" for a role in a namespace. Set by the hub.
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
