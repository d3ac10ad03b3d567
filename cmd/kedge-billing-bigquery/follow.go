package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// maxRows is the number of rows of a request, as BigQuery recommends.
	maxRows = 500
	// minBackoff and maxBackoff bound the time between two attempts while something fails.
	minBackoff, maxBackoff = time.Second, 5 * time.Minute
	// queryTimeout bounds a query of the table, and requestTimeout a request to Google.
	queryTimeout, requestTimeout = 30 * time.Second, 30 * time.Second
)

// row is a row of the table, in the form that BigQuery takes.
type row struct {
	EventID       string    `json:"event_id"`
	Starts        time.Time `json:"starts"`
	Ends          time.Time `json:"ends"`
	OrgUUID       string    `json:"org_uuid"`
	OrgName       string    `json:"org_name"`
	WorkspaceUUID string    `json:"workspace_uuid"`
	WorkspaceName string    `json:"workspace_name"`
	Path          string    `json:"path"`
	CostCenter    string    `json:"cost_center"`
	Labels        string    `json:"labels"`
	Phase         string    `json:"phase"`
	Objects       int64     `json:"objects,string"`
	Bytes         int64     `json:"bytes,string"`
	Requests      int64     `json:"requests,string"`
	Writes        int64     `json:"writes,string"`
	People        int64     `json:"people,string"`
	Bots          int64     `json:"bots,string"`
}

// sink takes all rows or none.
type sink interface {
	insert(ctx context.Context, rows []row) error
}

// follower copies a table to a sink.
type follower struct {
	db *sql.DB
	// from is the table in SQL.
	from string
	// position is the file with the ID of the last row that the sink took.
	position string
	every    time.Duration
	sink     sink
	log      *slog.Logger
}

// run copies until ctx ends. What fails is tried again.
func (f *follower) run(ctx context.Context) error {
	backoff := minBackoff
	for {
		n, err := f.copy(ctx)
		if ctx.Err() != nil {
			return nil
		}
		wait := f.every
		if err != nil {
			if n > 0 {
				backoff = minBackoff
			}
			wait, backoff = backoff, min(2*backoff, maxBackoff)
			f.log.Error("rows cannot be copied; they are tried again", "error", err.Error(), "retryAfter", wait.String())
		} else {
			backoff = minBackoff
		}
		if n > 0 {
			f.log.Info("rows were copied", "rows", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// copy copies all rows behind the position, in their order, and returns their number.
func (f *follower) copy(ctx context.Context) (n int, err error) {
	after, err := f.read()
	if err != nil {
		return n, err
	}
	for {
		rows, err := f.next(ctx, after)
		if err != nil || len(rows) == 0 {
			return n, err
		}
		if err := f.sink.insert(ctx, rows); err != nil {
			return n, err
		}
		after = rows[len(rows)-1].EventID
		if err := f.write(after); err != nil {
			return n, err
		}
		n += len(rows)
	}
}

// next returns the rows behind one. The collation is that of the key of the table.
func (f *follower) next(ctx context.Context, after string) (all []row, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	rows, err := f.db.QueryContext(ctx, `SELECT event_id, starts, ends, org_uuid, org_name, workspace_uuid, workspace_name, path, cost_center,
		labels::text, phase, objects, bytes, requests, writes, people, bots
		FROM `+f.from+` WHERE event_id COLLATE "C" > $1 ORDER BY event_id COLLATE "C" LIMIT $2`, after, maxRows) //nolint:gosec // from is in quotes
	if err != nil {
		return nil, fmt.Errorf("read the billing table: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.EventID, &r.Starts, &r.Ends, &r.OrgUUID, &r.OrgName, &r.WorkspaceUUID, &r.WorkspaceName, &r.Path, &r.CostCenter,
			&r.Labels, &r.Phase, &r.Objects, &r.Bytes, &r.Requests, &r.Writes, &r.People, &r.Bots); err != nil {
			return nil, fmt.Errorf("read the billing table: %w", err)
		}
		r.Starts, r.Ends = r.Starts.UTC(), r.Ends.UTC()
		all = append(all, r)
	}
	return all, rows.Err()
}

// position is the content of the file.
type position struct {
	EventID string `json:"eventID"`
}

// read returns the ID of the last row that the sink took. It is empty before the first one.
func (f *follower) read() (string, error) {
	raw, err := os.ReadFile(f.position)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the position: %w", err)
	}
	var p position
	// An empty ID would copy everything once more.
	if err := json.Unmarshal(raw, &p); err != nil || strings.TrimSpace(p.EventID) == "" {
		return "", fmt.Errorf("%s is no position; write {\"eventID\": ID} into it, with the ID of the last row that BigQuery has", f.position)
	}
	return p.EventID, nil
}

// write replaces the file.
func (f *follower) write(eventID string) error {
	raw, err := json.Marshal(position{eventID})
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(f.position), filepath.Base(f.position)+".*")
	if err != nil {
		return fmt.Errorf("write the position: %w", err)
	}
	_, err = next.Write(append(raw, '\n'))
	if err = errors.Join(err, next.Sync(), next.Close()); err == nil {
		err = os.Rename(next.Name(), f.position)
	}
	if err != nil {
		return fmt.Errorf("write the position: %w", errors.Join(err, os.Remove(next.Name())))
	}
	return nil
}
