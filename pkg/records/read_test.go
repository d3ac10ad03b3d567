package records_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/records"
)

// say writes events of a person in an Organization, with their places in the list as objects.
func (r *replica) say(t testing.TB, events ...audit.Event) {
	t.Helper()
	for i, e := range events {
		e.Stage = audit.StageOutcome
		if e.Object == "" {
			e.Object = fmt.Sprint(i)
		}
		require.NoError(t, r.Write(e))
	}
	r.settle(t)
}

// padded returns an event of more than 8 KiB, with which a file is soon full.
func padded() audit.Event {
	return audit.Event{Action: "x", Facts: &audit.Facts{Fields: slices.Repeat([]string{strings.Repeat("p", 500)}, 16)}}
}

// objects reads all pages.
func objects(t testing.TB, r *records.Reader, q audit.Query) (all []string, pages int) {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	for {
		page, err := r.Events(t.Context(), q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Events), q.Limit)
		for _, e := range page.Events {
			all = append(all, e.Object)
		}
		pages++
		if page.Next == nil {
			return all, pages
		}
		// It is read back as a client sends it.
		after, ok := audit.ParsePosition(page.Next.String())
		require.True(t, ok, page.Next)
		q.After = &after
	}
}

func TestReader_showsNothingOfOtherTenants(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db := open(t, url)
		r := start(t, db, t.TempDir())
		// The columns of an event have no NUL: that must not make it one of the Organization.
		r.say(t, audit.Event{Org: "o", Action: "a", Workspace: "w"}, audit.Event{Org: "p", Action: "a", Workspace: "w"}, audit.Event{Org: "o\x00", Action: "a", Workspace: "w"},
			audit.Event{Org: "o", Action: "a", Workspace: "w", Outsider: true}, audit.Event{Org: "o", Action: "kubernetes a"}, audit.Event{Action: "a", Workspace: "w"},
			audit.Event{Org: "o", Action: "a", Workspace: "w\x00"})
		reader := records.NewReader(db, r.shipper)
		for name, c := range map[string]struct {
			query audit.Query
			want  []string
		}{
			"an Organization":               {audit.OfOrg("o", audit.Filter{}), []string{"6", "4", "0"}},
			"a Workspace":                   {audit.OfWorkspace("o", "w", audit.Filter{}), []string{"0"}},
			"one of another Organization":   {audit.OfWorkspace("q", "w", audit.Filter{}), nil},
			"with a filter":                 {audit.OfOrg("p", audit.Filter{Workspace: "w", Action: "a"}), []string{"1"}},
			"a Workspace, by a filter":      {audit.OfOrg("o", audit.Filter{Workspace: "w"}), []string{"0"}},
			"the hub":                       {audit.OfPlatform("", audit.Filter{}), []string{"6", "5", "4", "3", "2", "1", "0"}},
			"an Organization, of the hub":   {audit.OfPlatform("o", audit.Filter{}), []string{"6", "4", "3", "0"}},
			"a Workspace, of the hub":       {audit.OfPlatform("", audit.Filter{Workspace: "w"}), []string{"5", "3", "2", "1", "0"}},
			"the hub, with a filter":        {audit.OfPlatform("", audit.Filter{Action: "kubernetes"}), []string{"4"}},
			"another one than that of both": {audit.OfWorkspace("o", "w", audit.Filter{Workspace: "x"}), nil},
		} {
			got, _ := objects(t, reader, c.query)
			require.Equal(t, c.want, got, name)
		}
		_, err := reader.Events(t.Context(), audit.Query{Limit: 1})
		require.ErrorContains(t, err, "names no tenant")
		_, err = reader.Events(t.Context(), audit.OfWorkspace("", "w", audit.Filter{}))
		require.ErrorContains(t, err, "names no tenant")
	})
}

// Whatever a client sends is compared as a text: it is no SQL, no pattern and no placeholder.
func TestReader_takesNothingForSQL(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db := open(t, url)
		r := start(t, db, t.TempDir())
		person, bot := audit.Actor{Kind: audit.ActorPerson, User: "alice"}, audit.Actor{Kind: audit.ActorBot, Bot: "ci"}
		r.say(t, audit.Event{Org: "o", Action: "POST /api/orgs/{org}/members", Actor: person, Code: 201, Workspace: "w"},
			audit.Event{Org: "o", Action: "kubernetes create", Actor: bot, Code: 403, Workspace: "w"},
			audit.Event{Org: "o", Action: "100% or _1_ ? of $1 'x' \\", Actor: person, Code: 499},
			audit.Event{Org: "p", Action: "POST /api/orgs/{org}/members", Actor: person, Code: 500})
		reader := records.NewReader(db, r.shipper)
		now := time.Now()
		for name, c := range map[string]struct {
			filter audit.Filter
			want   []string
		}{
			"all":                   {audit.Filter{}, []string{"2", "1", "0"}},
			"a person":              {audit.Filter{Actor: "alice"}, []string{"2", "0"}},
			"a bot":                 {audit.Filter{Actor: "ci"}, []string{"1"}},
			"an object":             {audit.Filter{Object: "1"}, []string{"1"}},
			"a Workspace":           {audit.Filter{Workspace: "w"}, []string{"1", "0"}},
			"several":               {audit.Filter{Workspace: "w", Actor: "alice", Object: "0", Action: "members", MinCode: 201, MaxCode: 201}, []string{"0"}},
			"several, none":         {audit.Filter{Workspace: "w", Actor: "ci", Object: "0"}, nil},
			"a part of an action":   {audit.Filter{Action: "orgs"}, []string{"0"}},
			"another case":          {audit.Filter{Action: "ORGS"}, nil},
			"a code":                {audit.Filter{MinCode: 403, MaxCode: 403}, []string{"1"}},
			"a class of codes":      {audit.Filter{MinCode: 400, MaxCode: 499}, []string{"2", "1"}},
			"since then":            {audit.Filter{Since: now.Add(-time.Hour), Until: now.Add(time.Hour)}, []string{"2", "1", "0"}},
			"since later":           {audit.Filter{Since: now.Add(time.Hour)}, nil},
			"until then":            {audit.Filter{Until: now.Add(-time.Hour)}, nil},
			"the end of all times":  {audit.Filter{Since: time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}, []string{"2", "1", "0"}},
			"a wildcard of LIKE":    {audit.Filter{Action: "%"}, []string{"2"}},
			"another one":           {audit.Filter{Action: "_"}, []string{"2"}},
			"one of GLOB":           {audit.Filter{Action: "*"}, nil},
			"one of regexp":         {audit.Filter{Action: ".*"}, nil},
			"a quote":               {audit.Filter{Action: "'"}, []string{"2"}},
			"a backslash":           {audit.Filter{Action: `\`}, []string{"2"}},
			"a placeholder":         {audit.Filter{Action: "?"}, []string{"2"}},
			"a numbered one":        {audit.Filter{Action: "$1"}, []string{"2"}},
			"a pattern of an actor": {audit.Filter{Actor: "ali%"}, nil},
			"an or":                 {audit.Filter{Actor: "x' OR '1'='1"}, nil},
			"an or in an action":    {audit.Filter{Action: "x') > 0 OR (1 = 1) --"}, nil},
			"a union":               {audit.Filter{Object: "' UNION SELECT * FROM audit_events --"}, nil},
			"a statement":           {audit.Filter{Object: "'; DROP TABLE audit_events; --"}, nil},
			"a statement in a code": {audit.Filter{Workspace: "w'; DELETE FROM audit_events; --"}, nil},
		} {
			got, _ := objects(t, reader, audit.OfOrg("o", c.filter))
			require.Equal(t, c.want, got, name)
		}
	})
}

// Pages have every event once, in the order of their times, over all replicas, also while more are written.
func TestReader_goesOnWhereAPageEnded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db := open(t, url)
		one, two := start(t, db, t.TempDir()), start(t, db, t.TempDir())
		var want []string
		for i := range 20 {
			r, e := one, audit.Event{Org: "o", Action: "a", Object: fmt.Sprint(i)}
			if i%3 == 0 {
				r = two
			}
			if i%2 == 0 {
				e.Action = "kubernetes create"
			}
			require.NoError(t, r.Write(e))
			want = append([]string{e.Object}, want...)
		}
		one.settle(t)
		two.settle(t)
		reader := records.NewReader(db, one.shipper)
		for limit := 1; limit <= 21; limit += 4 {
			q := audit.OfOrg("o", audit.Filter{})
			q.Limit = limit
			got, pages := objects(t, reader, q)
			require.Equal(t, want, got)
			require.Equal(t, (len(want)+limit-1)/limit, pages)
			q.Filter = audit.Filter{Action: "create"}
			filtered, _ := objects(t, reader, q)
			require.Len(t, filtered, 10)
		}
		q := audit.OfOrg("o", audit.Filter{})
		q.Limit = 5
		first, err := reader.Events(t.Context(), q)
		require.NoError(t, err)
		two.say(t, audit.Event{Org: "o", Action: "a", Object: "new"})
		q.After = first.Next
		rest, _ := objects(t, reader, q)
		require.Equal(t, want[5:], rest)
		// Events of the same time have an order, too.
		_, err = raw(t, url).Exec("UPDATE audit_events SET time = '2026-01-01T00:00:00.000000Z'")
		require.NoError(t, err)
		q.After = nil
		all, _ := objects(t, reader, q)
		require.ElementsMatch(t, append(want, "new"), all)
	})
}

// fill stores n events of an Organization, of times that no retention reaches. The last one is the newest. Each thousandth one is that of bob.
func fill(t testing.TB, url string, n int) {
	t.Helper()
	text := func(number string) string { return "CAST(" + number + " AS text)" }
	at, wrong := "strftime('%Y-%m-%dT%H:%M:%S.000000Z', 4100000000 + i, 'unixepoch')", "0"
	if !strings.HasPrefix(url, "sqlite:") {
		at, wrong = "to_timestamp(4100000000 + i)", "false"
	}
	_, err := raw(t, url).Exec(`WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < ` + fmt.Sprint(n) + `)
		INSERT INTO audit_events SELECT 'R', 'writes', i, ` + at + `, 'id', 'outcome', CASE WHEN i % 1000 = 0 THEN 'POST /api/orgs' ELSE 'kubernetes create' END, 'person',
			CASE WHEN i % 1000 = 0 THEN 'bob' ELSE 'alice' END, 'o', CASE WHEN i % 1000 = 0 THEN 'w' ELSE 'v' END, ` + text("i") + `, ` + wrong + `, 201, NULL,
			'{"apiVersion":"` + audit.APIVersion + `","org":"o","workspace":"' || CASE WHEN i % 1000 = 0 THEN 'w' ELSE 'v' END || '","object":"' || ` + text("i") + ` || '"}', '', '' FROM numbers`)
	require.NoError(t, err)
}

// A filter that selects little looks at a limited number of events for each page, and still finds all.
func TestReader_looksAtALimitedNumber(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db := open(t, url)
		require.NoError(t, db.Migrate(t.Context()))
		fill(t, url, 12_000)
		reader := records.NewReader(db, start(t, db, t.TempDir()).shipper)
		for name, f := range map[string]audit.Filter{"an action": {Action: "orgs"}, "a second column": {Workspace: "w", Actor: "bob"}} {
			got, pages := objects(t, reader, audit.OfOrg("o", f))
			require.Len(t, got, 12, name)
			require.Equal(t, "12000", got[0], name)
			require.LessOrEqual(t, pages, 3, name)
		}
		got, pages := objects(t, reader, audit.OfOrg("o", audit.Filter{Action: "nothing"}))
		require.Empty(t, got)
		require.Equal(t, 3, pages)
		page, err := reader.Events(t.Context(), func() audit.Query {
			q := audit.OfOrg("o", audit.Filter{Actor: "alice", Object: "1"})
			q.Limit = 10
			return q
		}())
		require.NoError(t, err)
		require.Len(t, page.Events, 1)
		require.Nil(t, page.Next)
	})
}

func TestReader_saysHowFarBehindReplicasAre(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		db := open(t, url)
		one, two := start(t, db, t.TempDir()), start(t, db, t.TempDir())
		one.say(t, audit.Event{Org: "o", Action: "a"})
		two.say(t, audit.Event{Org: "o", Action: "a"})
		two.stop()
		own := raw(t, url)
		text := func(age time.Duration) string {
			return time.Now().Add(-age).UTC().Format("'2006-01-02T15:04:05.000000Z'")
		}
		for _, statement := range []string{
			"UPDATE audit_heads SET as_of = " + text(time.Hour) + " WHERE replica = '" + two.Heads()[0].Replica + "'",
			"INSERT INTO audit_heads VALUES ('GONE', 'rights', 1, '', " + text(30*24*time.Hour) + ")",
		} {
			_, err := own.Exec(statement)
			require.NoError(t, err)
		}
		reader := records.NewReader(db, one.shipper)
		all, err := reader.Freshness(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, two.Heads()[0].Replica, all[0].Replica)
		require.WithinDuration(t, time.Now().Add(-time.Hour), all[0].AsOf, time.Minute)
		require.Equal(t, one.Heads()[0].Replica, all[1].Replica)
		require.WithinDuration(t, time.Now(), all[1].AsOf, time.Minute)
		// What is not stored yet is waited for, and no longer than the caller waits.
		full := fmt.Errorf("full")
		one.full.Store(&full)
		one.write(t, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		reader.Await(ctx)
		require.Error(t, ctx.Err())
		one.full.Store(nil)
		reader.Await(t.Context())
		got, _ := objects(t, reader, audit.OfOrg("o", audit.Filter{}))
		require.Len(t, got, 4)
	})
}

func TestReader_ofADatabaseThatIsDownIsUnavailable(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)
	db := open(t, url)
	r := start(t, db, t.TempDir())
	r.say(t, audit.Event{Org: "o", Action: "a"})
	reader := records.NewReader(db, r.shipper)
	_, err := raw(t, url).Exec("ALTER TABLE audit_events RENAME TO gone")
	require.NoError(t, err)
	q := audit.OfOrg("o", audit.Filter{Action: "a"})
	q.Limit = 1
	_, err = reader.Events(t.Context(), q)
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = reader.Freshness(ctx)
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
}

// BenchmarkReader reads first pages of a million events.
func BenchmarkReader(b *testing.B) {
	for kind, url := range map[string]string{"SQLite": records.DefaultURL(b.TempDir()), "PostgreSQL": newPostgres(b)} {
		db := open(b, url)
		require.NoError(b, db.Migrate(b.Context()))
		fill(b, url, 1_000_000)
		// PostgreSQL does it by itself.
		_, err := raw(b, url).Exec("ANALYZE audit_events")
		require.NoError(b, err)
		reader := records.NewReader(db, start(b, db, b.TempDir()).shipper)
		for name, q := range map[string]audit.Query{
			"all": audit.OfOrg("o", audit.Filter{}), "workspace": audit.OfWorkspace("o", "w", audit.Filter{}), "actor": audit.OfOrg("o", audit.Filter{Actor: "bob"}),
			"object": audit.OfOrg("o", audit.Filter{Object: "500"}), "action": audit.OfOrg("o", audit.Filter{Action: "orgs"}),
			"several": audit.OfOrg("o", audit.Filter{Action: "orgs", Workspace: "w", Actor: "alice", MinCode: 400, MaxCode: 499}),
		} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				q.Limit = 100
				for b.Loop() {
					_, err := reader.Events(b.Context(), q)
					require.NoError(b, err)
				}
			})
		}
	}
}
