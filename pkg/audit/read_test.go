package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// newLog returns a log in a file.
func newLog(t testing.TB, change ...func(*audit.Options)) (*audit.Log, string) {
	t.Helper()
	o := options(filepath.Join(t.TempDir(), "audit [1].log"))
	for _, f := range change {
		f(&o)
	}
	l, closing, err := audit.Open(t.Context(), o, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(closing)
	return l, o.File
}

func write(t testing.TB, l *audit.Log, events ...audit.Event) {
	t.Helper()
	for _, e := range events {
		require.NoError(t, l.Write(e))
	}
}

// read returns the objects of all events that q selects, and the number of pages.
func read(t testing.TB, l *audit.Log, q audit.Query) (objects []string, pages int) {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	for {
		events, next, err := l.Read(t.Context(), q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(events), q.Limit)
		for _, e := range events {
			objects = append(objects, e.Object)
		}
		pages++
		if next == nil {
			return objects, pages
		}
		q.After = next
	}
}

func TestRead_filters(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t)
	alice, bob, bot := audit.Actor{User: "alice"}, audit.Actor{User: "bob"}, audit.Actor{Bot: "ci"}
	write(
		t, l,
		audit.Event{Object: "1", Org: "o", Actor: alice, Action: "POST /api/orgs"},
		audit.Event{Object: "2", Org: "o", Actor: bob, Action: "POST /api/orgs/{org}/members", Workspace: "w"},
		audit.Event{Object: "o", Org: "other", Actor: bob, Action: "x"},
		audit.Event{Object: "3", Org: "o", Actor: bob, Action: "x", Outsider: true},
		audit.Event{Object: "4", Org: "o", Actor: bot, Action: "kubernetes create", Workspace: "v"},
		audit.Event{Object: "5", Actor: alice, Action: "login cli"},
	)
	now := time.Now()
	for name, c := range map[string]struct {
		query audit.Query
		want  []string
	}{
		"all":                  {audit.Query{}, []string{"4", "2", "1"}},
		"a person":             {audit.Query{Actor: "bob"}, []string{"2"}},
		"a bot":                {audit.Query{Actor: "ci"}, []string{"4"}},
		"nobody":               {audit.Query{Actor: "c"}, nil},
		"a workspace":          {audit.Query{Workspace: "w"}, []string{"2"}},
		"a part of an action":  {audit.Query{Action: "orgs"}, []string{"2", "1"}},
		"since before":         {audit.Query{Since: now.Add(-time.Hour)}, []string{"4", "2", "1"}},
		"since afterwards":     {audit.Query{Since: now.Add(time.Hour)}, nil},
		"until before":         {audit.Query{Until: now.Add(-time.Hour)}, nil},
		"until afterwards":     {audit.Query{Until: now.Add(time.Hour)}, []string{"4", "2", "1"}},
		"one page for each":    {audit.Query{Limit: 1}, []string{"4", "2", "1"}},
		"as many as there are": {audit.Query{Limit: 3}, []string{"4", "2", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := c.query
			q.Org = "o"
			got, _ := read(t, l, q)
			require.Equal(t, c.want, got)
		})
	}
}

// A reader gets every event once, whatever is written and rotated between two pages.
func TestRead_goesOnAfterARotation(t *testing.T) {
	t.Parallel()
	l, file := newLog(t)
	padding := strings.Repeat("a", 30_000)
	add := func(from, to int) {
		for i := from; i < to; i++ {
			write(t, l, audit.Event{Org: "o", Object: fmt.Sprint(i), Action: padding})
		}
	}
	add(0, 60)
	got, want := []string{}, []string{}
	for i := 59; i >= 0; i-- {
		want = append(want, fmt.Sprint(i))
	}
	q := audit.Query{Org: "o", Limit: 7}
	for n := 60; ; n += 10 {
		events, next, err := l.Read(t.Context(), q)
		require.NoError(t, err)
		for _, e := range events {
			got = append(got, e.Object)
		}
		if q.After = next; next == nil {
			break
		}
		add(n, n+10)
	}
	require.Equal(t, want, got)
	files, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Greater(t, len(files), 3)
	_, _, err = l.Read(t.Context(), audit.Query{Org: "o", Limit: 1, After: &audit.Position{Rights: audit.Place{File: "elsewhere", Offset: 7}}})
	require.ErrorIs(t, err, audit.ErrUnknownPosition)
}

// One request looks at 16 MiB, also if it finds nothing there.
func TestRead_isLimited(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t, func(o *audit.Options) { o.MaxSize = 100 })
	padding := strings.Repeat("a", 100_000)
	write(t, l, audit.Event{Org: "mine", Object: "first"})
	for range 400 {
		write(t, l, audit.Event{Org: "other", Action: padding})
	}
	got, pages := read(t, l, audit.Query{Org: "mine"})
	require.Equal(t, []string{"first"}, got)
	require.Equal(t, 3, pages)
}

// counting counts the readers that are at work at the same time.
type counting struct {
	context.Context
	inside, most *atomic.Int32
}

func (c counting) Err() error {
	if n := c.inside.Add(1); n > c.most.Load() {
		c.most.Store(n)
	}
	for range 100 {
		runtime.Gosched()
	}
	c.inside.Add(-1)
	return c.Context.Err()
}

// What one Read costs is limited, and so is the number of them.
func TestRead_takesTurns(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t)
	write(t, l, audit.Event{Org: "o", Action: strings.Repeat("a", 500_000)})
	var inside, most atomic.Int32
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			if _, _, err := l.Read(counting{t.Context(), &inside, &most}, audit.Query{Org: "o", Limit: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	readers.Wait()
	require.EqualValues(t, 1, most.Load())
}

func TestRead_skipsWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	l, file := newLog(t)
	write(t, l, audit.Event{Org: "o", Object: "before"})
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	for _, text := range []string{`{"org":"o","object":"unversioned"}` + "\n", `{"apiVersion":"audit.kedge.faros.sh/v1alpha1","org":"o","obj` + "\n", "\n\n", strings.Repeat("o", 1<<20) + "\n"} {
		_, err := f.WriteString(text)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	write(t, l, audit.Event{Org: "o", Object: "after"})
	for limit := range 3 {
		got, _ := read(t, l, audit.Query{Org: "o", Limit: limit + 1})
		require.Equal(t, []string{"after", "before"}, got)
	}
}

func TestRead_leavesOtherFilesAlone(t *testing.T) {
	t.Parallel()
	l, file := newLog(t)
	write(t, l, audit.Event{Org: "o", Object: "mine"})
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, object := range map[string]string{"other": "another replica's", "2026-11-21T04-05-01.000": "rotated"} {
		require.NoError(t, os.WriteFile(strings.TrimSuffix(file, ".log")+"-"+name+".log", []byte(strings.Replace(string(raw), "mine", object, 1)), 0o600))
	}
	got, _ := read(t, l, audit.Query{Org: "o"})
	require.Equal(t, []string{"mine", "rotated"}, got)
}

func TestRead_needsAFile(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", audit.Stdout, "/dev/full"} {
		l, closing, err := audit.Open(t.Context(), options(file), prometheus.NewRegistry())
		require.NoError(t, err)
		defer closing()
		_, _, err = l.Read(t.Context(), audit.Query{Org: "o", Limit: 1})
		require.ErrorIs(t, err, audit.ErrNotReadable)
	}
}
