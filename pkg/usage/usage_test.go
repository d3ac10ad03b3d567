package usage_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/usage"
)

var (
	start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	home  = usage.Workspace{Org: "o", UUID: "w"}
	alice = usage.Caller{ID: "alice"}
	robot = usage.Caller{Bot: true, ID: "alice"}
)

const many = 1_000_000

func newCounter(t *testing.T) (*usage.Counter, *clocktesting.FakeClock, *prometheus.Registry) {
	t.Helper()
	k, registry := clocktesting.NewFakeClock(start), prometheus.NewRegistry()
	c, err := usage.NewCounter(time.Hour, k, registry)
	require.NoError(t, err)
	return c, k, registry
}

// request is a whole request.
func request(c *usage.Counter, w usage.Workspace, by usage.Caller, class usage.Class, bytes int) {
	r := c.Begin(w, by, class, false)
	r.Out(bytes)
	r.End()
}

// next returns what is to be written, and writes it.
func next(t *testing.T, c *usage.Counter) usage.Batch {
	t.Helper()
	b, _, all := c.Next(many)
	require.True(t, all)
	c.Written(b)
	return b
}

func lost(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

func TestCounter_countsWhatARequestUses(t *testing.T) {
	t.Parallel()
	c, _, _ := newCounter(t)
	request(c, home, alice, usage.Read, 100)
	request(c, home, alice, usage.Write, 20)
	request(c, home, robot, usage.Watch, 3)
	got := next(t, c)
	require.Equal(t, []usage.Of[usage.Requests]{{start, home, usage.Requests{Reads: 1, Writes: 1, Watches: 1, BytesOut: 123}}}, got.Requests)
	require.ElementsMatch(t, []usage.Of[usage.Caller]{{start, home, alice}, {start, home, robot}}, got.Callers)
	require.Empty(t, next(t, c), "the database has everything")

	// A row is the whole count of its interval. A caller is there once.
	request(c, home, alice, usage.Read, 1)
	got = next(t, c)
	require.Equal(t, []usage.Of[usage.Requests]{{start, home, usage.Requests{Reads: 2, Writes: 1, Watches: 1, BytesOut: 124}}}, got.Requests)
	require.Empty(t, got.Callers)

	var off *usage.Counter
	request(off, home, alice, usage.Read, 1)
}

// A stream is in every interval in which it is open, with its bytes and its caller.
func TestCounter_countsStreamsWhileTheyAreOpen(t *testing.T) {
	t.Parallel()
	c, k, _ := newCounter(t)
	k.SetTime(start.Add(50 * time.Minute))
	r := c.Begin(home, alice, usage.Watch, true)
	r.Out(1)
	k.SetTime(start.Add(time.Hour))
	require.Equal(t, []usage.Of[usage.Requests]{{start, home, usage.Requests{Watches: 1, BytesOut: 1, Streamed: 10 * time.Minute}}}, next(t, c).Requests)
	r.Out(2)
	k.SetTime(start.Add(2 * time.Hour))
	got := next(t, c)
	require.Equal(t, []usage.Of[usage.Requests]{{start.Add(time.Hour), home, usage.Requests{BytesOut: 2, Streamed: time.Hour}}}, got.Requests)
	require.Equal(t, []usage.Of[usage.Caller]{{start.Add(time.Hour), home, alice}}, got.Callers)
	k.Step(5 * time.Second)
	r.Out(4)
	r.End()
	require.Equal(t, usage.Requests{BytesOut: 4, Streamed: 5 * time.Second}, next(t, c).Requests[0].Value)
}

func TestCounter_keepsWhatTheDatabaseDoesNotHave(t *testing.T) {
	t.Parallel()
	c, k, registry := newCounter(t)
	request(c, home, alice, usage.Read, 0)
	b, _, _ := c.Next(many)
	require.Len(t, b.Requests, 1)
	// This request is not in the batch.
	request(c, home, alice, usage.Read, 0)
	again, _, _ := c.Next(many)
	c.Written(b)
	require.Equal(t, int64(2), again.Requests[0].Value.Reads)
	k.Step(time.Hour)
	got, _, _ := c.Next(many)
	require.Equal(t, again.Requests, got.Requests, "an interval that is over waits")
	request(c, home, alice, usage.Write, 0)
	got = next(t, c)
	require.Equal(t, []time.Time{start, start.Add(time.Hour)}, []time.Time{got.Requests[0].Starts, got.Requests[1].Starts})

	// A clock that was set back begins no interval again.
	k.SetTime(start)
	request(c, home, alice, usage.Write, 0)
	require.Equal(t, []usage.Of[usage.Requests]{{start.Add(time.Hour), home, usage.Requests{Writes: 2}}}, next(t, c).Requests)
	require.Zero(t, lost(t, registry))
}

func TestCounter_writesInPieces(t *testing.T) {
	t.Parallel()
	c, _, _ := newCounter(t)
	for i := range 25 {
		request(c, usage.Workspace{Org: "o", UUID: fmt.Sprint(i)}, alice, usage.Read, 0)
	}
	found := map[string]bool{}
	for _, want := range []int{10, 10, 5} {
		b, _, all := c.Next(10)
		require.Len(t, b.Requests, want)
		require.Equal(t, want < 10, all)
		for _, r := range b.Requests {
			found[r.UUID] = true
		}
		c.Written(b)
	}
	require.Len(t, found, 25)
}

// What is measured is the most of an interval.
func TestCounter_keepsTheMostOfWhatIsMeasured(t *testing.T) {
	t.Parallel()
	c, k, _ := newCounter(t)
	measure := func(objects, bytes, members int64) {
		c.Measured(map[usage.Workspace]usage.Stored{home: {objects, bytes}}, map[string]usage.Size{"o": {Members: members}})
	}
	measure(0, 0, 0)
	require.Empty(t, next(t, c), "nothing has no row")
	measure(5, 100, 2)
	measure(3, 200, 1)
	got := next(t, c)
	require.Equal(t, []usage.Of[usage.Stored]{{start, home, usage.Stored{Objects: 5, Bytes: 200}}}, got.Stored)
	require.Equal(t, []usage.Of[usage.Size]{{start, usage.Workspace{Org: "o"}, usage.Size{Members: 2}}}, got.Sizes)
	measure(3, 200, 1)
	require.Empty(t, next(t, c))
	k.Step(time.Hour)
	require.Empty(t, next(t, c))
	measure(3, 200, 1)
	require.Equal(t, usage.Stored{Objects: 3, Bytes: 200}, next(t, c).Stored[0].Value)
}

// One tenant cannot fill the memory of a replica, nor the database, with callers.
func TestCounter_boundsTheCallersOfAWorkspace(t *testing.T) {
	t.Parallel()
	c, _, registry := newCounter(t)
	for round := range 3 {
		for i := range 900 {
			request(c, home, usage.Caller{ID: fmt.Sprint(round, i)}, usage.Read, 0)
		}
		request(c, usage.Workspace{Org: "p", UUID: "w"}, usage.Caller{ID: fmt.Sprint(round)}, usage.Read, 0)
		b, _, _ := c.Next(many)
		require.LessOrEqual(t, len(b.Callers), 1003)
	}
	b := next(t, c)
	require.Len(t, b.Callers, 1003)
	require.Equal(t, int64(2700), b.Requests[0].Value.Reads, "every request counts")
	require.Zero(t, lost(t, registry))
}

// While the database is down, memory is bounded, and what is given up is counted.
func TestCounter_givesUpTheOldestIntervalAtItsLimit(t *testing.T) {
	t.Parallel()
	c, k, registry := newCounter(t)
	const workspaces = 80_000
	measured := map[usage.Workspace]usage.Stored{}
	for i := range workspaces {
		measured[usage.Workspace{Org: "o", UUID: fmt.Sprint(i)}] = usage.Stored{Objects: 1}
	}
	for range 3 {
		c.Measured(measured, nil)
		k.Step(time.Hour)
		_, _, all := c.Next(1)
		require.False(t, all)
	}
	require.EqualValues(t, workspaces, lost(t, registry))
	b := next(t, c)
	require.Len(t, b.Stored, 2*workspaces)
	for _, r := range b.Stored {
		require.NotEqual(t, start, r.Starts)
	}
}

func TestCounter_losesNothingBetweenCollections(t *testing.T) {
	t.Parallel()
	c, k, _ := newCounter(t)
	const people, each = 8, 500
	var running sync.WaitGroup
	for i := range people {
		running.Go(func() {
			for n := range each {
				r := c.Begin(home, usage.Caller{ID: fmt.Sprint(i)}, usage.Read, n%2 == 0)
				r.Out(3)
				r.End()
			}
		})
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	sum := map[time.Time]usage.Requests{}
	for over := false; ; k.Step(time.Hour) {
		for _, r := range next(t, c).Requests {
			sum[r.Starts] = r.Value
		}
		if over {
			break
		}
		select {
		case <-done:
			over = true
		default:
		}
	}
	var all usage.Requests
	for _, r := range sum {
		all.Reads += r.Reads
		all.BytesOut += r.BytesOut
	}
	require.Equal(t, []int64{people * each, 3 * people * each}, []int64{all.Reads, all.BytesOut})
}

func BenchmarkRequest(b *testing.B) {
	c, err := usage.NewCounter(time.Hour, clocktesting.NewFakeClock(start), prometheus.NewRegistry())
	require.NoError(b, err)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			request(c, home, alice, usage.Read, 100)
		}
	})
}
