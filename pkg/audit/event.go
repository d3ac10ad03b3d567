package audit

import (
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// APIVersion is the version of the events.
const APIVersion = "audit.kedge.faros.sh/v1alpha1"

// Stage says whether an event was written before or after a change.
type Stage string

// The stages of events.
const (
	// StageIntent is written before the hub writes to kcp.
	StageIntent Stage = "intent"
	// StageOutcome is written when the result is known.
	StageOutcome Stage = "outcome"
)

// The kinds of actors.
const (
	ActorPerson = "person"
	ActorBot    = "bot"
	// ActorHub is the hub itself: a controller, or a flag of the operator.
	ActorHub = "hub"
	// ActorAnonymous is a client whose credential was refused, or that had none.
	ActorAnonymous = "anonymous"
)

// Event is one line of the audit log. It has no token, and nothing of a body but Facts. Each text, whichever
// field it is in, is cut to 512 bytes of JSON, and each list and map to 8 KiB: its last text then says how many are
// left out.
type Event struct {
	// APIVersion, Time, in UTC, and the five fields of the chain are set by Write.
	APIVersion string    `json:"apiVersion"`
	Time       time.Time `json:"time"`
	// Log is Rights or Writes. Replica is the ID of the replica of the hub; it is made when the first
	// event is. Seq counts the events of the chain from 1 on; Prev is the hash of the line before.
	Log     string `json:"log"`
	Replica string `json:"replica"`
	Seq     uint64 `json:"seq"`
	Prev    string `json:"prev,omitempty"`
	// Lost is the number of events of the chain that could not be written since the one before. After a restart it
	// is 1, whatever the number was.
	Lost int `json:"lost,omitempty"`
	// ID is the request id; ClientRequest is the one that the client sent. What the hub does by
	// itself has an ID of its own. An intent and its outcome have the same ID and Action.
	ID            string `json:"id"`
	ClientRequest string `json:"clientRequest,omitempty"`
	Stage         Stage  `json:"stage"`
	// Action is an HTTP method with the pattern of a route of the API, "kubernetes" with a verb,
	// or words such as "purge" and "login cli".
	Action string `json:"action"`
	Actor  Actor  `json:"actor"`
	// Peer is the network address of the client. It is empty for what the hub does by itself.
	Peer string `json:"peer,omitempty"`
	// Org and Workspace are the UUIDs of the affected Organization and Workspace; Object is the
	// name of any other affected object.
	Org       string `json:"org,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Object    string `json:"object,omitempty"`
	// Cluster is the logical cluster of a proxied request: its ID, or what the request names if there is
	// no such Workspace.
	Cluster string `json:"cluster,omitempty"`
	// Outsider is true if the actor has no role in Org: its admins are not shown the event.
	Outsider bool `json:"outsider,omitempty"`
	// Code is the HTTP status of the answer. An intent has none.
	Code int `json:"code,omitempty"`
	// Unchanged is true for the outcome of a request to the API that has no intent: it was refused, or it
	// changed nothing.
	Unchanged bool `json:"unchanged,omitempty"`
	// Suppressed is the number of equal refusals that were not written since the last one.
	Suppressed int    `json:"suppressed,omitempty"`
	Facts      *Facts `json:"facts,omitempty"`
	// Rotation is that of an event of the log itself.
	Rotation *Rotation `json:"rotation,omitempty"`
	Resource *Resource `json:"resource,omitempty"`
	// Cut is true if Facts, Rotation and Resource are left out, because the line would be longer than what readers
	// take for an event.
	Cut bool `json:"cut,omitempty"`
}

// Actor is the origin of a change.
type Actor struct {
	Kind string `json:"kind"`
	// User is the metadata.name of a User; Issuer is that of the person's credential.
	User   string `json:"user,omitempty"`
	Issuer string `json:"issuer,omitempty"`
	// Session is the metadata.name of the Session of the credential. It is empty for a token that a
	// person fetched elsewhere, or that is newer than what the cache has. Cookie is true if the
	// credential was the portal's cookie.
	Session string `json:"session,omitempty"`
	Cookie  bool   `json:"cookie,omitempty"`
	// Bot is the UUID of a bot, Token the ID of its token.
	Bot   string `json:"bot,omitempty"`
	Token string `json:"token,omitempty"`
}

// Facts are what was decided.
type Facts = rest.AuditFacts

// Resource is what a proxied request writes to.
type Resource = rest.AuditResource
