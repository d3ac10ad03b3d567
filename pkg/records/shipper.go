package records

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/log"
)

const (
	// idle is the time after which the shipper looks at the files without a notice.
	idle = time.Second
	// heartbeat is the time after which a replica without events says that it is up to date.
	heartbeat = 10 * time.Second
	// minBackoff and maxBackoff bound the time between two attempts while the database fails.
	minBackoff, maxBackoff = time.Second, 30 * time.Second
	// lastTimeout bounds what a stop still stores.
	lastTimeout = 2 * time.Second
	// columns is the number of values of an event.
	columns = 18
)

// Log is the audit log of this replica. It is implemented by audit.Log.
type Log interface {
	Heads() []audit.Head
	Paths() []string
	Changed() <-chan struct{}
}

// Shipper stores the events of the audit log of this replica, in their order. The files are its queue: nothing
// waits for it, and what it could not store is stored later.
type Shipper struct {
	db        *DB
	log       Log
	retention time.Duration
	room      func() error

	lost, stored, removed prometheus.Counter

	mu sync.Mutex
	// shipped is the last event of each chain that is stored. moved is closed when it changes.
	shipped map[string]position
	moved   chan struct{}
	// oldest is the time of the oldest event that waits, or zero.
	oldest time.Time
	err    error
	// beat is when the database last heard that this replica is up to date, pruned when nothing was too old.
	// size is the number of events that the next transaction may store. Only Run uses them.
	beat, pruned time.Time
	size         int
}

// NewShipper returns a Shipper and registers its metrics. Events are removed after the retention. While room
// returns an error, they wait in the files: a database on the disk of others must not fill it.
func NewShipper(db *DB, l Log, retention time.Duration, room func() error, registry prometheus.Registerer) (*Shipper, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	s := &Shipper{
		db: db, log: l, retention: retention, room: room, shipped: map[string]position{}, moved: make(chan struct{}), size: maxBatch,
		err:     errors.New("the database was not reached yet"),
		lost:    counter("kedge_records_lost_total", "Audit events that were removed from the files of this replica before the database had them."),
		stored:  counter("kedge_records_stored_total", "Audit events of this replica that the database has stored."),
		removed: counter("kedge_records_removed_total", "Audit events that were removed from the database because of their age."),
	}
	lag := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kedge_records_lag_seconds", Help: "Age in seconds of the oldest audit event of this replica that the database does not have; 0 if it has all.",
	}, func() float64 { return s.Lag().Seconds() })
	for _, c := range []prometheus.Collector{s.lost, s.stored, s.removed, lag} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of the records: %w", err)
		}
	}
	return s, nil
}

// Err returns why events cannot be stored at the moment.
func (s *Shipper) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Lag is the age of the oldest event that waits. Where the shipper has not seen it yet, its age counts from the first
// call.
func (s *Shipper) Lag() time.Duration {
	heads := s.log.Heads()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.oldest.IsZero() && s.behind(heads) {
		s.oldest = time.Now()
	}
	if s.oldest.IsZero() {
		return 0
	}
	return max(0, time.Since(s.oldest))
}

// upToDate returns the ID of this replica if the database has all its events, and else nothing.
func (s *Shipper) upToDate() string {
	heads := s.log.Heads()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(heads) == 0 || s.behind(heads) {
		return ""
	}
	return heads[0].Replica
}

// behind reports whether events up to the heads wait. s.mu is held.
func (s *Shipper) behind(heads []audit.Head) bool {
	return slices.ContainsFunc(heads, func(h audit.Head) bool { return s.shipped[h.Log].seq < h.Seq })
}

// Await returns when the events that are in the files now are stored, or when ctx ends.
func (s *Shipper) Await(ctx context.Context) {
	heads := s.log.Heads()
	for {
		s.mu.Lock()
		behind, moved := s.behind(heads), s.moved
		s.mu.Unlock()
		if !behind {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		}
	}
}

// Run stores events until ctx ends, and then what is left, as far as the database takes it within two seconds.
func (s *Shipper) Run(ctx context.Context) {
	began := time.Now()
	within := repeat(ctx, func(ctx context.Context) error {
		began = time.Now()
		return s.session(ctx)
	}, func() bool { return s.Err() == nil || time.Since(began) > time.Minute }, func(err error, wait time.Duration) {
		s.failed(err)
		waiting := []zap.Field{zap.Error(err), zap.Duration("retryAfter", wait)}
		if errors.Is(err, errForked) {
			log.From(ctx).Error("the records database is that of other audit files; events wait in the audit log", waiting...)
		} else {
			log.From(ctx).Warn("the records database cannot be written; events wait in the audit log", waiting...)
		}
	})
	if within {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
		defer cancel()
		s.rest(last)
	}
}

// repeat calls session until ctx ends. After one that failed it calls failed and waits for the time that it tells: longer
// after each one, until one worked. It reports whether ctx ended within a session instead of during a wait.
func repeat(ctx context.Context, session func(context.Context) error, worked func() bool, failed func(error, time.Duration)) bool {
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		err := session(ctx)
		if ctx.Err() != nil {
			return true
		}
		if worked() {
			wait = minBackoff
		}
		failed(err, wait)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// failed notes an error, and that the events after the last stored one wait.
func (s *Shipper) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if s.oldest.IsZero() {
		s.oldest = time.Now()
	}
}

// session stores events until the database fails or ctx ends.
func (s *Shipper) session(ctx context.Context) error {
	if err := s.db.Migrate(ctx); err != nil {
		return err
	}
	followers, closing, err := s.followers(ctx)
	if err != nil {
		return err
	}
	defer closing()
	ticker := time.NewTicker(idle)
	defer ticker.Stop()
	for {
		if err := s.ship(ctx, followers); err != nil {
			return err
		}
		if err := s.prune(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.log.Changed():
		case <-ticker.C:
		}
	}
}

// rest stores what is left at a stop.
func (s *Shipper) rest(ctx context.Context) {
	followers, closing, err := s.followers(ctx)
	if err == nil {
		defer closing()
		err = s.ship(ctx, followers)
	}
	if err != nil {
		log.From(ctx).Warn("the records database does not have the last events yet; the next start stores them", zap.Error(err))
	}
}

func (s *Shipper) moveTo(log string, at position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shipped[log] = at
	close(s.moved)
	s.moved = make(chan struct{})
}

// ship stores all that is in the files.
func (s *Shipper) ship(ctx context.Context, followers map[string]*follower) error {
	asOf := time.Now()
	shipped := false
	for _, head := range s.log.Heads() {
		f := followers[head.Log]
		for {
			batch, lost, err := f.next(s.size)
			if err != nil {
				return err
			}
			if len(batch) == 0 {
				break
			}
			s.mu.Lock()
			if s.oldest.IsZero() {
				s.oldest = batch[0].Event.Time
			}
			s.mu.Unlock()
			if err := s.room(); err != nil {
				return err
			}
			if err := s.store(ctx, batch); err != nil {
				// A slow database takes fewer at a time.
				s.size = max(1, s.size/8)
				return err
			}
			s.size = min(maxBatch, 2*s.size)
			s.lost.Add(float64(lost))
			s.stored.Add(float64(len(batch)))
			s.moveTo(head.Log, f.position)
			shipped = true
		}
	}
	s.mu.Lock()
	s.oldest, s.err = time.Time{}, nil
	s.mu.Unlock()
	if !shipped && asOf.Sub(s.beat) < heartbeat {
		return nil
	}
	s.beat = asOf
	return s.db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, head := range s.log.Heads() {
			if err := s.follows(ctx, tx, head.Replica, head.Log); err != nil {
				return err
			}
			update := s.db.query("UPDATE audit_heads SET as_of = ? WHERE replica = ? AND log = ?")
			if _, err := tx.ExecContext(ctx, update, timeText(asOf), head.Replica, head.Log); err != nil {
				return err
			}
		}
		return nil
	})
}

// store writes events and how far the database is in one transaction. An event that is there already stays, and another
// one of its number is an error.
func (s *Shipper) store(ctx context.Context, batch []record) error {
	return s.db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := s.follows(ctx, tx, batch[0].Event.Replica, batch[0].Event.Log); err != nil {
			return err
		}
		row := "(?" + strings.Repeat(", ?", columns-1) + ")"
		values := make([]any, 0, columns*len(batch))
		for _, r := range batch {
			values = append(values, valuesOf(r)...)
		}
		insert := `INSERT INTO audit_events (replica, log, seq, time, id, stage, action, actor_kind, actor, org, workspace, object, outsider, code, facts, event, prev, hash)
			VALUES ` + row + strings.Repeat(", "+row, len(batch)-1) + " ON CONFLICT DO NOTHING"
		added, err := tx.ExecContext(ctx, s.db.query(insert), values...)
		if err != nil {
			return fmt.Errorf("store audit events: %w", err)
		}
		if n, err := added.RowsAffected(); err != nil || n < int64(len(batch)) {
			if err := errors.Join(err, s.same(ctx, tx, batch)); err != nil {
				return err
			}
		}
		last := batch[len(batch)-1]
		_, err = tx.ExecContext(ctx, s.db.query(`INSERT INTO audit_heads (replica, log, seq, hash, as_of) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (replica, log) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, as_of = excluded.as_of`),
			last.Event.Replica, last.Event.Log, last.Event.Seq, last.Hash, timeText(last.Event.Time))
		return err
	})
}

// valuesOf are the columns of an event. No database takes a NUL, which a client can send.
func valuesOf(r record) []any {
	e := r.Event
	clean := func(text string) string { return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "") }
	object := e.Object
	if e.Resource != nil && object == "" {
		object = e.Resource.Name
	}
	var facts any
	if e.Facts != nil {
		if raw, err := json.Marshal(e.Facts); err == nil {
			facts = withoutNUL(string(raw))
		}
	}
	return []any{
		e.Replica, e.Log, e.Seq, timeText(e.Time), e.ID, string(e.Stage), clean(e.Action), e.Actor.Kind, e.Actor.User + e.Actor.Bot,
		clean(e.Org), clean(e.Workspace), clean(object), e.Outsider, e.Code, facts, r.text, e.Prev, r.Hash,
	}
}

// withoutNUL drops the escapes of NUL from JSON. Those that follow an escaped backslash are text.
func withoutNUL(raw string) string {
	if !strings.Contains(raw, `\u0000`) {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] != '\\':
			b.WriteByte(raw[i])
		case strings.HasPrefix(raw[i:], `\u0000`):
			i += len(`\u0000`) - 1
		default:
			b.WriteString(raw[i : i+2])
			i++
		}
	}
	return b.String()
}
