package v1alpha1

// Annotations and labels that the hub reads and writes.
const (
	// DisplayNameAnnotation holds a child Workspace's display name; on the kcp
	// Workspace object, because the hub does not extend kcp's own kind (O-1).
	DisplayNameAnnotation = GroupName + "/display-name"
	// CreatedByAnnotation names the User (metadata.name) who asked for an
	// Organization or a Workspace, or for a Membership with an Idempotency-Key. It is
	// written once, with the object.
	CreatedByAnnotation = GroupName + "/created-by"
	// DeletionRequestedAtAnnotation marks a Workspace as soft-deleted (O-13),
	// RFC 3339 in UTC.
	DeletionRequestedAtAnnotation = GroupName + "/deletion-requested-at"
	// StatusAnnotation holds the hub's common status of a Workspace as JSON,
	// because the Workspace's own status belongs to kcp.
	StatusAnnotation = GroupName + "/status"
	// InitializedAnnotation is on the kcp Workspace of an Org that the hub has
	// initialized.
	InitializedAnnotation = GroupName + "/initialized"
	// CascadeFinalizer keeps a User, an Organization or a child Workspace until what
	// hangs on it is gone.
	CascadeFinalizer = GroupName + "/cascade"
	// CascadeAnnotation counts, as JSON by kind, what a cascade found to remove.
	CascadeAnnotation = GroupName + "/cascade"
	// OperationAnnotation steers a reconciler by hand: OperationReconcile or
	// OperationIgnore.
	OperationAnnotation = GroupName + "/operation"
	// OperationReconcile asks for one full reconciliation; the controller
	// removes the annotation when it has seen it.
	OperationReconcile = "reconcile"
	// OperationIgnore keeps every controller's hands off the object.
	OperationIgnore = "ignore"
	// ManagedByLabel is on every derived object in a child Workspace, with the
	// value ManagedByHub, so that the hub can watch just those.
	ManagedByLabel = GroupName + "/managed-by"
	// ManagedByHub is the value of ManagedByLabel.
	ManagedByHub = "kedge-hub"
	// UserLabel names the User whom a derived binding serves.
	UserLabel = GroupName + "/user"
	// IdempotencyKeyLabel is the hash of the Idempotency-Key with which an
	// Organization, a Workspace or a Membership was asked for.
	IdempotencyKeyLabel = GroupName + "/idempotency-key"
	// IdentityLabel is the hash of (issuer, subject) of a User.
	IdentityLabel = GroupName + "/identity"
)

// Condition types.
const (
	// ConditionReady sums the others up.
	ConditionReady = "Ready"
	// ConditionWorkspaceReady says that kcp has finished with the Workspace of an
	// Organization, or with a child Workspace.
	ConditionWorkspaceReady = "WorkspaceReady"
	// ConditionWorkspaceBound says that the kcp Workspace of an Organization
	// exists and has its APIs.
	ConditionWorkspaceBound = "WorkspaceBound"
	// ConditionFirstAdmin says that the creator's Membership was made. Once
	// True it stays: a creator who leaves is not put back.
	ConditionFirstAdmin = "FirstAdmin"
	// ConditionActive says that the object is not soft-deleted: its logical cluster
	// is open. While it is not True the cluster may be frozen (O-13).
	ConditionActive = "Active"
	// ConditionPersonalOrg says that a User's personal Organization was made.
	ConditionPersonalOrg = "PersonalOrg"
	// ConditionDefaultWorkspace says that a User's default Workspace was made.
	ConditionDefaultWorkspace = "DefaultWorkspace"
	// ConditionWatched says that the hub sees what becomes of an Organization's own
	// workspace, or of a child Workspace: what it needs to be bound for that is.
	ConditionWatched = "Watched"
	// ConditionContentReady says that the default namespace and the
	// ClusterRoles of a child Workspace are as they should be.
	ConditionContentReady = "ContentReady"
	// ConditionClaimsHandled says that what was asked for in a quota was made.
	ConditionClaimsHandled = "ClaimsHandled"
	// ConditionMembersChanged says that removals and demotions that were decided
	// have been carried out.
	ConditionMembersChanged = "MembersChanged"
	// ConditionUserFound says that the User of a Membership exists.
	ConditionUserFound = "UserFound"
	// ConditionRolesApplied says that every further ClusterRole of a Membership is
	// bound.
	ConditionRolesApplied = "RolesApplied"
	// ConditionAccessReady says that the bindings in a child Workspace are those
	// that the Memberships ask for.
	ConditionAccessReady = "AccessReady"
)

// Condition reasons.
const (
	ReasonAsDesired   = "AsDesired"
	ReasonProgressing = "Progressing"
	ReasonWaiting     = "Waiting"
	ReasonFailed      = "Failed"
	ReasonTerminating = "Terminating"
)
