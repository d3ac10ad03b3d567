package client

import (
	"context"
	"io"
	"iter"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// UsageQuery selects items of usage. Without To they end now; without From they begin a day or, by day, a month before.
type UsageQuery struct {
	From, To time.Time
	// Step is hour or day. Empty means hour.
	Step string
}

func (q UsageQuery) options() []Option {
	return []Option{Query("from", timeParameter(q.From)), Query("to", timeParameter(q.To)), Query("step", q.Step)}
}

// Usage lists what is used in the tenant, the oldest first. For its admins. The list has one page.
func (t Tenant) Usage(ctx context.Context, q UsageQuery) iter.Seq2[rest.UsageItem, error] {
	return list[rest.UsageItem](ctx, t.c, t.at("", "/usage", nil), q.options()...)
}

// ExportUsage writes the items as the hub sends them in CSV. If it returns an error, what it has written is not whole.
func (t Tenant) ExportUsage(ctx context.Context, q UsageQuery, to io.Writer) error {
	return t.c.export(ctx, t.at("", "/usage", nil), CSV, to, q.options())
}
