package audit

import (
	"slices"
	"strconv"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
	"github.com/faroshq/kedge-hub/pkg/audit"
)

// form is how events are shown.
type form struct {
	// list is an answer in JSON, and view an event in NDJSON.
	list    func(events []audit.Event, next string, replicas []rest.AuditReplica) any
	view    func(audit.Event) any
	columns []query.Column[audit.Event]
}

// ofTenant is the form for admins of tenants.
func ofTenant() form {
	return form{
		list: func(events []audit.Event, next string, replicas []rest.AuditReplica) any {
			return rest.AuditEventList{List: rest.List[rest.AuditEvent]{Items: viewsOf(events, viewOf), Continue: next}, Replicas: replicas}
		},
		view: func(e audit.Event) any { return viewOf(e) }, columns: columns(),
	}
}

// ofPlatform is the form for auditors.
func ofPlatform() form {
	return form{
		list: func(events []audit.Event, next string, replicas []rest.AuditReplica) any {
			return rest.AdminAuditEventList{List: rest.List[rest.AdminAuditEvent]{Items: viewsOf(events, wholeOf), Continue: next}, Replicas: replicas}
		},
		view: func(e audit.Event) any { return wholeOf(e) },
		columns: slices.Concat(columns(), []query.Column[audit.Event]{
			{Name: "org", Value: func(e audit.Event) string { return e.Org }},
			{Name: "outsider", Value: func(e audit.Event) string {
				if !e.Outsider {
					return ""
				}
				return "true"
			}},
			{Name: "issuer", Value: func(e audit.Event) string { return e.Actor.Issuer }},
			{Name: "session", Value: func(e audit.Event) string { return e.Actor.Session }},
			{Name: "peer", Value: func(e audit.Event) string { return e.Peer }},
		}),
	}
}

func viewsOf[T any](events []audit.Event, view func(audit.Event) T) []T {
	all := make([]T, 0, len(events))
	for _, e := range events {
		all = append(all, view(e))
	}
	return all
}

// viewOf is an event as admins of tenants see it: without network addresses, issuers and sessions.
func viewOf(e audit.Event) rest.AuditEvent {
	return rest.AuditEvent{
		ID: e.ID, Time: e.Time, Stage: string(e.Stage), Action: e.Action, Workspace: e.Workspace, Cluster: e.Cluster, Object: e.Object, Code: e.Code,
		Actor: rest.AuditActor{Kind: e.Actor.Kind, User: e.Actor.User, Bot: e.Actor.Bot, Token: e.Actor.Token},
		Facts: e.Facts, Resource: e.Resource,
	}
}

// wholeOf is an event as auditors see it.
func wholeOf(e audit.Event) rest.AdminAuditEvent {
	return rest.AdminAuditEvent{
		AuditEvent: viewOf(e), Org: e.Org, Outsider: e.Outsider, Issuer: e.Actor.Issuer, Session: e.Actor.Session, Peer: e.Peer,
	}
}

// columns are those of every form. Objects but the actor are JSON in one cell.
func columns() []query.Column[audit.Event] {
	return []query.Column[audit.Event]{
		{Name: "id", Value: func(e audit.Event) string { return e.ID }},
		{Name: "time", Value: func(e audit.Event) string { return e.Time.Format(time.RFC3339Nano) }},
		{Name: "stage", Value: func(e audit.Event) string { return string(e.Stage) }},
		{Name: "action", Value: func(e audit.Event) string { return e.Action }},
		{Name: "actor.kind", Value: func(e audit.Event) string { return e.Actor.Kind }},
		{Name: "actor.user", Value: func(e audit.Event) string { return e.Actor.User }},
		{Name: "actor.bot", Value: func(e audit.Event) string { return e.Actor.Bot }},
		{Name: "actor.token", Value: func(e audit.Event) string { return e.Actor.Token }},
		{Name: "workspace", Value: func(e audit.Event) string { return e.Workspace }},
		{Name: "cluster", Value: func(e audit.Event) string { return e.Cluster }},
		{Name: "object", Value: func(e audit.Event) string { return e.Object }},
		{Name: "code", Value: func(e audit.Event) string {
			if e.Code == 0 {
				return ""
			}
			return strconv.Itoa(e.Code)
		}},
		{Name: "facts", Value: func(e audit.Event) string { return cellOf(e.Facts) }},
		{Name: "resource", Value: func(e audit.Event) string { return cellOf(e.Resource) }},
	}
}
