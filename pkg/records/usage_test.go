package records_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

var (
	morning = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	wOfO    = usage.Workspace{Org: "o", UUID: "w"}
	vOfO    = usage.Workspace{Org: "o", UUID: "v"}
	wOfP    = usage.Workspace{Org: "p", UUID: "w"}
	alice   = usage.Caller{ID: "alice"}
	bob     = usage.Caller{ID: "bob"}
	robot   = usage.Caller{Bot: true, ID: "uid"}
)

// process is a hub that counts usage.
type process struct {
	*usage.Counter
	*records.UsageWriter
	full error
}

func newProcess(t *testing.T, db *records.DB, k *clocktesting.FakeClock, replica string, retention time.Duration) *process {
	t.Helper()
	registry, p := prometheus.NewRegistry(), &process{}
	var err error
	p.Counter, err = usage.NewCounter(30*time.Minute, k, registry)
	require.NoError(t, err)
	p.UsageWriter, err = records.NewUsageWriter(db, p.Counter, replica, retention, func() error { return p.full }, registry)
	require.NoError(t, err)
	return p
}

func (p *process) serve(w usage.Workspace, by usage.Caller, class usage.Class, bytes int) {
	r := p.Begin(w, by, class, false)
	r.Out(bytes)
	r.End()
}

func (p *process) store(w usage.Workspace, objects, bytes int64) {
	p.Measured(map[usage.Workspace]usage.Stored{w: {Objects: objects, Bytes: bytes}}, map[string]usage.Size{w.Org: {Members: objects, Workspaces: 2, Entries: 1}})
}

func (p *process) write(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Once(t.Context()))
}

// used returns the items of a day.
func used(t *testing.T, db *records.DB, of func(usage.Span) usage.Query, step usage.Step) []usage.Item {
	t.Helper()
	items, err := records.NewReader(db, nil).Usage(t.Context(), of(usage.Span{From: morning.Truncate(24 * time.Hour), To: morning.Add(24 * time.Hour), Step: step}))
	require.NoError(t, err)
	return items
}

func ofOrg(org string) func(usage.Span) usage.Query {
	return func(s usage.Span) usage.Query { return usage.OfOrg(org, s) }
}

func ofWorkspace(w usage.Workspace) func(usage.Span) usage.Query {
	return func(s usage.Span) usage.Query { return usage.OfWorkspace(w.Org, w.UUID, s) }
}

// Replicas and processes are added up, people are counted once, and nothing of another tenant is in an answer.
func TestUsage_addsUpWhatAllReplicasCount(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db, k := open(t, url), clocktesting.NewFakeClock(morning)
		one, two := newProcess(t, db, k, "ONE", 0), newProcess(t, db, k, "TWO", 0)
		one.serve(wOfO, alice, usage.Read, 10)
		two.serve(wOfO, alice, usage.Write, 20)
		two.serve(wOfO, robot, usage.Watch, 30)
		two.serve(vOfO, bob, usage.Read, 40)
		two.serve(wOfP, bob, usage.Read, 1_000)
		one.store(wOfO, 7, 700)
		one.store(vOfO, 3, 300)
		one.store(wOfP, 9, 900)
		one.write(t)
		two.write(t)
		// The interval goes on, and a second one of the hour follows.
		one.serve(wOfO, alice, usage.Read, 1)
		// Another leader finds less than the first.
		two.store(wOfO, 2, 800)
		one.write(t)
		two.write(t)
		k.Step(30 * time.Minute)
		one.write(t)
		one.serve(wOfO, bob, usage.Read, 100)
		stream := one.Begin(wOfO, bob, usage.Watch, true)
		k.Step(90 * time.Second)
		one.write(t)
		stream.End()

		reads := func(n, writes, watches, out int64, streamed time.Duration) usage.Requests {
			return usage.Requests{Reads: n, Writes: writes, Watches: watches, BytesOut: out, Streamed: streamed}
		}
		inW := usage.Item{From: morning, Stored: usage.Stored{Objects: 7, Bytes: 800}, Requests: reads(3, 1, 2, 161, 90*time.Second), People: 2, Bots: 1}
		inO := usage.Item{
			From: morning, Stored: usage.Stored{Objects: 10, Bytes: 1100}, Requests: reads(4, 1, 2, 201, 90*time.Second), People: 2, Bots: 1,
			Size: usage.Size{Members: 7, Workspaces: 2, Entries: 1},
		}
		require.Equal(t, []usage.Item{inW}, used(t, db, ofWorkspace(wOfO), usage.Hour))
		require.Equal(t, []usage.Item{inO}, used(t, db, ofOrg("o"), usage.Hour))
		require.Empty(t, used(t, db, ofWorkspace(usage.Workspace{Org: "p", UUID: "v"}), usage.Hour), "a Workspace of another Organization")
		require.Empty(t, used(t, db, ofOrg("o' OR 1=1 --"), usage.Hour))
		inO.From = morning.Truncate(24 * time.Hour)
		require.Equal(t, []usage.Item{inO}, used(t, db, ofOrg("o"), usage.Day))
		all, err := records.NewReader(db, nil).UsageOfOrgs(t.Context(), inO.From, morning.Add(24*time.Hour))
		require.NoError(t, err)
		inP := usage.Item{
			From: inO.From, Stored: usage.Stored{Objects: 9, Bytes: 900}, Requests: reads(1, 0, 0, 1000, 0), People: 1,
			Size: usage.Size{Members: 9, Workspaces: 2, Entries: 1},
		}
		require.Equal(t, map[string]*usage.Item{"o": &inO, "p": &inP}, all)
		all, err = records.NewReader(db, nil).UsageOfOrgs(t.Context(), morning.Add(24*time.Hour), morning.Add(48*time.Hour))
		require.NoError(t, err)
		require.Empty(t, all)
		_, err = records.NewReader(db, nil).Usage(t.Context(), usage.Query{})
		require.ErrorContains(t, err, "names no tenant")

		// The view is the contract for those who read the tables.
		var objects, bytes, r, w, watches, out, people, bots int64
		var seconds float64
		require.NoError(t, raw(t, url).QueryRowContext(t.Context(),
			"SELECT objects, bytes, reads, writes, watches, bytes_out, people, bots, stream_seconds FROM usage_hours WHERE org = 'o' AND workspace = 'w'").
			Scan(&objects, &bytes, &r, &w, &watches, &out, &people, &bots, &seconds))
		require.Equal(t, []int64{7, 800, 3, 1, 2, 161, 2, 1}, []int64{objects, bytes, r, w, watches, out, people, bots})
		require.InDelta(t, 90, seconds, 0.001)
	})
}

// What the database did not take, or took without saying so, is there once when it is back.
func TestUsage_isStoredOnceWhateverFails(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db, k := open(t, url), clocktesting.NewFakeClock(morning)
		p := newProcess(t, db, k, "ONE", 0)
		p.serve(wOfO, alice, usage.Read, 10)
		p.full = errors.New("the disk is full")
		require.ErrorContains(t, p.Once(t.Context()), "the disk is full")
		k.Step(time.Hour)
		require.ErrorContains(t, p.Once(t.Context()), "the disk is full")
		p.full = nil
		p.write(t)
		want := used(t, db, ofOrg("o"), usage.Hour)
		require.Len(t, want, 1)
		require.Equal(t, int64(1), want[0].Reads)

		// Somebody drops a table: it is made again, with what is counted from then on.
		_, err := raw(t, url).ExecContext(t.Context(), "DROP VIEW billing_hours")
		require.NoError(t, err)
		_, err = raw(t, url).ExecContext(t.Context(), "DROP VIEW usage_hours")
		require.NoError(t, err)
		_, err = raw(t, url).ExecContext(t.Context(), "DROP TABLE usage_callers")
		require.NoError(t, err)
		p.serve(wOfO, bob, usage.Read, 10)
		p.write(t)
		got := used(t, db, ofOrg("o"), usage.Hour)
		require.Len(t, got, 2)
		require.Equal(t, int64(1), got[1].People)
	})
}

func TestUsage_ofTheLastMomentIsWrittenAtAStop(t *testing.T) {
	t.Parallel()
	db, k := open(t, records.DefaultURL(t.TempDir())), clocktesting.NewFakeClock(morning)
	p := newProcess(t, db, k, "ONE", 0)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	p.serve(wOfO, alice, usage.Read, 0)
	go func() { defer close(done); p.UsageWriter.Run(ctx) }()
	require.Eventually(t, func() bool { return p.Err() == nil }, time.Minute, time.Millisecond)
	p.serve(wOfO, alice, usage.Read, 0)
	cancel()
	<-done
	require.Equal(t, int64(2), used(t, db, ofOrg("o"), usage.Hour)[0].Reads)
	late, err := records.NewReader(db, nil).UsageFreshness(t.Context())
	require.NoError(t, err)
	require.Empty(t, late, "nothing waits for a replica that has stopped")
}

func TestUsage_isRemovedAfterItsRetention(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db := open(t, url)
		before, now := clocktesting.NewFakeClock(time.Now().Add(-50*time.Hour)), clocktesting.NewFakeClock(time.Now())
		for _, k := range []*clocktesting.FakeClock{before, now} {
			p := newProcess(t, db, k, "ONE", 0)
			p.serve(wOfO, alice, usage.Read, 10)
			p.store(wOfO, 7, 700)
			p.write(t)
		}
		p := newProcess(t, db, now, "TWO", 24*time.Hour)
		p.write(t)
		for _, table := range []string{"usage_requests", "usage_callers", "usage_stored", "usage_orgs"} {
			var n int
			require.NoError(t, raw(t, url).QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
			require.Equal(t, 1, n, table)
		}
		fresh, err := records.NewReader(db, nil).UsageFreshness(t.Context())
		require.NoError(t, err)
		require.Len(t, fresh, 2)
	})
}
