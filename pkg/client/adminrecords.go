package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// AdminUsageQuery selects items of usage: those of an organization or of a workspace in it or, without one, an item for
// each organization. Step is for an organization.
type AdminUsageQuery struct {
	UsageQuery
	Org, Workspace string
}

func (q AdminUsageQuery) options() []Option {
	return append(q.UsageQuery.options(), Query("org", q.Org), Query("workspace", q.Workspace))
}

// Audit lists the events of the whole hub, or of an organization if org is not empty, the newest first. For auditors and
// platform admins.
func (a Admin) Audit(ctx context.Context, org string, q AuditQuery) iter.Seq2[rest.AdminAuditEvent, error] {
	return Objects[rest.AdminAuditEvent, None, None]{c: a.c, r: Request{Path: adminPath + "/audit"}}.List(ctx, append(q.options(), Query("org", org))...)
}

// ExportAudit writes all events as the hub sends them in a media type. If it returns an error, what it has written is
// not whole.
func (a Admin) ExportAudit(ctx context.Context, org string, q AuditQuery, mediaType string, to io.Writer) error {
	return a.c.export(ctx, Request{Path: adminPath + "/audit"}, mediaType, to, append(q.options(), Query("org", org)))
}

// Access says who had access to an organization, or to a workspace in it if that is not empty, at a moment, to the second.
// The zero time is now. For auditors and platform admins.
func (a Admin) Access(ctx context.Context, org, workspace string, at time.Time) (*rest.PastAccess, error) {
	r := Request{Method: http.MethodGet, Path: adminPath + "/access"}
	return do[rest.PastAccess](ctx, a.c, r, Query("org", org), Query("workspace", workspace), Query("at", timeParameter(at)))
}

// Usage lists what organizations use. For auditors and platform admins.
func (a Admin) Usage(ctx context.Context, q AdminUsageQuery) iter.Seq2[rest.AdminUsageItem, error] {
	return Objects[rest.AdminUsageItem, None, None]{c: a.c, r: Request{Path: adminPath + "/usage"}}.List(ctx, q.options()...)
}

// ExportUsage writes the items as the hub sends them in CSV. If it returns an error, what it has written is not whole.
func (a Admin) ExportUsage(ctx context.Context, q AdminUsageQuery, to io.Writer) error {
	return a.c.export(ctx, Request{Path: adminPath + "/usage"}, CSV, to, q.options())
}

// BillingQuery selects what bills for workspaces depended on at any time between From and To. Empty fields select all.
type BillingQuery struct {
	Org, Workspace, CostCenter string
	From, To                   time.Time
}

func (q BillingQuery) options() []Option {
	return []Option{
		Query("org", q.Org), Query("workspace", q.Workspace), Query("costCenter", q.CostCenter),
		Query("from", timeParameter(q.From)), Query("to", timeParameter(q.To)),
	}
}

// Billing lists what bills for workspaces depend on, the newest first. For auditors and platform admins.
func (a Admin) Billing(ctx context.Context, q BillingQuery) iter.Seq2[rest.BilledWorkspace, error] {
	return Objects[rest.BilledWorkspace, None, None]{c: a.c, r: Request{Path: adminPath + "/billing"}}.List(ctx, q.options()...)
}

// ExportBilling writes all of it as the hub sends it in CSV. If it returns an error, what it has written is not whole.
func (a Admin) ExportBilling(ctx context.Context, q BillingQuery, to io.Writer) error {
	return a.c.export(ctx, Request{Path: adminPath + "/billing"}, CSV, to, q.options())
}
