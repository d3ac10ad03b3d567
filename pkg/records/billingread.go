package records

import (
	"context"
	"database/sql"
	"time"

	"github.com/faroshq/kedge-hub/pkg/usage"
)

// Billed returns a page of what bills depended on, the newest first, and where the next one begins. That is nil on the
// last one.
func (r *Reader) Billed(ctx context.Context, q usage.BillingQuery) (page []usage.Billed, next *usage.BillingPosition, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var within conditions
	for _, f := range []struct {
		condition condition
		value     string
	}{{"org = ?", q.Org}, {"workspace = ?", q.Workspace}, {"cost_center = ?", q.CostCenter}} {
		if f.value != "" {
			within.add(f.condition, f.value)
		}
	}
	if !q.From.IsZero() {
		within.add("(valid_to IS NULL OR valid_to > ?)", timeText(q.From))
	}
	if !q.To.IsZero() {
		within.add("valid_from < ?", timeText(q.To))
	}
	if q.After != nil {
		within.add("(valid_from, id) < (?, ?)", timeText(q.After.From), q.After.ID)
	}
	rows, err := r.db.reads.QueryContext(ctx, r.db.query(`SELECT id, org, org_name, workspace, name, path, cost_center, labels, phase, valid_from, valid_to
		FROM billing_workspaces WHERE `+within.text()+" ORDER BY valid_from DESC, id DESC LIMIT ?"), append(within.values, q.Limit+1)...)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if len(page) == q.Limit {
			last := page[q.Limit-1]
			return page, &usage.BillingPosition{From: last.From, ID: last.ID}, nil
		}
		var b usage.Billed
		var to sql.Null[moment]
		if err := rows.Scan(&b.ID, &b.Org, &b.OrgName, &b.Workspace, &b.Name, &b.Path, &b.CostCenter, &b.Labels, &b.Phase, (*moment)(&b.From), &to); err != nil {
			return nil, nil, unavailable(err)
		}
		b.To = time.Time(to.V)
		page = append(page, b)
	}
	if err := rows.Err(); err != nil {
		return nil, nil, unavailable(err)
	}
	return page, nil, nil
}
