package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/stretchr/testify/require"
)

// rest is BigQuery's REST for one table.
type rest struct {
	// answers are given in their order; without one the rows are stored.
	answers []string
	// rows are those stored, by insert ID; ids have all that were sent, in their order.
	rows map[string]map[string]any
	ids  []string
}

func (b *rest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Kind string
		Rows []struct {
			InsertID string         `json:"insertId"`
			JSON     map[string]any `json:"json"`
		}
	}
	if r.Method != http.MethodPost || r.URL.Path != "/bigquery/v2/projects/acme-1/datasets/billing/tables/hours/insertAll" ||
		json.NewDecoder(r.Body).Decode(&request) != nil || request.Kind != "bigquery#tableDataInsertAllRequest" {
		http.Error(w, `{"error":{"message":"bad request"}}`, http.StatusBadRequest)
		return
	}
	for _, row := range request.Rows {
		b.ids = append(b.ids, row.InsertID)
	}
	if len(b.answers) > 0 {
		answer := b.answers[0]
		b.answers = b.answers[1:]
		code := 0
		if _, err := fmt.Sscanf(answer, "%d", &code); err == nil {
			w.WriteHeader(code)
			answer = answer[len("200 "):]
		}
		_, _ = io.WriteString(w, answer)
		return
	}
	for _, row := range request.Rows {
		b.rows[row.InsertID] = row.JSON
	}
	_, _ = io.WriteString(w, `{"kind":"bigquery#tableDataInsertAllResponse"}`)
}

func newFollower(t *testing.T, answers ...string) (*follower, *rest, sqlmock.Sqlmock) {
	t.Helper()
	b := &rest{answers: answers, rows: map[string]map[string]any{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	db, table, err := sqlmock.New()
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	name, err := parseTable("acme-1.billing.hours")
	require.NoError(t, err)
	return &follower{
		db: db, from: `"finance"."hours"`, position: filepath.Join(t.TempDir(), "position"), every: time.Minute,
		sink: &bigQuery{client: server.Client(), endpoint: server.URL + "/", table: name}, log: slog.New(slog.DiscardHandler),
	}, b, table
}

// id is the ID of the row of an hour.
func id(hour int) string { return fmt.Sprintf("2026-03-01T%02d:00:00Z/w1", hour) }

// expect expects that the rows behind one are read, and gives those of the hours up to one.
func expect(table sqlmock.Sqlmock, after string, from, to int) {
	rows := sqlmock.NewRows(strings.Split("event_id,starts,ends,org_uuid,org_name,workspace_uuid,workspace_name,path,cost_center,labels,phase,objects,bytes,requests,writes,people,bots", ","))
	for h := from; h < to; h++ {
		at := time.Date(2026, 3, 1, h, 0, 0, 0, time.FixedZone("", 3600))
		rows.AddRow(id(h), at, at.Add(time.Hour), "o", "ACME", "w1", "Web", "root:w1", "4711", `{"team": "web"}`, "Active", h, int64(1)<<60, 3, 2, 1, 0)
	}
	table.ExpectQuery(`SELECT event_id, .* FROM "finance"."hours" WHERE event_id COLLATE "C" > \$1 ORDER BY event_id COLLATE "C" LIMIT \$2`).
		WithArgs(after, 500).WillReturnRows(rows)
}

// Rows come once and in their order, and a restart goes on behind the last one.
func TestFollower_goesOnBehindTheLastRow(t *testing.T) {
	t.Parallel()
	f, b, table := newFollower(t)
	expect(table, "", 0, 3)
	expect(table, id(2), 3, 4)
	expect(table, id(3), 0, 0)
	n, err := f.copy(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, n)
	again := &follower{db: f.db, from: f.from, position: f.position, sink: f.sink, log: f.log}
	expect(table, id(3), 4, 5)
	expect(table, id(4), 0, 0)
	n, err = again.copy(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, table.ExpectationsWereMet())
	require.Equal(t, []string{id(0), id(1), id(2), id(3), id(4)}, b.ids)
	require.Equal(t, map[string]any{
		"event_id": id(1), "starts": "2026-03-01T00:00:00Z", "ends": "2026-03-01T01:00:00Z", "org_uuid": "o", "org_name": "ACME", "workspace_uuid": "w1",
		"workspace_name": "Web", "path": "root:w1", "cost_center": "4711", "labels": `{"team": "web"}`, "phase": "Active",
		// A number of JSON has no 64 bits.
		"objects": "1", "bytes": "1152921504606846976", "requests": "3", "writes": "2", "people": "1", "bots": "0",
	}, b.rows[id(1)])
	left, err := filepath.Glob(f.position + "*")
	require.NoError(t, err)
	require.Equal(t, []string{f.position}, left, "no other file is left")
}

// What BigQuery does not take is tried again under the same insert IDs, and the message says what helps.
func TestFollower_triesAgainWhatFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, wants string }{
		"no table":       {`404 {"error":{"message":"Not found: Table hours"}}`, "this one would do: CREATE TABLE `acme-1.billing.hours` (event_id STRING NOT NULL"},
		"not allowed":    {`403 {"error":{"message":"Access Denied"}}`, "Access Denied); give the account bigquery.tables.updateData"},
		"unavailable":    {`503 nothing`, "503 Service Unavailable"},
		"no JSON":        {`200 <html>`, "is no JSON"},
		"no reason":      {`200 {"insertErrors":[{"index":0,"errors":[{"reason":"stopped"}]}]}`, "does not say why"},
		"another column": {`200 {"insertErrors":[{"index":0,"errors":[{"reason":"stopped"}]},{"index":1,"errors":[{"reason":"invalid","location":"bots","message":"no such field"}]}]}`, id(1) + " (invalid: bots no such field)"},
		"another index":  {`200 {"insertErrors":[{"index":9,"errors":[{"reason":"invalid"}]}]}`, "does not say why"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, b, table := newFollower(t, c.answer)
			expect(table, "", 0, 2)
			_, err := f.copy(t.Context())
			require.ErrorContains(t, err, c.wants)
			require.NoFileExists(t, f.position)
			expect(table, "", 0, 2)
			expect(table, id(1), 0, 0)
			n, err := f.copy(t.Context())
			require.NoError(t, err)
			require.Equal(t, 2, n)
			require.Equal(t, []string{id(0), id(1), id(0), id(1)}, b.ids)
			require.NoError(t, table.ExpectationsWereMet())
		})
	}
}

// A database that fails is tried again, until the program is stopped.
func TestFollower_survivesItsDatabase(t *testing.T) {
	t.Parallel()
	f, b, table := newFollower(t)
	table.ExpectQuery("SELECT").WillReturnError(errors.New("connection lost"))
	expect(table, "", 0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	table.ExpectQuery("SELECT").WillReturnError(errors.New("connection lost"))
	done := make(chan error)
	go func() { done <- f.run(ctx) }()
	require.Eventually(t, func() bool { _, err := os.Stat(f.position); return err == nil }, time.Minute, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	require.Equal(t, []string{id(0)}, b.ids)
}

// A file that has no ID would copy everything once more.
func TestFollower_refusesAPositionThatIsNone(t *testing.T) {
	t.Parallel()
	f, b, _ := newFollower(t)
	for _, content := range []string{"", "{}", `{"eventID":" "}`, "x"} {
		require.NoError(t, os.WriteFile(f.position, []byte(content), 0o600))
		_, err := f.copy(t.Context())
		require.ErrorContains(t, err, "is no position", content)
	}
	require.Empty(t, b.ids)
}

func TestRun_namesTheFlagThatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(key, []byte("hush"), 0o600))
	for _, c := range []struct {
		args  []string
		wants string
	}{
		{nil, "is required"},
		{[]string{"--billing-table=a.b.c"}, "--billing-table"},
		{[]string{"--bigquery-table=a.b"}, "--bigquery-table: must be PROJECT.DATASET.TABLE"},
		{[]string{"--bigquery-table=a.b.c/d"}, "--bigquery-table: must be PROJECT.DATASET.TABLE"},
		{[]string{"--every=1ms"}, "--every"},
		{[]string{"--database=postgres://u:hush@h:x/n"}, "--database: is no URL of a PostgreSQL"},
		{[]string{"--credentials-file=" + key}, "--credentials-file: "},
		{[]string{"--credentials-file=" + key + "x"}, "--credentials-file: "},
	} {
		args := []string{"--database=postgres://u@127.0.0.1:1/n", "--billing-table=hours", "--bigquery-table=p.d.t", "--position-file=" + filepath.Join(dir, "position")}
		if c.args == nil {
			args = nil
		}
		err := run(t.Context(), append(args, c.args...))
		require.ErrorContains(t, err, c.wants)
		require.NotContains(t, err.Error(), "hush")
	}
}
