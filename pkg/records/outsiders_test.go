package records_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/records"
)

const (
	ownEvents       = 300
	outsidersEvents = 20_000
)

// flood stores events of a person in an Organization, and then many more that they cause as an outsider, as a hub of the
// version before this index does: nothing but the column tells them apart.
func flood(t *testing.T, own *sql.DB, postgres bool) {
	t.Helper()
	at, outsider := "strftime('%Y-%m-%dT%H:%M:%S.000000Z', 4100000000 + i, 'unixepoch')", fmt.Sprintf("i > %d", ownEvents)
	if postgres {
		at = "to_timestamp(4100000000 + i)"
	}
	for _, statement := range []string{
		"DROP INDEX audit_events_tenant", "DROP INDEX audit_events_tenant_actor", "DROP INDEX audit_events_tenant_object",
		"DROP INDEX audit_events_tenant_workspace", "DELETE FROM goose_db_version WHERE version_id >= 9",
		fmt.Sprintf(`WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < %d)
			INSERT INTO audit_events
			SELECT 'R', 'writes', i, %s, 'id', 'outcome', 'DELETE /x', 'person', 'mallory', 'o', 'w', 'bob', %s, 403, NULL,
			'{"apiVersion":"%s","org":"o","workspace":"w","object":"' || CAST(i AS text) || '"}', '', '' FROM numbers`,
			ownEvents+outsidersEvents, at, outsider, audit.APIVersion),
	} {
		_, err := own.Exec(statement)
		require.NoError(t, err, statement)
	}
}

// planOf returns how a database carries a statement out.
func planOf(t *testing.T, own *sql.DB, postgres bool, s records.Statement) string {
	t.Helper()
	explain := "EXPLAIN QUERY PLAN "
	if postgres {
		explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "
	}
	rows, err := own.Query(explain+s.Text, s.Values...)
	require.NoError(t, err, s.Text)
	defer func() { require.NoError(t, rows.Close()) }()
	var plan strings.Builder
	for rows.Next() {
		var line string
		into := []any{&line}
		if !postgres {
			into = []any{new(int), new(int), new(int), &line}
		}
		require.NoError(t, rows.Scan(into...))
		plan.WriteString(line + "\n")
	}
	require.NoError(t, rows.Err())
	return plan.String()
}

// Outsiders who know the UUID of an Organization can cause as many events of it as they like: no answer to its admins
// reads them, whichever filter they use, and what they see is theirs as before.
func TestReader_readsNothingThatOutsidersCaused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		postgres, own, db := !strings.HasPrefix(url, "sqlite:"), raw(t, url), open(t, url)
		require.NoError(t, db.Migrate(t.Context()))
		flood(t, own, postgres)
		began := time.Now()
		require.NoError(t, db.Migrate(t.Context()))
		t.Logf("the indexes of %d events took %v", ownEvents+outsidersEvents, time.Since(began))
		// An EXPLAIN of SQLite does not see what another connection has changed since it read the schema.
		own = raw(t, url)
		reader := records.NewReader(db, start(t, db, t.TempDir()).shipper)
		first := time.Unix(4100000000, 0)
		end := first.Add((ownEvents + outsidersEvents) * time.Second)
		last := &audit.Position{Time: first, Replica: "R", Log: audit.Writes, Seq: 1}
		// PostgreSQL has statistics by and by, and SQLite never.
		for _, analyzed := range slices.Compact([]bool{false, postgres}) {
			if analyzed {
				_, err := own.Exec("ANALYZE audit_events")
				require.NoError(t, err)
			}
			for name, q := range map[string]audit.Query{
				"all": audit.OfOrg("o", audit.Filter{}), "an actor": audit.OfOrg("o", audit.Filter{Actor: "mallory"}),
				"an object": audit.OfOrg("o", audit.Filter{Object: "bob"}), "a Workspace": audit.OfOrg("o", audit.Filter{Workspace: "w"}),
				"a part of an action":       audit.OfOrg("o", audit.Filter{Action: "DELETE"}),
				"a code":                    audit.OfOrg("o", audit.Filter{MinCode: 400, MaxCode: 499}),
				"several":                   audit.OfOrg("o", audit.Filter{Actor: "mallory", Object: "bob", Workspace: "w", Action: "/x"}),
				"times":                     audit.OfOrg("o", audit.Filter{Since: first, Until: first.Add(365 * 24 * time.Hour)}),
				"of a Workspace":            audit.OfWorkspace("o", "w", audit.Filter{}),
				"of a Workspace, an actor":  audit.OfWorkspace("o", "w", audit.Filter{Actor: "mallory"}),
				"of a Workspace, an object": audit.OfWorkspace("o", "w", audit.Filter{Object: "bob", Since: first}),
			} {
				q.Limit = 100
				for _, after := range []*audit.Position{nil, {Time: end, Replica: "R", Log: audit.Writes, Seq: 1}} {
					q.After = after
					statements, err := db.Statements(q, last)
					require.NoError(t, err)
					for _, s := range statements {
						plan := planOf(t, own, postgres, s)
						require.Regexp(t, `(using|on|USING INDEX|USING COVERING INDEX) audit_events_tenant`, plan, "%s: %s", name, s.Text)
						require.NotRegexp(t, `TEMP B-TREE|SCAN audit_events|Seq Scan|Removed by`, plan, "%s: %s", name, s.Text)
					}
				}
				q.After = nil
				got, _ := objects(t, reader, q)
				require.Len(t, got, ownEvents, name)
				require.Equal(t, fmt.Sprint(ownEvents), got[0], name)
			}
		}
		// Auditors see what outsiders tried.
		page, err := reader.Events(t.Context(), func() audit.Query {
			q := audit.OfPlatform("o", audit.Filter{})
			q.Limit = 1
			return q
		}())
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(ownEvents+outsidersEvents), page.Events[0].Object)
	})
}

// What all members see is found without the rest, whichever filter they use: none makes the database read much, and no page
// ends at an event that they must not see.
func TestReader_findsRescuesByTheirIndex(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		postgres, own, db := !strings.HasPrefix(url, "sqlite:"), raw(t, url), open(t, url)
		require.NoError(t, db.Migrate(t.Context()))
		flood(t, own, postgres)
		require.NoError(t, db.Migrate(t.Context()))
		own = raw(t, url)
		r := start(t, db, t.TempDir())
		r.say(t, audit.Event{Org: "o", Object: "carol", Action: audit.ActionRescue, Actor: audit.Actor{User: "heidi"}},
			audit.Event{Org: "p", Object: "dave", Action: audit.ActionRescue, Actor: audit.Actor{User: "heidi"}})
		for _, f := range []audit.Filter{
			{}, {Actor: "mallory"}, {Object: "bob"}, {Workspace: "w"}, {Action: "DELETE"}, {MinCode: 400, MaxCode: 499},
			{Actor: "heidi", Action: "admins", Since: time.Unix(0, 0)},
		} {
			q := audit.RescuesOf("o", f)
			q.Limit = 100
			statements, err := db.Statements(q, nil)
			require.NoError(t, err)
			plan := planOf(t, own, postgres, statements[1])
			require.Contains(t, plan, "audit_events_rescue", statements[1].Text)
			page, err := records.NewReader(db, r.shipper).Events(t.Context(), q)
			require.NoError(t, err)
			require.Nil(t, page.Next, "a position would be that of another event")
			if f == (audit.Filter{}) || f.Actor == "heidi" {
				require.Len(t, page.Events, 1)
				require.Equal(t, "carol", page.Events[0].Object)
			} else {
				require.Empty(t, page.Events)
			}
		}
	})
}

// Statements name indexes: one that somebody dropped is made again with the next start.
func TestMigrate_makesAnIndexThatIsMissing(t *testing.T) {
	t.Parallel()
	url := records.DefaultURL(t.TempDir())
	db := open(t, url)
	require.NoError(t, db.Migrate(t.Context()))
	_, err := raw(t, url).Exec("DROP INDEX audit_events_tenant_actor")
	require.NoError(t, err)
	r := start(t, db, t.TempDir())
	r.say(t, audit.Event{Org: "o", Action: "a", Actor: audit.Actor{User: "alice"}})
	got, _ := objects(t, records.NewReader(db, r.shipper), audit.OfOrg("o", audit.Filter{Actor: "alice"}))
	require.Equal(t, []string{"0"}, got)
}
