package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/log"
)

type m = map[string]any

// lines parses the written events and removes what Write sets.
func lines(t *testing.T, written string) []m {
	t.Helper()
	var events []m
	for line := range strings.Lines(written) {
		var event m
		require.NoError(t, json.Unmarshal([]byte(line), &event), line)
		text, ok := event["time"].(string)
		require.True(t, ok, line)
		at, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		require.Equal(t, time.UTC, at.Location())
		require.Equal(t, audit.APIVersion, event["apiVersion"])
		for _, field := range []string{"time", "apiVersion", "log", "replica", "seq", "prev"} {
			delete(event, field)
		}
		events = append(events, event)
	}
	return events
}

func TestEvent_isOneLineOfJSON(t *testing.T) {
	t.Parallel()
	yes, ends := true, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	many := make([]string, 20000)
	person, hub := audit.Actor{Kind: audit.ActorPerson, User: "alice", Issuer: "static"}, audit.Actor{Kind: audit.ActorHub}
	asPerson, asHub := m{"kind": "person", "user": "alice", "issuer": "static"}, m{"kind": "hub"}
	for name, c := range map[string]struct {
		event audit.Event
		want  m
	}{
		"an intent": {
			audit.Event{ID: "r", ClientRequest: "c", Stage: audit.StageIntent, Actor: person, Peer: "192.0.2.7", Action: "PATCH /api/orgs/{org}", Org: "o", Workspace: "w", Object: "bob", Facts: &audit.Facts{Role: "member", Sudo: &yes, Roles: &[]string{}}},
			m{"id": "r", "clientRequest": "c", "stage": "intent", "actor": asPerson, "peer": "192.0.2.7", "action": "PATCH /api/orgs/{org}", "org": "o", "workspace": "w", "object": "bob", "facts": m{"role": "member", "sudo": true, "roles": []any{}}},
		},
		"an outcome": {
			audit.Event{ID: "r", Stage: audit.StageOutcome, Actor: audit.Actor{Kind: audit.ActorBot, Bot: "b", Token: "t"}, Action: "kubernetes create", Code: 201, Resource: &audit.Resource{Verb: "create", Resource: "configmaps", Namespace: "default"}},
			m{"id": "r", "stage": "outcome", "actor": m{"kind": "bot", "bot": "b", "token": "t"}, "action": "kubernetes create", "code": 201.0, "resource": m{"verb": "create", "resource": "configmaps", "namespace": "default"}},
		},
		"a token":             {audit.Event{Actor: person, Facts: &audit.Facts{Token: "t", TokenExpiresAt: &ends}}, m{"id": "", "stage": "", "action": "", "actor": asPerson, "facts": m{"token": "t", "tokenExpiresAt": "2026-03-01T12:00:00Z"}}},
		"a purge":             {audit.Event{ID: "x", Stage: audit.StageOutcome, Actor: hub, Action: "purge", Org: "o", Facts: &audit.Facts{Counts: map[string]int{"memberships": 2}}}, m{"id": "x", "stage": "outcome", "actor": asHub, "action": "purge", "org": "o", "facts": m{"counts": m{"memberships": 2.0}}}},
		"no more than needed": {audit.Event{Actor: hub, Action: "x"}, m{"id": "", "stage": "", "actor": asHub, "action": "x"}},
		"a forged line": {
			audit.Event{Actor: hub, Action: "x", Object: "bob\"}\n{\"actor\":\"mallory\"}\r\n\x00"},
			m{"id": "", "stage": "", "actor": asHub, "action": "x", "object": "bob\"}\n{\"actor\":\"mallory\"}\r\n\x00"},
		},
		"a long path": {
			audit.Event{Actor: hub, Action: "x", Object: strings.Repeat("o", 60000), Resource: &audit.Resource{Verb: "create", Name: strings.Repeat("n", 60000)}},
			m{"id": "", "stage": "", "actor": asHub, "action": "x", "object": strings.Repeat("o", 512), "resource": m{"verb": "create", "name": strings.Repeat("n", 512)}},
		},
		"long facts": {
			audit.Event{Actor: hub, Action: "x", Facts: &audit.Facts{Slug: strings.Repeat("s", 60000), AcceptedClaims: slices.Repeat([]string{strings.Repeat("c", 60000)}, 20), Roles: &many}},
			m{"id": "", "stage": "", "actor": asHub, "action": "x", "facts": m{
				"slug":           strings.Repeat("s", 512),
				"acceptedClaims": append(slices.Repeat([]any{strings.Repeat("c", 512)}, 15), "and 5 more"),
				"roles":          append(slices.Repeat([]any{""}, 2730), "and 17270 more"),
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var written bytes.Buffer
			require.NoError(t, audit.New(t.Context(), &written).Write(c.event))
			require.Equal(t, []m{c.want}, lines(t, written.String()))
		})
	}
}

func TestLog_withoutWriterUsesTheLogger(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	l := audit.New(log.Into(t.Context(), zap.New(core)), nil)
	require.NoError(t, l.Write(audit.Event{Actor: audit.Actor{User: "alice"}, Action: "x", Code: 201}))
	require.Equal(t, 1, logs.Len())
	require.Equal(t, "audit", logs.All()[0].LoggerName)
	require.Equal(t, "x", logs.All()[0].Message)
	event, ok := logs.All()[0].ContextMap()["event"].(audit.Event)
	require.True(t, ok)
	require.Equal(t, "alice", event.Actor.User)
	require.Equal(t, 201, event.Code)
}

// torn writes a line in two parts, as a slow disk may.
type torn struct{ strings.Builder }

func (w *torn) Write(p []byte) (int, error) {
	_, _ = w.Builder.Write(p[:len(p)/2])
	_, _ = w.Builder.Write(p[len(p)/2:])
	return len(p), nil
}

func TestLog_writesWholeLinesConcurrently(t *testing.T) {
	t.Parallel()
	var written torn
	l := audit.New(t.Context(), &written)
	var writers sync.WaitGroup
	for range 16 {
		writers.Go(func() {
			for range 50 {
				if err := l.Write(audit.Event{Action: "x", Object: strings.Repeat("o", 500)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	require.Len(t, lines(t, written.String()), 16*50)
}

// full takes room bytes and then fails as a full disk does.
type full struct {
	bytes.Buffer
	room int
}

func (w *full) Write(p []byte) (int, error) {
	if len(p) <= w.room {
		w.room -= len(p)
		return w.Buffer.Write(p)
	}
	n, _ := w.Buffer.Write(p[:w.room])
	w.room = 0
	return n, syscall.ENOSPC
}

func TestLog_endsALineThatAFullDiskCut(t *testing.T) {
	t.Parallel()
	disk := &full{room: 20}
	l := audit.New(t.Context(), disk)
	require.ErrorIs(t, l.Write(audit.Event{Action: "lost"}), syscall.ENOSPC)
	require.ErrorIs(t, l.Write(audit.Event{Action: "lost too"}), syscall.ENOSPC)
	require.ErrorIs(t, l.Err(), syscall.ENOSPC)
	disk.room = 1000
	require.NoError(t, l.Write(audit.Event{Action: "kept"}))
	require.NoError(t, l.Err())
	cut, rest, ok := strings.Cut(disk.String(), "\n")
	require.True(t, ok)
	require.Len(t, cut, 20)
	require.Len(t, lines(t, rest), 1)
}

// The chain itself has no gap where the log was full: the next event says that something is missing.
func TestLog_saysHowManyEventsAreLost(t *testing.T) {
	t.Parallel()
	disk := &full{}
	l := audit.New(t.Context(), disk)
	for range 2 {
		require.ErrorIs(t, l.Write(audit.Event{Action: "lost"}), syscall.ENOSPC)
	}
	disk.room = 1000
	require.NoError(t, l.Write(audit.Event{Action: "first"}))
	require.NoError(t, l.Write(audit.Event{Action: "second"}))
	written := lines(t, disk.String())
	require.Len(t, written, 2)
	require.EqualValues(t, 2, written[0]["lost"])
	require.NotContains(t, written[1], "lost")
}

// padded returns an event of more than 8 KiB, of which no text is cut.
func padded(action string) audit.Event {
	return audit.Event{Org: "o", Action: action, Facts: &audit.Facts{Fields: slices.Repeat([]string{strings.Repeat("p", 500)}, 16)}}
}

func options(file string) audit.Options { return audit.Options{File: file, MaxSize: 1} }

func TestOpen_appendsToTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.log")
	for range 2 {
		l, closing, err := audit.Open(t.Context(), options(file), prometheus.NewRegistry())
		require.NoError(t, err)
		require.NoError(t, l.Write(audit.Event{Action: "x"}))
		closing()
	}
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, lines(t, string(written)), 2)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	_, _, err = audit.Open(t.Context(), options(filepath.Join(file, "below")), prometheus.NewRegistry())
	require.Error(t, err)
}

func TestOpen_endsALineThatAKillCut(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(file, []byte(`{"apiVersion":`), 0o600))
	l, closing, err := audit.Open(t.Context(), options(file), prometheus.NewRegistry())
	require.NoError(t, err)
	defer closing()
	require.NoError(t, l.Write(audit.Event{Action: "x"}))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(written), "\n")
	require.Len(t, lines(t, rest), 1)
}

func TestOpen_countsWhatAFullDeviceLoses(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	l, closing, err := audit.Open(t.Context(), options("/dev/full"), registry)
	require.NoError(t, err)
	defer closing()
	require.NoError(t, l.Err())
	for range 3 {
		require.ErrorIs(t, l.Write(audit.Event{Action: "x"}), syscall.ENOSPC)
	}
	require.ErrorIs(t, l.Err(), syscall.ENOSPC)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader("# HELP kedge_audit_lost_total Audit events that could not be written.\n# TYPE kedge_audit_lost_total counter\nkedge_audit_lost_total 3\n")))
}

func TestOpen_rotatesTheFile(t *testing.T) {
	t.Parallel()
	dir, long := t.TempDir(), padded("x")
	l, closing, err := audit.Open(t.Context(), audit.Options{File: filepath.Join(dir, "audit.log"), MaxSize: 1, MaxBackups: 1}, prometheus.NewRegistry())
	require.NoError(t, err)
	defer closing()
	for range 350 {
		require.NoError(t, l.Write(long))
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 4, "two of rights with their mark, one of writes")
}

func TestAround_makesNoChangeThatGivesRightsUnaudited(t *testing.T) {
	t.Parallel()
	failed := errors.New("conflict")
	for name, c := range map[string]struct {
		full, reduces bool
		fails         error
		made          bool
		codes         []int
	}{
		"gives":                 {made: true, codes: []int{0, 200}},
		"gives, and fails":      {fails: failed, made: true, codes: []int{0, 500}},
		"gives, on a full disk": {full: true},
		"takes, on a full disk": {full: true, reduces: true, made: true},
		"takes":                 {reduces: true, made: true, codes: []int{0, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := &full{room: 1000}
			if c.full {
				disk.room = 0
			}
			made := false
			err := audit.New(t.Context(), disk).Around(audit.Event{Action: "promote"}, c.reduces, func() error {
				made = true
				return c.fails
			})
			require.Equal(t, c.made, made)
			switch {
			case !c.made:
				require.ErrorIs(t, err, syscall.ENOSPC)
			default:
				require.Equal(t, c.fails, err)
			}
			var codes []int
			for _, e := range lines(t, disk.String()) {
				code, _ := e["code"].(float64)
				codes = append(codes, int(code))
			}
			require.Equal(t, c.codes, codes)
		})
	}
}
