package audit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/log"
)

// lines parses the written events and removes their times.
func lines(t *testing.T, written string) []map[string]any {
	t.Helper()
	var events []map[string]any
	for line := range strings.Lines(written) {
		var event map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &event), line)
		text, ok := event["time"].(string)
		require.True(t, ok, line)
		at, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		require.Equal(t, time.UTC, at.Location())
		delete(event, "time")
		events = append(events, event)
	}
	return events
}

func TestEvent_isOneLineOfJSON(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	for name, c := range map[string]struct {
		event audit.Event
		want  m
	}{
		"a request": {
			audit.Event{Actor: "alice", Action: "PATCH /api/orgs/{org}", Org: "o", Workspace: "w", Object: "bob", Code: 409, Request: "r", ClientRequest: "c"},
			m{"actor": "alice", "action": "PATCH /api/orgs/{org}", "org": "o", "workspace": "w", "object": "bob", "code": 409.0, "request": "r", "clientRequest": "c"},
		},
		"a login": {
			audit.Event{Actor: "alice", Action: "login cli", Code: 303, Request: "r", Peer: "192.0.2.7"},
			m{"actor": "alice", "action": "login cli", "code": 303.0, "request": "r", "peer": "192.0.2.7"},
		},
		"a purge":             {audit.Event{Actor: "kedge-hub", Action: "purge", Org: "o", Counts: map[string]int{"memberships": 2}}, m{"actor": "kedge-hub", "action": "purge", "org": "o", "counts": m{"memberships": 2.0}}},
		"a purge of nothing":  {audit.Event{Actor: "kedge-hub", Action: "purge", Counts: map[string]int{}}, m{"actor": "kedge-hub", "action": "purge", "counts": m{}}},
		"no more than needed": {audit.Event{Actor: "alice", Action: "x"}, m{"actor": "alice", "action": "x"}},
		"a forged line": {
			audit.Event{Actor: "alice", Action: "x", Object: "bob\"}\n{\"actor\":\"mallory\"}\r\n\x00"},
			m{"actor": "alice", "action": "x", "object": "bob\"}\n{\"actor\":\"mallory\"}\r\n\x00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var written bytes.Buffer
			audit.New(t.Context(), &written).Write(c.event)
			require.Equal(t, []m{c.want}, lines(t, written.String()))
		})
	}
}

func TestLog_withoutWriterUsesTheLogger(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	audit.New(log.Into(t.Context(), zap.New(core)), nil).Write(audit.Event{Actor: "alice", Action: "x", Code: 201})
	require.Equal(t, 1, logs.Len())
	require.Equal(t, "audit", logs.All()[0].LoggerName)
	require.Equal(t, "x", logs.All()[0].Message)
	require.Equal(t, map[string]any{"actor": "alice", "code": int64(201)}, logs.All()[0].ContextMap())
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
				l.Write(audit.Event{Actor: "alice", Action: "x", Object: strings.Repeat("o", 500)})
			}
		})
	}
	writers.Wait()
	require.Len(t, lines(t, written.String()), 16*50)
}

func TestOpen_appendsToTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.log")
	for range 2 {
		l, closing, err := audit.Open(t.Context(), file)
		require.NoError(t, err)
		l.Write(audit.Event{Actor: "alice", Action: "x"})
		closing()
	}
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, lines(t, string(written)), 2)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	_, _, err = audit.Open(t.Context(), filepath.Join(file, "below"))
	require.Error(t, err)
}
