package records_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

func TestBilled_isWhatWasSoInATime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db := open(t, url)
		require.NoError(t, db.Migrate(t.Context()))
		own := raw(t, url)
		at := func(hours int) time.Time { return morning.Add(time.Duration(hours) * time.Hour) }
		text := func(at time.Time) string { return at.Format("2006-01-02T15:04:05.000000Z07:00") }
		put := func(id, org, workspace, costCenter string, from, to int) {
			end := "NULL"
			if to != 0 {
				end = "'" + text(at(to)) + "'"
			}
			_, err := own.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO billing_workspaces
				(id, workspace, name, org, org_name, path, cost_center, labels, phase, valid_from, valid_to)
				VALUES ('%s', '%s', 'Web', '%s', 'ACME', 'root:x', '%s', '{"team":"web"}', 'Active', '%s', %s)`, id, workspace, org, costCenter, text(at(from)), end))
			require.NoError(t, err)
		}
		put("a", "o", "w", "1", 0, 2)
		put("b", "o", "w", "2", 2, 0)
		put("c", "o", "v", "1", 2, 0)
		put("d", "p", "x", "", 1, 3)
		reader := records.NewReader(db, nil)
		found := func(q usage.BillingQuery) (ids string) {
			if q.Limit == 0 {
				q.Limit = 10
			}
			for {
				page, next, err := reader.Billed(t.Context(), q)
				require.NoError(t, err)
				require.LessOrEqual(t, len(page), q.Limit)
				for _, b := range page {
					ids += b.ID
				}
				if next == nil {
					return ids
				}
				q.After = next
			}
		}
		for name, c := range map[string]struct {
			query usage.BillingQuery
			want  string
		}{
			"all":                     {usage.BillingQuery{}, "cbda"},
			"page by page":            {usage.BillingQuery{Limit: 1}, "cbda"},
			"an Organization":         {usage.BillingQuery{Org: "o"}, "cba"},
			"a Workspace":             {usage.BillingQuery{Org: "o", Workspace: "w"}, "ba"},
			"of another Organization": {usage.BillingQuery{Org: "p", Workspace: "w"}, ""},
			"a cost center":           {usage.BillingQuery{CostCenter: "1"}, "ca"},
			"no SQL":                  {usage.BillingQuery{CostCenter: "' OR 1=1 --"}, ""},
			"from the end of one on":  {usage.BillingQuery{From: at(2)}, "cbd"},
			"before one begins":       {usage.BillingQuery{To: at(2)}, "da"},
			"an hour":                 {usage.BillingQuery{From: at(0), To: at(1)}, "a"},
		} {
			require.Equal(t, c.want, found(c.query), name)
		}
		page, _, err := reader.Billed(t.Context(), usage.BillingQuery{Org: "p", Limit: 1})
		require.NoError(t, err)
		require.Equal(t, []usage.Billed{{
			ID: "d", Org: "p", OrgName: "ACME", Workspace: "x", Name: "Web", Path: "root:x", Labels: `{"team":"web"}`, Phase: "Active", From: at(1), To: at(3),
		}}, page)
		require.NoError(t, db.Close())
		_, _, err = reader.Billed(t.Context(), usage.BillingQuery{Limit: 1})
		require.True(t, errs.Is(err, errs.Unavailable), err)
	})
}
