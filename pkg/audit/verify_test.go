package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// verify walks the files of both chains.
func verify(t testing.TB, file string, heads ...audit.Head) (findings []string) {
	t.Helper()
	v := audit.NewVerifier()
	for _, path := range []string{file, audit.Options{File: file}.WritesFile()} {
		files, err := audit.Files(path)
		require.NoError(t, err)
		for _, f := range files {
			require.NoError(t, v.File(f))
		}
	}
	for _, f := range v.Done(heads...) {
		findings = append(findings, f.String())
	}
	return findings
}

// chained returns a closed log with n events of rights and n writes, and its heads.
func chained(t testing.TB, n int) (file string, heads []audit.Head) {
	t.Helper()
	file = audit.DefaultFile(t.TempDir())
	l, closing, err := audit.Open(t.Context(), options(file), prometheus.NewRegistry())
	require.NoError(t, err)
	defer closing()
	for i := range n {
		write(t, l, audit.Event{Org: "o", Object: strconv.Itoa(i), Action: "POST /api/orgs"}, audit.Event{Org: "o", Object: strconv.Itoa(i), Action: "kubernetes create"})
	}
	return file, l.Heads()
}

func write(t testing.TB, l *audit.Log, events ...audit.Event) {
	t.Helper()
	for _, e := range events {
		require.NoError(t, l.Write(e))
	}
}

// Whatever is done to a line of a file is found, in both chains, at its place.
func TestVerify_findsWhatWasDoneToALine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(lines []string) []string
		want   string
	}{
		"cut":                     {func(l []string) []string { return slices.Delete(l, 4, 5) }, "event 5: is missing"},
		"several cut":             {func(l []string) []string { return slices.Delete(l, 2, 7) }, "event 3: is missing, with all up to 7"},
		"changed":                 {func(l []string) []string { l[4] = strings.Replace(l[4], `"o"`, `"p"`, 1); return l }, "event 5: was changed"},
		"changed into no event":   {func(l []string) []string { l[4] = "{}\n"; return l }, "event 5: is missing"},
		"a part of it cut":        {func(l []string) []string { l[4] = l[4][:60] + "\n"; return l }, "event 5: is missing"},
		"doubled":                 {func(l []string) []string { return slices.Insert(l, 5, l[4]) }, "event 5: stands behind event 5"},
		"swapped":                 {func(l []string) []string { l[4], l[5] = l[5], l[4]; return l }, "event 5: stands behind event 6"},
		"moved to the end":        {func(l []string) []string { return append(slices.Delete(slices.Clone(l), 4, 5), l[4]) }, "event 5: stands behind event 10"},
		"inserted":                {func(l []string) []string { return slices.Insert(l, 5, `{"object":"forged"}`+"\n") }, "is no event of a chain"},
		"inserted as an event":    {func(l []string) []string { return slices.Insert(l, 5, strings.Replace(l[4], `"o"`, `"p"`, 1)) }, "event 5: stands behind event 5"},
		"the beginning cut":       {func(l []string) []string { return l[3:] }, "event 1: is missing, with all up to 3"},
		"the end cut":             {func(l []string) []string { return l[:7] }, "event 8: is missing, with all up to 10: the end of the chain was cut off"},
		"the last changed":        {func(l []string) []string { l[9] = strings.Replace(l[9], `"o"`, `"p"`, 1); return l }, "event 10: was changed: it is not the one that was recorded"},
		"all cut":                 {func([]string) []string { return nil }, "event 10: is missing, with the whole chain"},
		"nothing":                 {func(l []string) []string { return l }, ""},
		"a part that a kill left": {func(l []string) []string { return append(l, l[4][:60]) }, ""},
		"a part, and then a line": {func(l []string) []string { return slices.Insert(l, 5, l[5][:60]+"\n") }, ""},
		"an end that a kill left": {func(l []string) []string { l[9] = strings.TrimSuffix(l[9], "\n"); return l }, ""},
		"an empty line":           {func(l []string) []string { return slices.Insert(l, 5, "\n") }, ""},
	} {
		for _, log := range []string{audit.Rights, audit.Writes} {
			t.Run(name+" in "+log, func(t *testing.T) {
				t.Parallel()
				file, heads := chained(t, 10)
				path := filepath.Join(filepath.Dir(file), log+".jsonl")
				raw, err := os.ReadFile(path)
				require.NoError(t, err)
				changed := c.change(slices.Collect(strings.Lines(string(raw))))
				require.NoError(t, os.WriteFile(path, []byte(strings.Join(changed, "")), 0o600))
				findings := verify(t, file, heads...)
				if c.want == "" {
					require.Empty(t, findings)
					return
				}
				require.NotEmpty(t, findings)
				require.Contains(t, strings.Join(findings, "\n"), c.want)
				require.Contains(t, strings.Join(findings, "\n"), log)
			})
		}
	}
}

// A chain goes on over restarts and rotations. What the log itself removed is no finding; what somebody
// else removed is one.
func TestVerify_followsRotations(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.log")
	var heads []audit.Head
	for range 3 {
		l, closing, err := audit.Open(t.Context(), audit.Options{File: file, MaxSize: 1, MaxBackups: 2}, prometheus.NewRegistry())
		require.NoError(t, err)
		for range 250 {
			write(t, l, padded("x"))
		}
		heads = l.Heads()
		closing()
	}
	require.Equal(t, heads[0].Replica, heads[1].Replica)
	require.Greater(t, heads[0].Seq, uint64(750))
	require.Empty(t, verify(t, file, heads...))
	files, err := audit.Files(file)
	require.NoError(t, err)
	require.Len(t, files, 3)
	require.NoError(t, os.Remove(files[1]))
	require.Contains(t, strings.Join(verify(t, file), "\n"), "is missing, with all up to")
	require.NoError(t, os.Remove(files[0]))
	require.Contains(t, strings.Join(verify(t, file), "\n"), "no rotation removed them")
}

// A file that is copied back over a newer one is found by what was recorded.
func TestVerify_findsFork(t *testing.T) {
	t.Parallel()
	file, _ := chained(t, 5)
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	heads := func() []audit.Head {
		l, closing, err := audit.Open(t.Context(), options(file), prometheus.NewRegistry())
		require.NoError(t, err)
		defer closing()
		write(t, l, audit.Event{Action: "x"})
		return l.Heads()
	}
	recorded := heads()
	require.Empty(t, verify(t, file, recorded...))
	require.NoError(t, os.WriteFile(file, before, 0o600))
	heads()
	require.Contains(t, strings.Join(verify(t, file, recorded...), "\n"), "event 6: was changed: it is not the one that was recorded")
}

func TestOpen_refusesTheFilesOfTwoReplicas(t *testing.T) {
	t.Parallel()
	one, _ := chained(t, 1)
	two, _ := chained(t, 1)
	raw, err := os.ReadFile(audit.Options{File: two}.WritesFile())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(audit.Options{File: one}.WritesFile(), raw, 0o600))
	_, _, err = audit.Open(t.Context(), options(one), prometheus.NewRegistry())
	require.ErrorContains(t, err, "two replicas")
}

func TestBudget_countsTheRest(t *testing.T) {
	t.Parallel()
	var written bytes.Buffer
	l, clock := audit.New(t.Context(), &written), clocktesting.NewFakeClock(time.Unix(1_000, 0))
	b := audit.NewBudget(3, clock, l)
	take := func(org, user string, outsider bool, resource string) bool {
		return b.Take(audit.Event{Org: org, Outsider: outsider, Actor: audit.Actor{User: user}, Resource: &audit.Resource{Verb: "create", Group: "example.org", Resource: resource}})
	}
	for i := range 300 {
		require.Equal(t, i < 3, take("o", "alice", false, "r"+strconv.Itoa(i%100)))
	}
	require.True(t, take("neighbour", "bob", false, "r"), "each Org has its own")
	for i := range 5 {
		require.Equal(t, i < 3, take("neighbour", "mallory", true, "r"), "an outsider spends nothing of the Org's")
	}
	require.True(t, take("neighbour", "bob", false, "r"))
	require.True(t, b.Take(audit.Event{Org: "o", Action: "refuse"}), "what is no proxied write is not counted")
	require.Empty(t, written.String())
	clock.Step(time.Minute)
	require.True(t, take("o", "alice", false, "r"))
	events := lines(t, written.String())
	require.Len(t, events, 2)
	for _, e := range events {
		require.Equal(t, "kubernetes writes", e["action"])
		counts := e["facts"].(m)["counts"].(m)
		if e["org"] == "o" {
			require.Equal(t, 297.0, e["suppressed"])
			require.Len(t, counts, 65)
			require.Equal(t, 3.0, counts["create r3.example.org"])
			require.Positive(t, counts["other"])
			continue
		}
		require.Equal(t, 2.0, e["suppressed"])
		require.Equal(t, true, e["outsider"])
		require.Equal(t, "mallory", e["object"])
	}
}

// On a full disk no write passes by being counted only.
func TestBudget_asksTheLogWhileItIsFull(t *testing.T) {
	t.Parallel()
	l := audit.New(t.Context(), &full{room: 0})
	b := audit.NewBudget(1, clocktesting.NewFakeClock(time.Unix(1_000, 0)), l)
	e := audit.Event{Org: "o", Resource: &audit.Resource{Verb: "create"}}
	require.True(t, b.Take(e))
	require.False(t, b.Take(e))
	require.Error(t, l.Write(e))
	require.True(t, b.Take(e))
}
