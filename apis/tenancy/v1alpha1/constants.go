package v1alpha1

// Annotations, labels and finalizers that the hub reads and writes.
const (
	// DisplayNameAnnotation, on the kcp Workspace object of a child Workspace, holds its
	// display name (O-1): kcp's kind has no field for it. On the ServiceAccount of a Bot it
	// is the display name of the Bot, for people to read.
	DisplayNameAnnotation = GroupName + "/display-name"
	// DescriptionAnnotation, on the kcp Workspace object of a child Workspace, says what it is for.
	DescriptionAnnotation = GroupName + "/description"
	// CreatedByAnnotation, on an Organization, a child Workspace, a Bot, a CatalogEntry or a
	// Membership that was created with an Idempotency-Key, is the metadata.name of the User who asked for it.
	// It is written once, at creation.
	CreatedByAnnotation = GroupName + "/created-by"
	// DeletionRequestedAtAnnotation, on a child Workspace, is the time at which deletion
	// was requested, RFC 3339 in UTC. It is present while the Workspace is soft-deleted
	// (O-13).
	DeletionRequestedAtAnnotation = GroupName + "/deletion-requested-at"
	// RequestsAnnotation, of kcp Workspaces, is "members" if members of the Organization who are not in the
	// Workspace may ask for rights in it.
	RequestsAnnotation = GroupName + "/requests"
	// ExpiresAtAnnotation, on a child Workspace, is the time at which it is soft-deleted by itself,
	// RFC 3339 in UTC.
	ExpiresAtAnnotation = GroupName + "/expires-at"
	// BillingAnnotation, on a child Workspace, holds its RevisedBilling as JSON.
	BillingAnnotation = GroupName + "/billing"
	// StatusAnnotation, on a child Workspace, holds its CommonStatus as JSON: the status
	// of kcp's object belongs to kcp.
	StatusAnnotation = GroupName + "/status"
	// InitializedAnnotation, on the kcp Workspace of an Organization, has the value "true"
	// after the hub removed its initializer. The write makes kcp reconcile the Workspace
	// at once.
	InitializedAnnotation = GroupName + "/initialized"
	// SpareLabel, on a kcp Workspace, says that nobody owns it: it is ready for the next Organization or
	// child Workspace that somebody creates. The value is the hash of what it was made with. The label
	// is removed when the Workspace is taken.
	SpareLabel = GroupName + "/spare"
	// SpareReservedAnnotation, on a spare, says as JSON for whom it is reserved and since when.
	SpareReservedAnnotation = GroupName + "/spare-reserved"
	// CreatedAtAnnotation, on a child Workspace that was a spare, is the time at which somebody asked for
	// it, RFC 3339 in UTC. kcp's own creation time is that of the spare.
	CreatedAtAnnotation = GroupName + "/created-at"
	// PersonalOrgAnnotation, on a User who signed up when there was a spare, is the UUID of their personal
	// Organization. It is written with the User. Without it the UUID follows from the User's UID.
	PersonalOrgAnnotation = GroupName + "/personal-org"
	// DefaultWorkspaceAnnotation, on a personal Organization that was a spare, is the UUID of its default
	// Workspace. It is written with the Organization. Without it the UUID follows from the Organization's
	// UID.
	DefaultWorkspaceAnnotation = GroupName + "/default-workspace"
	// CascadeFinalizer is on every User, Organization, child Workspace, Bot and Session. The
	// hub removes it when all that depends on the object is removed: of a Session when the
	// tokens that were handed out through it have expired.
	CascadeFinalizer = GroupName + "/cascade"
	// CascadeAnnotation holds the number of dependent objects that were there when the
	// removal began, as a JSON object with a number for each kind.
	CascadeAnnotation = GroupName + "/cascade"
	// OperationAnnotation lets platform admins control the reconciliation of an object:
	// OperationReconcile or OperationIgnore.
	OperationAnnotation = GroupName + "/operation"
	// OperationReconcile requests one full reconciliation, without shortcuts. The
	// controller removes the annotation before it begins.
	OperationReconcile = "reconcile"
	// OperationIgnore suspends reconciliation of the object as long as it is set.
	OperationIgnore = "ignore"
	// ManagedByLabel, with the value ManagedByHub, is on every object that the hub derives
	// in a child Workspace, or keeps in the workspace of a provider. Informers select by it.
	ManagedByLabel = GroupName + "/managed-by"
	// ManagedByHub is the value of ManagedByLabel.
	ManagedByHub = "kedge-hub"
	// TemplateLabel, with the value "true", is on objects of the Workspace template in child
	// Workspaces.
	TemplateLabel = GroupName + "/template"
	// SubjectTokenLabel is "true" on the Leases of ID tokens of jobs that were used.
	SubjectTokenLabel = GroupName + "/subject-token"
	// UserLabel, on a derived binding or role, is the metadata.name of the User that it is
	// for.
	UserLabel = GroupName + "/user"
	// IdempotencyKeyLabel, on an Organization, a child Workspace, a Bot, a CatalogEntry or a
	// Membership, is the hash of the Idempotency-Key of the request that created it.
	IdempotencyKeyLabel = GroupName + "/idempotency-key"
	// RescueAnnotation, on an Organization, names the request with an Idempotency-Key by which a platform admin
	// last made a person its admin, so that a repetition is told from another request.
	RescueAnnotation = GroupName + "/rescue"
	// BotAccountLabel, with the value "true", is on the ServiceAccount of a Bot and on the
	// Secrets and the binding that belong to it. Informers select by it.
	BotAccountLabel = GroupName + "/kedge-sa"
	// BotLabel, on a derived object of a Bot, is the metadata.name of the Bot.
	BotLabel = GroupName + "/bot"
	// RoleAnnotation, on the ServiceAccount of a Bot, is the role of the Bot. It is for
	// people to read: the hub takes the role from the Bot.
	RoleAnnotation = GroupName + "/role"
	// LastTokenIssuedAtAnnotation, on the ServiceAccount of a Bot, is the time at which the
	// last token was issued, RFC 3339 in UTC.
	LastTokenIssuedAtAnnotation = GroupName + "/last-token-issued-at"
	// BotClaimsAnnotation, on a child Workspace, has the Bots that are being created, as a
	// JSON object of UUIDs and times in RFC 3339. It is written before a Bot, so that the
	// limit of Bots holds under concurrent requests.
	BotClaimsAnnotation = GroupName + "/bot-claims"
	// CatalogSlugLabel, on a CatalogEntry, is the hash of its slug: 40 hexadecimal digits.
	CatalogSlugLabel = GroupName + "/slug"
	// CatalogEntryAnnotation, on an APIBinding in a child Workspace, says as JSON which
	// CatalogEntry it enables: after the entry is deleted, it can still be disabled.
	CatalogEntryAnnotation = GroupName + "/catalog-entry"
	// AuditHeadsAnnotation is on kcp's object of the root workspace: the ends of the chains of the audit log of each replica.
	AuditHeadsAnnotation = GroupName + "/audit-heads"
	// AppliedAnnotation, on an object in the hub's own logical clusters, identifies the manifest that the hub applied last.
	AppliedAnnotation = GroupName + "/applied"
	// IdentityLabel, on a User, is the hash of its issuer and subject: 40 hexadecimal
	// digits.
	IdentityLabel = GroupName + "/identity"
)

// Condition types. True is the desired status of each.
const (
	// ConditionReady is True if all other conditions of the object are True that Ready
	// waits for.
	ConditionReady = "Ready"
	// ConditionWorkspaceReady, of Organizations and child Workspaces, is True if kcp
	// reports the workspace Ready. Of Bots, it is True if their Workspace takes writes.
	ConditionWorkspaceReady = "WorkspaceReady"
	// ConditionWorkspaceBound, of Organizations, is True if the kcp Workspace exists and
	// its APIs are bound.
	ConditionWorkspaceBound = "WorkspaceBound"
	// ConditionFirstAdmin, of Organizations and child Workspaces, is True if the creator's
	// admin Membership was created. It then stays True: a creator who leaves is not added
	// again.
	ConditionFirstAdmin = "FirstAdmin"
	// ConditionActive, of Users, Organizations and child Workspaces, is True if the object
	// is not soft-deleted and its logical cluster, where it has one, is active in kcp. While
	// it is not True the logical cluster may be inactive (O-13). The message says if kcp does
	// not end open watches there.
	ConditionActive = "Active"
	// ConditionPersonalOrg, of Users, is True if the personal Organization was created, or
	// none is to be.
	ConditionPersonalOrg = "PersonalOrg"
	// ConditionDefaultWorkspace, of Users, is True if the default Workspace was created, or
	// none is to be.
	ConditionDefaultWorkspace = "DefaultWorkspace"
	// ConditionWatched, of Organizations and child Workspaces, is True if the APIBindings
	// through which the hub watches the workspace are in place.
	ConditionWatched = "Watched"
	// ConditionContentReady, of child Workspaces, is True if the default namespace, the
	// ClusterRoles and the objects of the Workspace template are in place.
	ConditionContentReady = "ContentReady"
	// ConditionClaimsHandled, of Users and Organizations, is True if every object that was
	// requested against their quota was created.
	ConditionClaimsHandled = "ClaimsHandled"
	// ConditionMembersChanged, of Organizations, is True if no removal or demotion of a
	// member is pending.
	ConditionMembersChanged = "MembersChanged"
	// ConditionInvitationsChanged, of Organizations, is True if no accepted change of an
	// Invitation is pending.
	ConditionInvitationsChanged = "InvitationsChanged"
	// ConditionRequestsChanged, of Organizations, is True if no accepted change of an
	// AccessRequest is pending.
	ConditionRequestsChanged = "RequestsChanged"
	// ConditionGroupsApplied, of Organizations, is True if every person in a group of spec.groups can be let in.
	// Ready does not wait for it.
	ConditionGroupsApplied = "GroupsApplied"
	// ConditionUserFound, of Memberships, is True if the User exists.
	ConditionUserFound = "UserFound"
	// ConditionRolesApplied, of Memberships, is True if every role in spec.roles is
	// bound. The message names those that are not and says why.
	ConditionRolesApplied = "RolesApplied"
	// ConditionAccessReady, of child Workspaces, is True if the bindings in the Workspace
	// are those that follow from the Memberships.
	ConditionAccessReady = "AccessReady"
	// ConditionAccountReady, of Bots, is True if the ServiceAccount and its binding in the
	// Workspace are as desired.
	ConditionAccountReady = "AccountReady"
	// ConditionRoleEnforced, of Bots, is True if kcp allows the Bot no more than its role. While
	// it is not after the role was lowered, the tokens of the Bot are refused. The message names
	// the bindings that allow more.
	ConditionRoleEnforced = "RoleEnforced"
	// ConditionTokensReady, of Bots, is True if the Secrets in the Workspace are those of the
	// tokens in spec.tokens.
	ConditionTokensReady = "TokensReady"
	// ConditionSlugUnique, of CatalogEntries, is True if no entry that the same people see, and
	// that is Global or older, has the slug. An entry of which it is not True is shown only where it is enabled already, and cannot be enabled.
	ConditionSlugUnique = "SlugUnique"
	// ConditionExportFound, of CatalogEntries, is True if kcp has the APIExport and the entry
	// may name it.
	ConditionExportFound = "ExportFound"
	// ConditionPublisherMayBind, of CatalogEntries, is True if the person who published the entry
	// may bind its export themselves, or the platform published it.
	ConditionPublisherMayBind = "PublisherMayBind"
	// ConditionGrantReady, of CatalogEntries, is True if those who may enable the entry have the
	// right in kcp to bind its export.
	ConditionGrantReady = "GrantReady"
	// ConditionBackendReachable, of CatalogEntries, is True if the server of the provider
	// answers, or the entry names none. Ready does not wait for it.
	ConditionBackendReachable = "BackendReachable"
	// ConditionPolicyEnforced, of child Workspaces, is True if kcp enforces the admission
	// policy of the Workspace in the version of the hub. Ready does not wait for it; the proxy refuses writes of the
	// guarded kinds with 503 until then.
	ConditionPolicyEnforced = "PolicyEnforced"
	// ConditionTemplateApplied, of child Workspaces, is True if the objects of the Workspace template are in
	// place. Without a template no Workspace has it.
	ConditionTemplateApplied = "TemplateApplied"
)

// Condition reasons.
const (
	// ReasonAsDesired is the reason of a condition that is True.
	ReasonAsDesired = "AsDesired"
	// ReasonProgressing is the reason of a Ready condition that is False because another
	// condition is, and of an Active condition that is False because deactivation begins.
	ReasonProgressing = "Progressing"
	// ReasonWaiting is the reason of a condition that is False until something else
	// happens. The message says what.
	ReasonWaiting = "Waiting"
	// ReasonFailed is the reason of a condition that is False because a step failed. The
	// hub tries again with back-off.
	ReasonFailed = "Failed"
	// ReasonDeactivationForbidden is the reason of an Active condition that is False while
	// kcp does not let the hub deactivate the logical cluster of a soft-deleted object.
	// The hub refuses access itself, removes the bindings and asks kcp again.
	ReasonDeactivationForbidden = "DeactivationForbidden"
	// ReasonRightEnded is the reason of a PublisherMayBind condition that is False because the
	// right of the publisher ended, or was never there. The entry is hidden from those who do
	// not have it enabled.
	ReasonRightEnded = "RightEnded"
	// ReasonTerminating is the reason of a Ready condition that is False because the
	// object is being deleted or is soft-deleted.
	ReasonTerminating = "Terminating"
)
