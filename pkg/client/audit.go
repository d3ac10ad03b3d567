package client

import (
	"context"
	"io"
	"iter"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// AuditQuery selects events. Empty fields select all.
type AuditQuery struct {
	Since, Until time.Time
	// Actor is the name of a person or the UUID of a bot, Object the name of what was affected, Action a part of an
	// action, and Code a status or a class of them such as 4xx.
	Actor, Object, Action, Code string
	// Workspace is a UUID. It is for the events of an organization.
	Workspace string
}

// timeParameter is the form of a time in a parameter. It is empty for none.
func timeParameter(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// options are the parameters of a request.
func (q AuditQuery) options() []Option {
	return []Option{
		Query("since", timeParameter(q.Since)), Query("until", timeParameter(q.Until)), Query("actor", q.Actor), Query("object", q.Object),
		Query("action", q.Action), Query("code", q.Code), Query("workspace", q.Workspace),
	}
}

// Audit lists the events in the tenant, the newest first. For its admins.
func (t Tenant) Audit(ctx context.Context, q AuditQuery) iter.Seq2[rest.AuditEvent, error] {
	return Objects[rest.AuditEvent, None, None]{c: t.c, r: t.at("", "/audit", nil)}.List(ctx, q.options()...)
}

// The media types of ExportAudit.
const (
	CSV    = "text/csv"
	NDJSON = "application/x-ndjson"
)

// ExportAudit writes all events as the hub sends them in a media type. If it returns an error, what it has written is
// not whole.
func (t Tenant) ExportAudit(ctx context.Context, q AuditQuery, mediaType string, to io.Writer) error {
	return t.c.export(ctx, t.at("", "/audit", nil), mediaType, to, q.options())
}
