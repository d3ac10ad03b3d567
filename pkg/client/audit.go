package client

import (
	"context"
	"iter"
	"net/url"
	"time"
)

// AuditEvent is an event of the audit log. A change has an intent before it and an outcome after it,
// with the same ID and action.
type AuditEvent struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// Stage is intent or outcome.
	Stage string `json:"stage"`
	// Action is a method and a route of the API, "kubernetes" with a verb, or words.
	Action    string     `json:"action"`
	Actor     AuditActor `json:"actor"`
	Peer      string     `json:"peer,omitempty"`
	Workspace string     `json:"workspace,omitempty"`
	Object    string     `json:"object,omitempty"`
	// Code is the HTTP status of an outcome.
	Code     int            `json:"code,omitempty"`
	Facts    *AuditFacts    `json:"facts,omitempty"`
	Resource *AuditResource `json:"resource,omitempty"`
}

// AuditActor is the origin of a change. Kind is person, bot, hub or anonymous.
type AuditActor struct {
	Kind  string `json:"kind"`
	User  string `json:"user,omitempty"`
	Bot   string `json:"bot,omitempty"`
	Token string `json:"token,omitempty"`
}

// AuditFacts are what was decided.
type AuditFacts struct {
	Role                 string         `json:"role,omitempty"`
	Roles                *[]string      `json:"roles,omitempty"`
	Sudo                 *bool          `json:"sudo,omitempty"`
	Cascade              bool           `json:"cascade,omitempty"`
	Registration         string         `json:"registration,omitempty"`
	Subject              string         `json:"subject,omitempty"`
	Quota                string         `json:"quota,omitempty"`
	DefaultAccess        string         `json:"defaultAccess,omitempty"`
	WorkspaceCreation    string         `json:"workspaceCreation,omitempty"`
	CatalogEntryCreation string         `json:"catalogEntryCreation,omitempty"`
	Fields               []string       `json:"fields,omitempty"`
	Token                string         `json:"token,omitempty"`
	TokenExpiresAt       *time.Time     `json:"tokenExpiresAt,omitempty"`
	All                  bool           `json:"all,omitempty"`
	Session              string         `json:"session,omitempty"`
	Slug                 string         `json:"slug,omitempty"`
	Export               string         `json:"export,omitempty"`
	Force                bool           `json:"force,omitempty"`
	AcceptedClaims       []string       `json:"acceptedClaims,omitempty"`
	RejectedClaims       []string       `json:"rejectedClaims,omitempty"`
	Elevated             bool           `json:"elevated,omitempty"`
	Counts               map[string]int `json:"counts,omitempty"`
}

// AuditResource is what a request under /clusters writes to.
type AuditResource struct {
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
}

// AuditQuery selects events. Empty fields select all.
type AuditQuery struct {
	Since, Until time.Time
	// Actor is the name of a person or the UUID of a bot, Workspace a UUID, Action a part of an
	// action.
	Actor, Workspace, Action string
}

// Values returns the parameters of the query.
func (q AuditQuery) Values() url.Values {
	values := url.Values{}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			values.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	for name, text := range map[string]string{"actor": q.Actor, "workspace": q.Workspace, "action": q.Action} {
		if text != "" {
			values.Set(name, text)
		}
	}
	return values
}

// Audit lists the events in the organization that the replica of the hub has which answers, the
// newest first. For admins.
func (o Org) Audit(ctx context.Context, q AuditQuery) iter.Seq2[AuditEvent, error] {
	r := o.at("", "/audit", nil)
	r.Query = q.Values()
	return List[AuditEvent](ctx, o.c, r)
}
