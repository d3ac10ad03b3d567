package records_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/test/doubles/pgtest"
)

var databases atomic.Int32

// newPostgres returns a database of its own in the server of the group.
func newPostgres(t testing.TB) (url string) {
	t.Helper()
	pgtest.Missing(t)
	name := fmt.Sprintf("records_%d", databases.Add(1))
	require.NoError(t, server().SQL(t.Context(), "postgres", "CREATE DATABASE "+name))
	return server().URL(name)
}

// server starts the PostgreSQL of the group.
var server = sync.OnceValue(func() *pgtest.Server {
	s, err := pgtest.Start(context.Background())
	if err != nil {
		panic(err)
	}
	started = s
	return s
})

var started *pgtest.Server

func TestMain(m *testing.M) {
	code := m.Run()
	if started != nil {
		if err := started.Stop(); err != nil {
			code = 1
		}
	}
	os.Exit(code)
}

// onBoth runs a test on each kind of database.
func onBoth(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, records.DefaultURL(t.TempDir()))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, newPostgres(t))
	})
}

// replica is an audit log with its shipper.
type replica struct {
	*audit.Log
	shipper  *records.Shipper
	registry *prometheus.Registry
	options  audit.Options
	stop     func()
	// full is the error of its disk, or nil.
	full atomic.Pointer[error]
}

func open(t testing.TB, url string) *records.DB {
	t.Helper()
	db, err := records.Open(records.Options{URL: url})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// start starts a replica with the files in dir.
func start(t testing.TB, db *records.DB, dir string, change ...func(*audit.Options)) *replica {
	t.Helper()
	r := &replica{registry: prometheus.NewRegistry(), options: audit.Options{File: audit.DefaultFile(dir), MaxSize: 1}}
	for _, f := range change {
		f(&r.options)
	}
	l, closing, err := audit.Open(t.Context(), r.options, r.registry)
	require.NoError(t, err)
	r.Log = l
	r.shipper, err = records.NewShipper(db, l, 24*time.Hour, r.room, r.registry)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.shipper.Run(ctx)
	}()
	r.stop = sync.OnceFunc(func() { cancel(); <-done; closing() })
	t.Cleanup(r.stop)
	return r
}

// room is the error of the replica's disk.
func (r *replica) room() error {
	if full := r.full.Load(); full != nil {
		return *full
	}
	return nil
}

// write writes a change of rights and a proxied write, n times. Tenants chose a text that becomes no JSON if
// the escape of a NUL is cut out of it.
func (r *replica) write(t testing.TB, n int) {
	t.Helper()
	facts := &audit.Facts{Role: "admin", Slug: `\u0000` + "\x00"}
	for i := range n {
		require.NoError(t, r.Write(audit.Event{Org: "o", Object: fmt.Sprint(i), Action: "POST /api/orgs", Stage: audit.StageIntent, Facts: facts}))
		require.NoError(t, r.Write(audit.Event{Org: "o", Object: "a\x00b", Action: "kubernetes create", Code: 201, Stage: audit.StageOutcome}))
	}
}

// settle waits until everything is stored.
func (r *replica) settle(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r.shipper.Await(ctx)
	require.NoError(t, ctx.Err(), "%v", r.shipper.Err())
}

// raw is a connection of the test.
func raw(t testing.TB, url string) *sql.DB {
	t.Helper()
	driver, name := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, name = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// requireWhole holds the table to the heads of the replicas: each event is there once, as its file has it.
func requireWhole(t testing.TB, url string, replicas ...*replica) {
	t.Helper()
	db := raw(t, url)
	total := uint64(0)
	for _, r := range replicas {
		for _, head := range r.Heads() {
			total += head.Seq
			rows, err := db.Query("SELECT seq, hash, prev, event FROM audit_events WHERE replica = '" + head.Replica + "' AND log = '" + head.Log + "' ORDER BY seq")
			require.NoError(t, err)
			prev, next := "", uint64(1)
			for rows.Next() {
				var seq uint64
				var hash, before, event string
				require.NoError(t, rows.Scan(&seq, &hash, &before, &event))
				require.Equal(t, next, seq)
				require.Equal(t, prev, before)
				require.Equal(t, audit.Hash([]byte(event)), hash)
				prev, next = hash, next+1
			}
			require.NoError(t, errorsOf(rows))
			require.Equal(t, head.Seq, next-1)
			require.Equal(t, head.Hash, prev)
		}
	}
	var n uint64
	require.NoError(t, db.QueryRow("SELECT count(*) FROM audit_events").Scan(&n))
	require.Equal(t, total, n)
}

func errorsOf(rows *sql.Rows) error {
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}

// Two replicas start on one database at once, and each stores its events once, over rotations and restarts.
func TestShipper_storesEveryEventOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db, dirs := open(t, url), []string{t.TempDir(), t.TempDir()}
		var last []*replica
		for range 2 {
			var writers sync.WaitGroup
			last = nil
			for _, dir := range dirs {
				r := start(t, db, dir)
				last = append(last, r)
				writers.Go(func() { r.write(t, 200) })
			}
			writers.Wait()
			for range 260 {
				require.NoError(t, last[0].Write(padded()))
			}
			for _, r := range last {
				r.settle(t)
				r.stop()
			}
		}
		files, err := audit.Files(last[0].options.File)
		require.NoError(t, err)
		require.Greater(t, len(files), 2)
		requireWhole(t, url, last...)
		var facts, object string
		require.NoError(t, raw(t, url).QueryRow("SELECT facts, actor_kind FROM audit_events WHERE action = 'POST /api/orgs' LIMIT 1").Scan(&facts, &object))
		require.JSONEq(t, `{"role":"admin","slug":"\\u0000"}`, facts)
	})
}

// A stop stores what was written before it.
func TestShipper_storesTheRestAtItsStop(t *testing.T) {
	t.Parallel()
	url := records.DefaultURL(t.TempDir())
	r := start(t, open(t, url), t.TempDir())
	r.write(t, 1)
	r.settle(t)
	r.write(t, 5)
	r.stop()
	requireWhole(t, url, r)
}

// Whatever happens to the database, nobody who writes an event waits for it, and everything is there once
// afterwards.
func TestShipper_survivesItsDatabase(t *testing.T) {
	t.Parallel()
	pgtest.Missing(t)
	own, err := pgtest.Start(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, own.Stop()) }()
	url := own.URL("postgres")
	r := start(t, open(t, url), t.TempDir())
	r.write(t, 10)
	r.settle(t)
	do := func(statements ...string) func() {
		return func() {
			for _, statement := range statements {
				require.NoError(t, own.SQL(context.Background(), "postgres", statement))
			}
		}
	}
	const disconnect = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kedge-hub'"
	for _, c := range []struct {
		name         string
		breaks, ends func()
	}{
		{"killed", own.Kill, func() { require.NoError(t, own.Resume(context.Background())) }},
		{"read-only", do("ALTER DATABASE postgres SET default_transaction_read_only = on", disconnect), do("BEGIN READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only; COMMIT")},
		{"its table dropped", do("DROP TABLE audit_events"), func() {}},
		{"its tables dropped", do("DROP TABLE audit_events, audit_heads, goose_db_version"), func() {}},
		{"its table made anew before anybody noticed", do("TRUNCATE audit_events"), func() {}},
		{"its connections ended", do(disconnect), func() {}},
		{"full", do(fault("RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'")...), do(faultBody("NULL"))},
		{"slow", do(fault("PERFORM pg_sleep(2)")...), do(faultBody("NULL"))},
	} {
		c.breaks()
		slowest := time.Duration(0)
		for range 20 {
			began := time.Now()
			r.write(t, 10)
			slowest = max(slowest, time.Since(began))
		}
		require.Less(t, slowest, 5*time.Second, c.name)
		c.ends()
		r.settle(t)
		requireWhole(t, url, r)
	}
	require.Equal(t, 0.0, metric(t, r.registry, "kedge_records_lost_total"))
}

// fault are statements after which each statement that writes audit events does something first.
func fault(does string) []string {
	statements := []string{faultBody(does)}
	for _, table := range []string{"audit_events", "audit_heads"} {
		statements = append(statements, "CREATE OR REPLACE TRIGGER fault BEFORE INSERT OR UPDATE ON "+table+" FOR EACH STATEMENT EXECUTE FUNCTION fault()")
	}
	return statements
}

// faultBody changes what it does, without a lock on the tables.
func faultBody(does string) string {
	return "CREATE OR REPLACE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " + does + "; RETURN NULL; END $$"
}

func metric(t testing.TB, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal(name + " is not there")
	return 0
}

// While a table is locked the lag grows, and the readiness details say why nothing is stored.
func TestShipper_saysHowFarBehindItIs(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)
	r := start(t, open(t, url), t.TempDir())
	r.write(t, 1)
	r.settle(t)
	require.Eventually(t, func() bool { return r.shipper.Err() == nil && r.shipper.Lag() == 0 }, time.Minute, 10*time.Millisecond)
	tx, err := raw(t, url).Begin()
	require.NoError(t, err)
	_, err = tx.Exec("LOCK TABLE audit_events IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	r.write(t, 1)
	require.Eventually(t, func() bool { return metric(t, r.registry, "kedge_records_lag_seconds") > 0.5 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, tx.Rollback())
	r.settle(t)
	require.Eventually(t, func() bool { return r.shipper.Lag() == 0 }, time.Minute, 10*time.Millisecond)
	requireWhole(t, url, r)
}

// A disk that is nearly full is left to those who free it.
func TestShipper_waitsForRoom(t *testing.T) {
	t.Parallel()
	url := records.DefaultURL(t.TempDir())
	r := start(t, open(t, url), t.TempDir())
	r.write(t, 1)
	r.settle(t)
	full := errors.New("the disk is nearly full")
	r.full.Store(&full)
	r.write(t, 1)
	require.Eventually(t, func() bool { return errors.Is(r.shipper.Err(), full) && r.shipper.Lag() > 0 }, time.Minute, 10*time.Millisecond)
	r.full.Store(nil)
	r.settle(t)
	requireWhole(t, url, r)
}

// Files that rotation removed before the database had them are counted, and the rest is stored.
func TestShipper_countsWhatItLost(t *testing.T) {
	t.Parallel()
	url, dir := records.DefaultURL(t.TempDir()), t.TempDir()
	few := func(o *audit.Options) { o.MaxBackups = 1 }
	r := start(t, open(t, url), dir, few)
	r.write(t, 1)
	r.settle(t)
	r.stop()
	l, closing, err := audit.Open(t.Context(), r.options, prometheus.NewRegistry())
	require.NoError(t, err)
	for range 900 {
		require.NoError(t, l.Write(padded()))
	}
	closing()
	r = start(t, open(t, url), dir, few)
	r.settle(t)
	var kept float64
	require.NoError(t, raw(t, url).QueryRow("SELECT count(*) FROM audit_events WHERE log = 'rights'").Scan(&kept))
	lost := metric(t, r.registry, "kedge_records_lost_total")
	require.Positive(t, lost)
	require.Equal(t, float64(r.Heads()[0].Seq), kept+lost)
}

// What is older than the retention goes, and an anchor says where the rest begins.
func TestShipper_removesWhatIsTooOld(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db, dir := open(t, url), t.TempDir()
		r := start(t, db, dir)
		r.write(t, 300)
		r.settle(t)
		r.stop()
		own := raw(t, url)
		_, err := own.Exec("UPDATE audit_events SET time = '2020-01-01T00:00:00.000000Z' WHERE seq <= 200")
		require.NoError(t, err)
		r = start(t, db, dir)
		var left, anchors int
		require.Eventually(t, func() bool {
			return own.QueryRow("SELECT count(*) FROM audit_events").Scan(&left) == nil && left == 200
		}, time.Minute, 50*time.Millisecond)
		require.NoError(t, own.QueryRow("SELECT count(*) FROM audit_anchors WHERE seq = 200").Scan(&anchors))
		require.Equal(t, 2, anchors)
		require.Equal(t, 400.0, metric(t, r.registry, "kedge_records_removed_total"))
		r.write(t, 1)
		r.settle(t)
		r.stop()
		// The files still have what was removed. It does not come back.
		r = start(t, db, dir)
		r.write(t, 1)
		r.settle(t)
		require.NoError(t, own.QueryRow("SELECT count(*) FROM audit_events").Scan(&left))
		require.Equal(t, 204, left)
	})
}

// The clock of a hub was wrong for a while. What it wrote meanwhile is in the middle of its chain.
func TestShipper_removesNothingInTheMiddleOfAChain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db, dir := open(t, url), t.TempDir()
		r := start(t, db, dir)
		r.write(t, 30)
		r.settle(t)
		r.stop()
		own := raw(t, url)
		_, err := own.Exec("UPDATE audit_events SET time = '2020-01-01T00:00:00.000000Z' WHERE seq <= 5 OR seq BETWEEN 11 AND 20")
		require.NoError(t, err)
		// A clock that was ahead keeps nothing back.
		_, err = own.Exec("UPDATE audit_events SET time = '2099-01-01T00:00:00.000000Z' WHERE seq <= 2 OR seq = 4 OR seq = 6")
		require.NoError(t, err)
		r = start(t, db, dir)
		require.Eventually(t, func() bool { return metric(t, r.registry, "kedge_records_removed_total") >= 10 }, time.Minute, 50*time.Millisecond)
		r.write(t, 1)
		r.settle(t)
		r.stop()
		var left int
		require.NoError(t, own.QueryRow("SELECT count(*) FROM audit_events").Scan(&left))
		require.Equal(t, 2*(31-5), left)
		v := audit.NewVerifier()
		heads, err := db.Verify(t.Context(), v)
		require.NoError(t, err)
		require.Empty(t, v.Done(heads...))
	})
}

func TestOptions_keepThePasswordToThemselves(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://kedge:hush@host:x/records", "mysql://kedge:hush@host/", "sqlite:hush", "hush", "postgres://kedge:hush@host/records?sslmode=hush"} {
		_, err := records.Open(records.Options{URL: url})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hush", url)
	}
	db, err := records.Open(records.Options{URL: "postgres://kedge:hush@127.0.0.1:1/records"})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	err = db.Migrate(t.Context())
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hush")
}

// Whatever is done to a row of the table is found, in each kind of database.
func TestVerify_findsWhatWasDoneToARow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db := open(t, url)
		r := start(t, db, t.TempDir())
		r.write(t, 10)
		r.settle(t)
		r.stop()
		own := raw(t, url)
		verify := func() string {
			v := audit.NewVerifier()
			heads, err := db.Verify(t.Context(), v)
			require.NoError(t, err)
			text := ""
			for _, f := range v.Done(heads...) {
				text += f.String() + "\n"
			}
			return text
		}
		require.Empty(t, verify())
		const at = " WHERE log = 'rights' AND seq = 5"
		for name, c := range map[string]struct {
			do   []string
			want string
		}{
			"cut":                   {[]string{"DELETE FROM audit_events" + at}, "rights, event 5: is missing"},
			"a column changed":      {[]string{"UPDATE audit_events SET actor = 'mallory'" + at}, "rights, event 5: was changed: a column"},
			"its facts changed":     {[]string{`UPDATE audit_events SET facts = '{"role":"member"}'` + at}, "rights, event 5: was changed: a column"},
			"its line changed":      {[]string{"UPDATE audit_events SET event = replace(event, '\"o\"', '\"p\"')" + at}, "rights, event 5: was changed: its line"},
			"line and hash changed": {[]string{"UPDATE audit_events SET hash = prev" + at}, "rights, event 5: was changed: its line"},
			"doubled": {[]string{"INSERT INTO audit_events SELECT replica, log, 11, time, id, stage, action, actor_kind, actor, org, workspace, object, outsider, code, facts, event, prev, hash FROM audit_events" + at},
				"rights, event 11: was changed: its columns name another event"},
			"swapped": {[]string{"UPDATE audit_events SET seq = 99" + at, "UPDATE audit_events SET seq = 5 WHERE log = 'rights' AND seq = 6", "UPDATE audit_events SET seq = 6 WHERE seq = 99"},
				"rights, event 5: was changed: its columns name another event"},
			"the end cut":      {[]string{"DELETE FROM audit_events WHERE log = 'rights' AND seq > 7"}, "rights, event 8: is missing, with all up to 10: the end"},
			"the beginning":    {[]string{"DELETE FROM audit_events WHERE log = 'rights' AND seq < 3"}, "rights, event 1: is missing, with all up to 2"},
			"the end of a log": {[]string{"DELETE FROM audit_events WHERE log = 'writes'"}, "writes, event 10: is missing, with the whole chain"},
		} {
			tables := []string{"DROP TABLE IF EXISTS kept", "CREATE TABLE kept AS SELECT * FROM audit_events"}
			for _, statement := range append(tables, c.do...) {
				_, err := own.Exec(statement)
				require.NoError(t, err, name)
			}
			require.Contains(t, verify(), c.want, name)
			for _, statement := range []string{"DELETE FROM audit_events", "INSERT INTO audit_events SELECT * FROM kept"} {
				_, err := own.Exec(statement)
				require.NoError(t, err, name)
			}
			require.Empty(t, verify(), name)
		}
		// What the retention removed is no finding.
		_, err := own.Exec("INSERT INTO audit_anchors SELECT replica, log, seq, hash FROM audit_events" + at)
		require.NoError(t, err)
		_, err = own.Exec("DELETE FROM audit_events WHERE log = 'rights' AND seq <= 5")
		require.NoError(t, err)
		require.Empty(t, verify())
	})
}
