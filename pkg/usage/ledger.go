package usage

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

const (
	// maxCallers is the number of callers of a Workspace that count in an interval.
	maxCallers = 1000
	// maxRows is the number of rows that a ledger keeps.
	maxRows = 200_000
)

// ledger has the rows of the running interval, and those of earlier ones that the database does not have.
type ledger struct {
	running   time.Time
	intervals map[time.Time]*interval
}

// interval has the rows of an interval.
type interval struct {
	requests rows[Workspace, Requests]
	callers  rows[callerOf, struct{}]
	stored   rows[Workspace, Stored]
	sizes    rows[string, Size]
	// of is the number of callers of each Workspace.
	of map[Workspace]int
}

type callerOf struct {
	Workspace
	Caller
}

// rows are values, and which of them the database does not have.
type rows[K, V comparable] struct {
	all   map[K]V
	dirty map[K]struct{}
}

func newRows[K, V comparable]() rows[K, V] { return rows[K, V]{map[K]V{}, map[K]struct{}{}} }

func (r rows[K, V]) set(k K, v V) {
	if old, ok := r.all[k]; !ok || old != v {
		r.all[k], r.dirty[k] = v, struct{}{}
	}
}

// clean records that the database has a value, unless it has changed meanwhile.
func (r rows[K, V]) clean(k K, v V) {
	if r.all[k] == v {
		delete(r.dirty, k)
	}
}

func newLedger(running time.Time) ledger {
	l := ledger{intervals: map[time.Time]*interval{}}
	l.begin(running)
	return l
}

// begin begins an interval. Earlier ones that the database has are dropped.
func (l *ledger) begin(starts time.Time) {
	l.running = starts
	l.intervals[starts] = &interval{
		newRows[Workspace, Requests](), newRows[callerOf, struct{}](), newRows[Workspace, Stored](), newRows[string, Size](), map[Workspace]int{},
	}
	l.forget()
}

func (l *ledger) forget() {
	for at, i := range l.intervals {
		if at != l.running && i.dirty() == 0 {
			delete(l.intervals, at)
		}
	}
}

func (i *interval) dirty() int {
	return len(i.requests.dirty) + len(i.callers.dirty) + len(i.stored.dirty) + len(i.sizes.dirty)
}

func (i *interval) size() int {
	return len(i.requests.all) + len(i.callers.all) + len(i.stored.all) + len(i.sizes.all)
}

// room makes room for one more row of the running interval. lost counts the rows that are given up for it.
func (l *ledger) room() (ok bool, lost int) {
	total := 0
	for _, i := range l.intervals {
		total += i.size()
	}
	for total >= maxRows && len(l.intervals) > 1 {
		oldest := l.starts()[0]
		total -= l.intervals[oldest].size()
		lost += l.intervals[oldest].dirty()
		delete(l.intervals, oldest)
	}
	return total < maxRows, lost
}

// starts are those of the intervals, in order.
func (l *ledger) starts() []time.Time {
	all := make([]time.Time, 0, len(l.intervals))
	for at := range l.intervals {
		all = append(all, at)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// put sets a row of the running interval, if there is room for it.
func put[K, V comparable](l *ledger, r rows[K, V], k K, v V) (lost int) {
	if _, known := r.all[k]; !known {
		ok, given := l.room()
		if !ok {
			return given + 1
		}
		lost = given
	}
	r.set(k, v)
	return lost
}

// count adds what was counted to the running interval.
func (l *ledger) count(w Workspace, more Requests, callers map[Caller]struct{}) (lost int) {
	i := l.intervals[l.running]
	if more != (Requests{}) {
		lost += put(l, i.requests, w, i.requests.all[w].plus(more))
	}
	for by := range callers {
		k := callerOf{w, by}
		if _, known := i.callers.all[k]; known || i.of[w] >= maxCallers {
			continue
		}
		i.of[w]++
		lost += put(l, i.callers, k, struct{}{})
	}
	return lost
}

// measure keeps the most of the running interval.
func (l *ledger) measure(stored map[Workspace]Stored, sizes map[string]Size) (lost int) {
	i := l.intervals[l.running]
	for w, s := range stored {
		old := i.stored.all[w]
		if s = (Stored{max(s.Objects, old.Objects), max(s.Bytes, old.Bytes)}); s != (Stored{}) {
			lost += put(l, i.stored, w, s)
		}
	}
	for org, s := range sizes {
		old := i.sizes.all[org]
		if s = (Size{max(s.Members, old.Members), max(s.Workspaces, old.Workspaces), max(s.Entries, old.Entries)}); s != (Size{}) {
			lost += put(l, i.sizes, org, s)
		}
	}
	return lost
}

// next returns up to limit rows of each kind, in the order of their keys: replicas that write the same rows at the same
// time must not wait for one another in a circle. all is false if there are more.
func (l *ledger) next(limit int) (b Batch, all bool) {
	all = true
	for _, at := range l.starts() {
		i := l.intervals[at]
		for w := range some(i.requests.dirty, limit-len(b.Requests), &all) {
			b.Requests = append(b.Requests, Of[Requests]{at, w, i.requests.all[w]})
		}
		for k := range some(i.callers.dirty, limit-len(b.Callers), &all) {
			b.Callers = append(b.Callers, Of[Caller]{at, k.Workspace, k.Caller})
		}
		for w := range some(i.stored.dirty, limit-len(b.Stored), &all) {
			b.Stored = append(b.Stored, Of[Stored]{at, w, i.stored.all[w]})
		}
		for org := range some(i.sizes.dirty, limit-len(b.Sizes), &all) {
			b.Sizes = append(b.Sizes, Of[Size]{at, Workspace{Org: org}, i.sizes.all[org]})
		}
	}
	slices.SortFunc(b.Requests, byKey)
	slices.SortFunc(b.Callers, func(x, y Of[Caller]) int { return cmp.Or(byKey(x, y), cmp.Compare(x.Value.ID, y.Value.ID)) })
	slices.SortFunc(b.Stored, byKey)
	slices.SortFunc(b.Sizes, byKey)
	return b, all
}

func byKey[T any](x, y Of[T]) int {
	return cmp.Or(cmp.Compare(x.Org, y.Org), x.Starts.Compare(y.Starts), cmp.Compare(x.UUID, y.UUID))
}

// some yields up to limit keys. It sets all to false if there are more.
func some[K comparable](of map[K]struct{}, limit int, all *bool) iter.Seq[K] {
	return func(yield func(K) bool) {
		n := 0
		for k := range of {
			if n == limit {
				*all = false
				return
			}
			n++
			if !yield(k) {
				return
			}
		}
	}
}

func (l *ledger) written(b Batch) {
	for _, r := range b.Requests {
		if i := l.intervals[r.Starts]; i != nil {
			i.requests.clean(r.Workspace, r.Value)
		}
	}
	for _, r := range b.Callers {
		if i := l.intervals[r.Starts]; i != nil {
			i.callers.clean(callerOf{r.Workspace, r.Value}, struct{}{})
		}
	}
	for _, r := range b.Stored {
		if i := l.intervals[r.Starts]; i != nil {
			i.stored.clean(r.Workspace, r.Value)
		}
	}
	for _, r := range b.Sizes {
		if i := l.intervals[r.Starts]; i != nil {
			i.sizes.clean(r.Org, r.Value)
		}
	}
	l.forget()
}
