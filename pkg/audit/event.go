package audit

import (
	"fmt"
	"reflect"
	"slices"
	"time"
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

// Event is one line of the audit log. It has no token, and nothing of a body but Facts. Texts are
// cut to 512 bytes, and each list of Facts to 8 KiB: its last text then says how many are left out.
type Event struct {
	// APIVersion and Time, in UTC, are set by Write.
	APIVersion string    `json:"apiVersion"`
	Time       time.Time `json:"time"`
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
	// Outsider is true if the actor has no role in Org: its admins are not shown the event.
	Outsider bool `json:"outsider,omitempty"`
	// Code is the HTTP status of the answer. An intent has none.
	Code int `json:"code,omitempty"`
	// Suppressed is the number of equal refusals that were not written since the last one.
	Suppressed int       `json:"suppressed,omitempty"`
	Facts      *Facts    `json:"facts,omitempty"`
	Resource   *Resource `json:"resource,omitempty"`
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

// Facts are what was decided. Fields that do not apply are left out.
type Facts struct {
	// Role is the role that a Membership or a bot gets; Roles are further roles in a Workspace, as
	// name or namespace/name. An empty list takes all.
	Role  string    `json:"role,omitempty"`
	Roles *[]string `json:"roles,omitempty"`
	Sudo  *bool     `json:"sudo,omitempty"`
	// Cascade is true for a removal from an Organization with all its Workspaces.
	Cascade bool `json:"cascade,omitempty"`
	// Registration is that of a User: Approved, Pending or Rejected.
	Registration string `json:"registration,omitempty"`
	// Subject is that of the identity that signs up.
	Subject string `json:"subject,omitempty"`
	// Quota is the new number of Organizations of a person or Workspaces of an Organization, or
	// "default".
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
	// All is true if all tokens of a bot, or all Sessions of a person, end.
	All bool `json:"all,omitempty"`
	// Session is the metadata.name of a Session that ends.
	Session string `json:"session,omitempty"`
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
}

// Given reports whether any field is set.
func (f Facts) Given() bool { return !reflect.ValueOf(f).IsZero() }

// Resource is what a proxied request writes to.
type Resource struct {
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
}

const (
	// maxText is the maximum length of a text that a client chooses, in bytes.
	maxText = 512
	// maxList is that of all texts of one list together.
	maxList = 8 << 10
)

// bounded cuts the texts that a client chooses. A tenant who could write long lines would make the
// log rotate, and so forget, what others did.
func (e *Event) bounded() {
	for _, text := range []*string{&e.Org, &e.Workspace, &e.Object} {
		cut(text)
	}
	if e.Resource != nil {
		r := *e.Resource
		for _, text := range []*string{&r.Verb, &r.Group, &r.Resource, &r.Subresource, &r.Namespace, &r.Name} {
			cut(text)
		}
		e.Resource = &r
	}
	if e.Facts != nil {
		f := *e.Facts
		for _, text := range []*string{&f.Subject, &f.Token, &f.Slug, &f.Export} {
			cut(text)
		}
		for _, list := range []*[]string{&f.Fields, &f.AcceptedClaims, &f.RejectedClaims} {
			*list = cutList(*list)
		}
		if f.Roles != nil {
			roles := cutList(*f.Roles)
			f.Roles = &roles
		}
		e.Facts = &f
	}
}

func cut(text *string) {
	if len(*text) > maxText {
		*text = (*text)[:maxText]
	}
}

// cutList returns the texts of a list that fit, cut, and says how many do not.
func cutList(list []string) []string {
	size := 0
	fits := slices.Clone(list)
	for i := range fits {
		cut(&fits[i])
		// In JSON a text has two quotes and a comma.
		if size += len(fits[i]) + 3; size > maxList {
			return append(fits[:i], fmt.Sprintf("and %d more", len(list)-i))
		}
	}
	return fits
}
