package records_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/usage"
	"github.com/faroshq/kedge-hub/test/doubles/pgtest"
	"github.com/faroshq/kedge-hub/test/readme"
)

func TestBillingTable_isAPlainName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"billing": `"billing"`, "finance.kedge_hours": `"finance"."kedge_hours"`, "_a.B$1": `"_a"."B$1"`,
		"": "", ".": "", "a.": "", ".a": "", "a.b.c": "", `a"b`: "", "a b": "", "a;b": "", "a\x00": "", "ä": "",
		strings.Repeat("a", 63): `"` + strings.Repeat("a", 63) + `"`, strings.Repeat("a", 64): "",
	} {
		table, err := records.ParseBillingTable(text)
		if want == "" {
			require.ErrorContains(t, err, "must be TABLE or SCHEMA.TABLE", text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, table.String())
		require.True(t, strings.HasPrefix(table.Create(), "CREATE TABLE "+want+" ("), table.Create())
	}
}

// pushing is a hub that records one Workspace on SQLite, and pushes to a double of a table.
type pushing struct {
	*records.Pusher
	clock      *clocktesting.FakeClock
	workspaces *workspaces
	billing    *records.Billing
	process    *process
	table      sqlmock.Sqlmock
	registry   *prometheus.Registry
	own        *sql.DB
}

func newPushing(t *testing.T) *pushing {
	t.Helper()
	p := &pushing{clock: clocktesting.NewFakeClock(morning), workspaces: &workspaces{held: map[string]records.BilledWorkspace{}}, registry: prometheus.NewRegistry()}
	url := records.DefaultURL(t.TempDir())
	db := open(t, url)
	p.own = raw(t, url)
	p.workspaces.put("w1", "1", "Active")
	p.billing, _ = recordingAt(t, db, p.workspaces, p.clock)
	requireRows(t, p.own, "w1", "1 Active")
	p.process = newProcess(t, db, p.clock, "ONE", 0)
	p.process.serve(usage.Workspace{Org: "acme", UUID: "w1"}, alice, usage.Write, 10)
	p.process.store(usage.Workspace{Org: "acme", UUID: "w1"}, 7, 700)
	p.process.write(t)
	double, table, err := sqlmock.New()
	require.NoError(t, err)
	t.Cleanup(func() { _ = double.Close() })
	p.table = table
	p.Pusher, err = records.NewPusher(db, records.NewBillingTarget(double, records.BillingTable{Schema: "finance", Name: "hours"}), p.billing, time.Hour, p.clock, p.registry)
	require.NoError(t, err)
	return p
}

// later is a time after the first hour, at which this replica has written its usage.
func (p *pushing) later(t *testing.T, after time.Duration) {
	t.Helper()
	p.clock.SetTime(morning.Add(time.Hour + after))
	p.process.write(t)
}

// expect expects the row of the first hour.
func (p *pushing) expect(costCenter string) *sqlmock.ExpectedExec {
	return p.table.ExpectExec(`INSERT INTO "finance"."hours" \(event_id, starts, .*, bots\) VALUES \(\$1::text, .*, \$17::bigint\) ON CONFLICT \(event_id\) DO NOTHING`).WithArgs(
		"2026-03-01T10:00:00Z/w1", morning, morning.Add(time.Hour), "acme", "ACME", "w1", "Web", "root:w1", costCenter, `{"team":"web"}`, "Active", 7, 700, 1, 1, 1, 0)
}

// An interval is pushed once, and not before everything that happened in it is there.
func TestPusher_waitsUntilAnIntervalIsFinal(t *testing.T) {
	t.Parallel()
	p := newPushing(t)
	nothing := func() {
		t.Helper()
		// The double refuses a statement that is not expected.
		require.NoError(t, p.Push(t.Context()))
	}
	nothing()
	p.later(t, 29*time.Second)
	nothing()
	p.clock.SetTime(morning.Add(time.Hour + time.Minute))
	_, err := p.own.Exec("UPDATE usage_replicas SET as_of = '2026-03-01T10:59:59.000000Z'")
	require.NoError(t, err)
	nothing()
	require.InDelta(t, 60, metric(t, p.registry, "kedge_billing_lag_seconds"), 0.1)
	p.process.write(t)
	p.workspaces.fill(errors.New("no room"))
	p.workspaces.put("w1", "2", "Active", p.billing)
	require.InDelta(t, 0, p.billing.Lag().Seconds(), 0.1)
	p.clock.Step(time.Second)
	require.InDelta(t, 1, p.billing.Lag().Seconds(), 0.1)
	nothing()
	p.workspaces.fill(nil)
	requireRows(t, p.own, "w1", "1 Active]", "2 Active")
	require.Eventually(t, func() bool { return !p.billing.Settled().IsZero() }, 20*time.Second, 10*time.Millisecond)
	// The change came after the hour.
	p.expect("1").WillReturnResult(sqlmock.NewResult(0, 1))
	require.NoError(t, p.Push(t.Context()))
	require.NoError(t, p.table.ExpectationsWereMet())
	require.Equal(t, 1.0, metric(t, p.registry, "kedge_billing_pushed_total"))
	require.Zero(t, metric(t, p.registry, "kedge_billing_lag_seconds"))
	nothing()
}

// A replica that is not heard of for an hour does not hold the others up.
func TestPusher_waitsForNoReplicaThatIsGone(t *testing.T) {
	t.Parallel()
	p := newPushing(t)
	_, err := p.own.Exec("INSERT INTO usage_replicas (replica, as_of) VALUES ('GONE', '2026-03-01T10:30:00.000000Z')")
	require.NoError(t, err)
	p.later(t, 29*time.Minute)
	require.NoError(t, p.Push(t.Context()))
	p.later(t, 31*time.Minute)
	p.expect("1").WillReturnResult(sqlmock.NewResult(0, 1))
	require.NoError(t, p.Push(t.Context()))
	require.NoError(t, p.table.ExpectationsWereMet())
}

// What the table did not take, or took without saying so, is pushed again under the same IDs.
func TestPusher_pushesAgainWhatFailed(t *testing.T) {
	t.Parallel()
	p := newPushing(t)
	p.later(t, time.Minute)
	lost := errors.New("connection lost")
	p.expect("1").WillReturnError(lost)
	require.ErrorIs(t, p.Push(t.Context()), lost)
	p.expect("1").WillReturnResult(sqlmock.NewResult(0, 0))
	require.NoError(t, p.Push(t.Context()))
	require.Zero(t, metric(t, p.registry, "kedge_billing_pushed_total"))
	require.NoError(t, p.Push(t.Context()))
	require.NoError(t, p.table.ExpectationsWereMet())
}

// Each thing that a table lacks is named, with the statement that helps: a table that it makes does.
func TestBillingTarget_saysWhatTheTableLacks(t *testing.T) {
	t.Parallel()
	url, role := newPostgres(t), fmt.Sprintf("billing_%d", databases.Add(1))
	own, table := raw(t, url), records.BillingTable{Schema: "finance", Name: "Hours"}
	exec := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			_, err := own.Exec(s)
			require.NoError(t, err, s)
		}
	}
	target, err := records.OpenBillingTarget(records.Options{URL: strings.Replace(url, "kedge@", role+"@", 1)}, table)
	require.NoError(t, err)
	defer func() { require.NoError(t, target.Close()) }()
	exec("CREATE ROLE "+role+" LOGIN", "CREATE SCHEMA finance", "GRANT USAGE ON SCHEMA finance TO "+role)
	t.Cleanup(func() { exec("DROP OWNED BY "+role, "DROP ROLE "+role) })
	grant := "GRANT SELECT, INSERT ON " + table.String() + " TO " + role
	for _, c := range []struct {
		do    []string
		wants string
	}{
		{nil, `relation "finance.Hours" does not exist`},
		{[]string{table.Create()}, `permission denied for table Hours`},
		{[]string{grant, "ALTER TABLE " + table.String() + " DROP COLUMN bots"}, `column "bots" of relation "Hours" does not exist`},
		{[]string{"ALTER TABLE " + table.String() + " ADD bots boolean"}, `column "bots" is of type boolean`},
		{[]string{"DROP TABLE " + table.String(), strings.Replace(table.Create(), "PRIMARY KEY", "", 1), grant}, "has no unique key on event_id"},
	} {
		exec(c.do...)
		err := target.Check(t.Context())
		require.ErrorContains(t, err, c.wants)
		require.ErrorContains(t, err, table.Create())
	}
	exec("DROP TABLE "+table.String(), table.Create(), grant)
	require.NoError(t, target.Check(t.Context()))
}

// The table of finance has each line of billing_hours once, whatever fails in between.
func TestPusher_ofAMonthIsCompleteAfterFailures(t *testing.T) {
	t.Parallel()
	pgtest.Missing(t)
	server, err := pgtest.Start(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Stop()) }()
	require.NoError(t, server.SQL(t.Context(), "postgres", "CREATE DATABASE finance"))
	table := records.BillingTable{Name: "hours"}
	require.Equal(t, strings.TrimSpace(readme.BlockOf(t, "deploy/README.md", "billing table")), table.Create())
	require.NoError(t, server.SQL(t.Context(), "finance", table.Create()))
	db, own := open(t, server.URL("postgres")), raw(t, server.URL("finance"))
	m := simulateMonth(t, db)
	m.clock.SetTime(m.to.Add(time.Hour))
	m.process.write(t)
	count := func() (n int) {
		if own.QueryRow("SELECT count(*) FROM hours").Scan(&n) != nil {
			return -1
		}
		return n
	}
	run := func() (stop func()) {
		target, err := records.OpenBillingTarget(records.Options{URL: server.URL("finance")}, table)
		require.NoError(t, err)
		p, err := records.NewPusher(db, target, m.billing, time.Hour, m.clock, prometheus.NewRegistry())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		return func() { cancel(); <-done; require.NoError(t, target.Close()) }
	}
	reach := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return count() >= n }, 5*time.Minute, time.Millisecond)
	}
	stop := run()
	reach(len(m.want) / 8)
	server.Kill()
	require.NoError(t, server.Resume(t.Context()))
	require.Less(t, count(), len(m.want), "it was in the middle")
	reach(len(m.want) / 2)
	stop()
	require.Less(t, count(), len(m.want), "it was in the middle")
	stop = run()
	m.require(t, own, "SELECT starts, "+billedColumns+" FROM hours")
	// The position is lost: what is there stays as it is, once.
	stop()
	require.NoError(t, server.SQL(t.Context(), "finance", "UPDATE hours SET cost_center = cost_center || 'x'"))
	require.NoError(t, server.SQL(t.Context(), "postgres", "DROP TABLE billing_pushes"))
	for i := range m.want {
		m.want[i].center += "x"
	}
	stop = run()
	defer stop()
	positions := raw(t, server.URL("postgres"))
	require.Eventually(t, func() bool {
		var to time.Time
		return positions.QueryRow("SELECT pushed_to FROM billing_pushes").Scan(&to) == nil && to.Equal(m.to)
	}, 5*time.Minute, 50*time.Millisecond)
	m.require(t, own, "SELECT starts, "+billedColumns+" FROM hours")
	var odd int
	require.NoError(t, own.QueryRow(`SELECT count(*) FROM hours WHERE ends <> starts + interval '1 hour'
		OR event_id <> to_char(starts AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z/"') || workspace_uuid`).Scan(&odd))
	require.Zero(t, odd)
}
