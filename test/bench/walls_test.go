package main

import (
	"bytes"
	"flag"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	require.Zero(t, percentile(nil, 99))
	require.Equal(t, 7*time.Second, percentile([]time.Duration{7 * time.Second}, 99))
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	require.EqualValues(t, 99, percentile(hundred, 99))
	require.EqualValues(t, 50, percentile(hundred, 50))
	require.EqualValues(t, 3, percentile([]time.Duration{3, 2, 1}, 99), "of a few the longest")
}

func TestTicks(t *testing.T) {
	t.Parallel()
	before := parseTicks("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1 2 3 4\n")
	require.Equal(t, ticks{all: 1000, idle: 850}, before)
	after := parseTicks("cpu  160 0 65 820 55 0 0 0 9 9\n")
	require.InDelta(t, 0.75, after.busySince(before), 1e-9)
	require.Zero(t, before.busySince(before))
}

// seen is a neighbour whose requests all took so long.
func seen(took time.Duration) (o observed) {
	for request := range o.took {
		o.took[request] = []time.Duration{took, took}
	}
	return o
}

func TestJudge(t *testing.T) {
	t.Parallel()
	slow := seen(time.Millisecond)
	slow.took[removeMember] = []time.Duration{2500 * time.Microsecond}
	refused := seen(time.Millisecond)
	refused.failures = []string{"GET /api/orgs/x: 503", "GET /api/orgs/x: 429"}
	silent := seen(time.Millisecond)
	silent.took[getOrg] = nil
	for name, c := range map[string]struct {
		beside observed
		want   []string
	}{
		"as alone":       {seen(time.Millisecond), nil},
		"twice":          {seen(2 * time.Millisecond), nil},
		"a slow removal": {slow, []string{"the flood of lists with 2 hubs: REMOVAL takes 2.5 ms, 2.50 times as long"}},
		"refused":        {refused, []string{"2 requests of the neighbour failed with it, the first: GET /api/orgs/x: 503"}},
		"no answer":      {silent, []string{"the neighbour had no answer (GET ORG)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := judge([]wallRow{{replicas: 2, flood: "lists", alone: seen(time.Millisecond), beside: c.beside}})
			if len(c.want) == 0 {
				require.NoError(t, err)
			}
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestPrintWalls(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, printWalls(&out, []wallRow{{
		replicas: 1, flood: "objects",
		sent:  sent{http.StatusCreated: 1000, http.StatusInsufficientStorage: 30, http.StatusTooManyRequests: 4, 0: 2},
		alone: seen(2 * time.Millisecond), beside: seen(3 * time.Millisecond),
		before: footprint{rss: 400, peak: 400, used: 10 << 20, file: 16 << 20},
		after:  footprint{rss: 410, peak: 450, used: 11 << 20, file: 32 << 20},
	}}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	require.Equal(t, []string{
		"1", "objects", "1036", "none:2", "429:4", "507:30",
		"2.0", "→", "3.0", "=", "1.50", "2.0", "→", "3.0", "=", "1.50", "2.0", "→", "3.0", "=", "1.50",
		"0", "→", "0", "400", "→", "410", "(450)", "10.0", "→", "11.0", "(32)",
	}, strings.Fields(lines[1]))
}

func TestParseWalls(t *testing.T) {
	t.Parallel()
	o, err := parseWalls(nil, &bytes.Buffer{})
	require.NoError(t, err)
	require.Equal(t, floodNames(), o.only)
	require.Equal(t, []int{1, 2}, o.replicas)
	require.Contains(t, o.limits, "--workspace-objects=1000")
	o, err = parseWalls([]string{"--only", "bytes,objects", "--seconds", "3", "--replicas", "2", "--limits", ""}, &bytes.Buffer{})
	require.NoError(t, err)
	want := wallsOptions{only: []string{"bytes", "objects"}, lasting: 3 * time.Second, replicas: []int{2}, limits: []string{}}
	require.Equal(t, want, o)
	for _, c := range [][]string{{"--only", "x"}, {"--seconds", "0"}, {"--replicas", "3"}, {"objects"}} {
		_, err := parseWalls(c, &bytes.Buffer{})
		require.Error(t, err, "%v", c)
	}
	var help bytes.Buffer
	_, err = parseWalls([]string{"--help"}, &help)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, name := range floodNames() {
		require.Contains(t, help.String(), "  "+name+" ")
	}
}
