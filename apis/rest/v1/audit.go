package v1

import (
	"reflect"
	"time"
)

// AuditEvent is an event of the audit log, as the admins of an organization see it. A change has an
// intent before it and an outcome after it, with the same ID and action.
type AuditEvent struct {
	Answer `json:"-"`
	ID     string    `json:"id"`
	Time   time.Time `json:"time"`
	// Stage is intent or outcome.
	Stage string `json:"stage"`
	// Action is a method and a route of the API, "kubernetes" with a verb, or words.
	Action    string     `json:"action"`
	Actor     AuditActor `json:"actor"`
	Workspace string     `json:"workspace,omitempty"`
	// Cluster is the logical cluster of a proxied request.
	Cluster string `json:"cluster,omitempty"`
	Object  string `json:"object,omitempty"`
	// Code is the HTTP status of an outcome.
	Code     int            `json:"code,omitempty"`
	Facts    *AuditFacts    `json:"facts,omitempty"`
	Resource *AuditResource `json:"resource,omitempty"`
}

// AuditEventList is a page of events, the newest first. Replicas are those of the hub that were heard of in the last
// days, the one that is most behind first.
type AuditEventList struct {
	List[AuditEvent]
	Replicas []AuditReplica `json:"replicas"`
}

// AdminAuditEvent is an event as auditors see it.
type AdminAuditEvent struct {
	AuditEvent
	Org string `json:"org,omitempty"`
	// Outsider is true if the actor has no role in the organization: its admins are not shown the event.
	Outsider bool `json:"outsider,omitempty"`
	// Issuer and Session are those of the credential of a person, and Peer is the network address of the client.
	Issuer  string `json:"issuer,omitempty"`
	Session string `json:"session,omitempty"`
	Peer    string `json:"peer,omitempty"`
}

// AdminAuditEventList is a page of events of the whole hub, the newest first.
type AdminAuditEventList struct {
	List[AdminAuditEvent]
	Replicas []AuditReplica `json:"replicas"`
}

// AuditReplica says how far the events of a replica of the hub are in the records database.
type AuditReplica struct {
	Replica string `json:"replica"`
	// AsOf is the time up to which all its events are there; BehindSeconds is how long ago that is.
	AsOf          time.Time `json:"asOf"`
	BehindSeconds int64     `json:"behindSeconds"`
}

// AuditActor is the origin of a change. Kind is person, bot, hub or anonymous.
type AuditActor struct {
	Kind  string `json:"kind"`
	User  string `json:"user,omitempty"`
	Bot   string `json:"bot,omitempty"`
	Token string `json:"token,omitempty"`
}

// AuditFacts are what was decided. Fields that do not apply are left out.
type AuditFacts struct {
	// Role is the role that a Membership or a bot gets, or NoRole for a manager who keeps no other; Roles are
	// further roles in a Workspace, as name or namespace/name. An empty list takes all.
	Role  string    `json:"role,omitempty"`
	Roles *[]string `json:"roles,omitempty"`
	Sudo  *bool     `json:"sudo,omitempty"`
	// Manager says whether a member of a workspace is to manage it.
	Manager *bool `json:"manager,omitempty"`
	// Request is the ID of a request for rights that is made or decided, or that gave the sudo of a proxied request.
	Request string `json:"request,omitempty"`
	// Sources are those of the parts of a Membership that were not given by hand, as they are afterwards. An
	// empty list takes all.
	Sources *[]string `json:"sources,omitempty"`
	// Group is the group of the identity provider of a mapping.
	Group string `json:"group,omitempty"`
	// ExpiresAt is the end of the Membership or the Workspace in RFC 3339, or "never" if it is taken off.
	ExpiresAt string `json:"expiresAt,omitempty"`
	// Cascade is true for a removal from an Organization with all its Workspaces.
	Cascade bool `json:"cascade,omitempty"`
	// Registration is that of a User: Approved, Pending or Rejected.
	Registration string `json:"registration,omitempty"`
	// Subject is that of the identity that signs up.
	Subject string `json:"subject,omitempty"`
	// Invitation is the ID of the invitation by which a person signs up.
	Invitation string `json:"invitation,omitempty"`
	// Quota is the new number of Organizations of a person or Workspaces of an Organization, or
	// "default". New limits of storage follow as name=limit.
	Quota string `json:"quota,omitempty"`
	// DefaultAccess, WorkspaceCreation and CatalogEntryCreation are settings of an Organization.
	DefaultAccess        string `json:"defaultAccess,omitempty"`
	WorkspaceCreation    string `json:"workspaceCreation,omitempty"`
	CatalogEntryCreation string `json:"catalogEntryCreation,omitempty"`
	// Fields are the names of other fields that are set.
	Fields []string `json:"fields,omitempty"`
	// Token is the ID of a bot's token that is issued or revoked; TokenExpiresAt is its end.
	Token          string     `json:"token,omitempty"`
	TokenExpiresAt *time.Time `json:"tokenExpiresAt,omitempty"`
	// Rotated is the ID of the token that Token replaces.
	Rotated string `json:"rotated,omitempty"`
	// Trust is the ID of a trust rule of a bot that is added or removed, or that a job gets a token
	// by. Issuer is the identity provider of the rule or of the job.
	Trust  string `json:"trust,omitempty"`
	Issuer string `json:"issuer,omitempty"`
	// JobToken identifies the ID token of a job, which is good for one token of a bot; JobTokenExpiresAt is its
	// end.
	JobToken          string     `json:"jobToken,omitempty"`
	JobTokenExpiresAt *time.Time `json:"jobTokenExpiresAt,omitempty"`
	// Mismatch has the claims for which the trust rules of a bot let a job not in, by the ID of the
	// rule.
	Mismatch map[string]string `json:"mismatch,omitempty"`
	// Reason is why a job that a trust rule lets in gets no token: replayed, quota or workspace. It is
	// lastAdminPurged where the hub deletes an Organization because the account of its last admin is purged. It is
	// the text of a platform admin where a person is rejected, and that of the person who asks for rights or decides.
	Reason string `json:"reason,omitempty"`
	// All is true if all tokens of a bot, or all Sessions of a person, end.
	All bool `json:"all,omitempty"`
	// Session is the metadata.name of a Session that ends, or that gets tokens. Generation is that of the
	// secret which it gets with them: earlier ones work no longer.
	Session    string `json:"session,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Slug and Export are those of a catalog entry. Export is path and name of an APIExport.
	Slug   string `json:"slug,omitempty"`
	Export string `json:"export,omitempty"`
	// Force is true if a Global entry takes its slug from the Organizations that have it.
	Force bool `json:"force,omitempty"`
	// AcceptedClaims and RejectedClaims are the answers to the permission claims of a provider, as
	// resource or resource.group.
	AcceptedClaims []string `json:"acceptedClaims,omitempty"`
	RejectedClaims []string `json:"rejectedClaims,omitempty"`
	// Elevated is true if a proxied request uses sudo.
	Elevated bool `json:"elevated,omitempty"`
	// Counts are the numbers of removed objects by kind.
	Counts map[string]int `json:"counts,omitempty"`
	// Receipt is that of the end of a right, in the outcome of the request.
	Receipt *Receipt `json:"receipt,omitempty"`
}

// Receipt says how far the end of a right came while its request was carried out: a removal, a demotion, a
// revocation or the end of a session. It speaks for the replica that answers.
type Receipt struct {
	Answer `json:"-"`
	// StreamsCut is the number of requests through the proxy that were open and that the replica ended.
	StreamsCut int `json:"streamsCut"`
	// HubRefusedAt is the time since which the replica refuses what the right gave. It is null if its caches did
	// not show the end in time.
	HubRefusedAt *time.Time `json:"hubRefusedAt"`
	// KCPRefusedAt is the time at which kcp was seen without the bindings of the right. It is null while kcp
	// follows, and for bots, tokens and sessions, which the hub judges by itself.
	KCPRefusedAt *time.Time `json:"kcpRefusedAt"`
}

// NoRole is the role in AuditFacts of a manager of a Workspace whose role is taken away.
const NoRole = "none"

// Given reports whether any field is set.
func (f AuditFacts) Given() bool { return !reflect.ValueOf(f).IsZero() }

// AuditResource is what a proxied request writes to.
type AuditResource struct {
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
}
