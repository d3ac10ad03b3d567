package records

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// maxPending is the number of changes that wait in memory, beside what a comparison found. With more of them the present is
// compared again later.
const maxPending = 100_000

// history keeps what things are in a table: a row for each thing and each time during which it was the same. It runs on
// the leader.
type history[K, V comparable] struct {
	db    *DB
	table historyTable[K, V]
	clock clock.PassiveClock
	room  func() error
	wake  chan struct{}

	mu sync.Mutex
	// known is what the rows without an end have after the pending changes. It is nil until the database was read.
	known map[K]V
	// seen says of the rows that were not compared yet when each was last seen, in a table that ends what ended unseen then.
	seen map[K]time.Time
	// compared says that the present was compared with what is known.
	compared bool
	// pending are changes that the database does not have, in their order.
	pending []change[K, V]
	// most is the number of changes that wait beside those of a comparison, and limit the number with those that wait.
	most, limit int
	// last is the time of the last change: two changes have different ones.
	last time.Time
	// began is when this leader began, or since when it may have dropped changes. It is zero without a leader.
	began time.Time
	err   error

	// size is the number of changes in a transaction. It is smaller after one that failed. looked is the moment that was
	// written last, and filled says that the table had rows. Only Run uses them.
	size   int
	looked time.Time
	filled bool
}

// historyTable is what differs from history to history.
type historyTable[K, V comparable] struct {
	// name is that of what is recorded, in errors, and rows that of the table.
	name, rows string
	// open reads the rows without an end, and the time of the last change of all.
	open func(ctx context.Context) (map[K]row[V], time.Time, error)
	// things are those that are compared with the rows at a start.
	things func(rows map[K]row[V]) []thing[K, V]
	// store writes a change, so that writing it again changes nothing.
	store func(ctx context.Context, tx *sql.Tx, c change[K, V]) error
	// endsUnseen says that what ended before a start ended when it was last seen, instead of at the start.
	endsUnseen bool
	// looked writes, at this interval and at an end, up to which moment the table has all changes; nil for a table that does
	// not say it.
	looked func(ctx context.Context, at time.Time) error
	every  time.Duration
}

// row is a row without an end.
type row[V any] struct {
	value V
	from  time.Time
}

// thing is a thing with how to look at it. look is told what is known of it.
type thing[K, V comparable] struct {
	key  K
	look func(held V) (V, bool)
}

// change is a change of a thing. The row before it ends at one time, and that of the value begins at another. gone says that
// there is no value, and unseen that nobody looked when the row before ended.
type change[K, V comparable] struct {
	id           string
	when         time.Time
	ends, begins string
	key          K
	value        V
	gone, unseen bool
}

func newHistory[K, V comparable](db *DB, k clock.PassiveClock, room func() error, t historyTable[K, V]) history[K, V] {
	return history[K, V]{db: db, table: t, clock: k, room: room, wake: make(chan struct{}, 1), size: maxBatch, most: maxPending}
}

// Err returns why changes cannot be stored at the moment.
func (h *history[K, V]) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Lag is the age of the oldest change that the database does not have. A leader that has not compared the present with the
// database yet has the age of its term, or of the changes that it dropped.
func (h *history[K, V]) Lag() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.began.IsZero():
		return 0
	case !h.compared:
		return max(0, h.clock.Since(h.began))
	case len(h.pending) > 0:
		return max(0, h.clock.Since(h.pending[0].when))
	}
	return 0
}

// Settled returns the time up to which the database has all changes. It is zero if that is not known.
func (h *history[K, V]) Settled() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.compared || len(h.pending) > 0 {
		return time.Time{}
	}
	return h.clock.Now()
}

// changed records things as they are now, if that differs from what is known of them.
func (h *history[K, V]) changed(things ...thing[K, V]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil {
		return
	}
	for _, t := range things {
		// It is read while the lock is held, so that of two changes the later one is recorded last.
		h.record(t)
	}
	// A comparison stores what waits.
	if h.compared && len(h.pending) > h.limit {
		h.lose(h.pending[0].when)
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// lose has the present compared with the database again, which may lack changes since a time. The caller holds the lock.
func (h *history[K, V]) lose(since time.Time) {
	h.known, h.seen, h.pending, h.compared, h.began = nil, nil, nil, false, since
}

// record records a thing as it is now. The caller holds the lock.
func (h *history[K, V]) record(t thing[K, V]) {
	held, was := h.known[t.key]
	seen, unseen := h.seen[t.key]
	delete(h.seen, t.key)
	now, is := t.look(held)
	if !is && !was || is && was && now == held {
		return
	}
	if is {
		h.known[t.key] = now
	} else {
		delete(h.known, t.key)
	}
	h.last = later(h.clock.Now(), h.last.Add(time.Microsecond))
	c := change[K, V]{id: rand.Text(), when: h.last, begins: timeText(h.last), key: t.key, value: now, gone: !is}
	c.ends = c.begins
	if unseen {
		c.ends, c.unseen = timeText(seen), true
	}
	h.pending = append(h.pending, c)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Run records changes until ctx ends, and then what is left, as far as the database takes it within two seconds.
func (h *history[K, V]) Run(ctx context.Context) {
	defer h.forget()
	h.mu.Lock()
	h.began = h.clock.Now()
	h.mu.Unlock()
	repeat(ctx, h.session, func() bool { return h.Err() == nil }, func(err error, wait time.Duration) {
		h.failed(err)
		log.From(ctx).Warn("the records database cannot be written; changes of "+h.table.name+" wait in memory",
			zap.Error(err), zap.Duration("retryAfter", wait))
	})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
	defer cancel()
	h.looked = time.Time{}
	if err := h.flush(last); err != nil {
		log.From(ctx).Warn("the records database does not have the last changes of "+h.table.name+"; the next leader compares", zap.Error(err))
	}
}

// forget ends a term of the leader: another one records from now on.
func (h *history[K, V]) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lose(time.Time{})
	h.err = nil
}

func (h *history[K, V]) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

// session records until the database fails or ctx ends.
func (h *history[K, V]) session(ctx context.Context) error {
	if err := h.room(); err != nil {
		return err
	}
	if err := h.db.Migrate(ctx); err != nil {
		return err
	}
	if err := h.lost(ctx); err != nil {
		return err
	}
	var tick <-chan time.Time
	if h.table.looked != nil {
		ticker := time.NewTicker(h.table.every)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		if err := h.compare(ctx); err != nil {
			return err
		}
		if err := h.flush(ctx); err != nil {
			return err
		}
		h.failed(nil)
		select {
		case <-ctx.Done():
			return nil
		case <-h.wake:
		case <-tick:
		}
	}
}

// lost has everything recorded again if somebody removed all rows.
func (h *history[K, V]) lost(ctx context.Context) error {
	if !h.filled {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var n int
	first := h.db.query("SELECT count(*) FROM (SELECT 1 AS one FROM " + h.table.rows + " LIMIT 1) t")
	if err := h.db.writes.QueryRowContext(ctx, first).Scan(&n); err != nil {
		return fmt.Errorf("read the records of %s: %w", h.table.name, err)
	}
	if n == 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lose(h.clock.Now())
	}
	h.filled = n > 0
	return nil
}

// compare records, once, how the present differs from the rows without an end. No change waits for it longer than for a look
// at one thing. It stores batches meanwhile: at a first start each thing differs. Where the database fails it goes on without,
// because nobody knows when that ends.
func (h *history[K, V]) compare(ctx context.Context) error {
	h.mu.Lock()
	compared := h.compared
	h.mu.Unlock()
	if compared {
		return nil
	}
	rows, err := h.read(ctx)
	if err != nil {
		return err
	}
	// A change that came before is in the list, and one that comes from now on is recorded.
	for _, t := range h.table.things(rows) {
		h.mu.Lock()
		h.record(t)
		waiting := len(h.pending)
		h.mu.Unlock()
		if err != nil || waiting < h.size {
			continue
		}
		if err = h.flush(ctx); ctx.Err() != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen, h.compared, h.limit = nil, true, len(h.pending)+h.most
	return err
}

// read reads the rows without an end. They are what is known from then on.
func (h *history[K, V]) read(ctx context.Context) (map[K]row[V], error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	rows, last, err := h.table.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the records of %s: %w", h.table.name, err)
	}
	known, seen := make(map[K]V, len(rows)), map[K]time.Time{}
	for key, r := range rows {
		known[key] = r.value
		if h.table.endsUnseen {
			// A row lasts as long as a time can tell.
			seen[key] = later(last, r.from.Add(time.Microsecond))
		}
	}
	h.filled = h.filled || len(rows) > 0
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.seen, h.last = known, seen, later(last, h.last)
	return rows, nil
}

// flush stores the pending changes.
func (h *history[K, V]) flush(ctx context.Context) error {
	for {
		h.mu.Lock()
		batch := h.pending[:min(len(h.pending), h.size)]
		compared := h.compared
		if compared && len(batch) == 0 && h.table.looked != nil {
			// What changes from now on gets a later time.
			h.last = later(h.clock.Now(), h.last)
		}
		last := h.last
		h.mu.Unlock()
		if len(batch) == 0 && (!compared || h.table.looked == nil || last.Sub(h.looked) < h.table.every) {
			return nil
		}
		if err := errors.Join(h.room(), ctx.Err()); err != nil {
			return err
		}
		if len(batch) == 0 {
			err := h.table.looked(ctx, last)
			if err == nil {
				h.looked = last
			}
			return err
		}
		err := h.db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
			for _, c := range batch {
				if err := h.table.store(ctx, tx, c); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			h.size = max(1, h.size/8)
			return fmt.Errorf("store the records of %s: %w", h.table.name, err)
		}
		h.size, h.filled = min(2*h.size, maxBatch), true
		h.mu.Lock()
		// It is shorter if the changes were too many since.
		h.pending = h.pending[min(len(batch), len(h.pending)):]
		h.limit = max(h.most, h.limit-len(batch))
		h.mu.Unlock()
	}
}

// lastChange reads the time of the last change, which a statement selects as a text, or a zero time.
func (d *DB) lastChange(ctx context.Context, statement string) (last time.Time, err error) {
	var latest sql.NullString
	if err := d.writes.QueryRowContext(ctx, statement).Scan(&latest); err != nil || !latest.Valid {
		return last, err
	}
	return time.Parse(time.RFC3339Nano, latest.String)
}
