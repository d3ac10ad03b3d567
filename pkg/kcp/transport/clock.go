package transport

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// tolerance is how much a clock may be off and still be believed; what is known
	// of kcp's is not more exact than a part of it.
	tolerance = 5 * time.Second
	// prompt is how fast an answer is whose Date is taken to be exact.
	prompt = time.Second
)

// Clock is the time that deletions go by: kcp's, so that it is the same for all
// replicas, whatever their own clocks say. It advances with this process's
// monotonic clock, and is corrected by what kcp's answers say where the two are
// more than a few seconds apart. Where kcp's clock jumps, both times stay known; as
// long as all its answers are slow, its time is known only as well as they allow.
type Clock struct {
	clock.WithTicker
	began time.Time
	times *times
}

// Clock returns kcp's time, which is local's until kcp says otherwise.
func (t *Transport) Clock(local clock.WithTicker) *Clock {
	k := &Clock{WithTicker: local, began: local.Now(), times: t.times}
	t.times.use(k.local)
	return k
}

// local is the time of this process, which nobody sets.
func (k *Clock) local() time.Time { return k.began.Add(k.WithTicker.Since(k.began)) }

// Now is the earliest that it can be: a grace that has ended by it has ended.
func (k *Clock) Now() time.Time {
	return k.local().Add(beyond(k.times.ahead().earliest))
}

// Since is how much of Now is past since then.
func (k *Clock) Since(t time.Time) time.Duration { return k.Now().Sub(t) }

// Latest returns the latest that it can be, for the beginning of a grace.
func (k *Clock) Latest() clock.PassiveClock { return latest{k} }

type latest struct{ *Clock }

func (k latest) Now() time.Time {
	return k.local().Add(beyond(k.times.ahead().latest))
}

func (k latest) Since(t time.Time) time.Duration { return k.Now().Sub(t) }

// times compare kcp's clock with this process's.
type times struct {
	mu    sync.Mutex
	local func() time.Time
	heard bool
	known span
	// settled is whether a prompt answer will not make what is known any narrower: it
	// is from one already, or kcp's clock has jumped.
	settled bool
}

// span is how far kcp's clock is ahead, at the least and at the most.
type span struct{ earliest, latest time.Duration }

func (s span) overlaps(o span) bool { return s.earliest <= o.latest && o.earliest <= s.latest }

func (s span) with(o span) span {
	return span{min(s.earliest, o.earliest), max(s.latest, o.latest)}
}

func (t *times) use(local func() time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.local, t.heard, t.known, t.settled = local, false, span{}, false
}

// now is this process's time, if it is compared.
func (t *times) now() (now time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.local == nil {
		return time.Time{}, false
	}
	return t.local(), true
}

func (t *times) ahead() span {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known
}

func beyond(offset time.Duration) time.Duration {
	if offset.Abs() <= tolerance {
		return 0
	}
	return offset
}

// answered learns from the Date of what was asked then. A Date is in whole seconds,
// and of some time between a request and its answer.
func (t *times) answered(date string, sent time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	arrived := t.local()
	fast := arrived.Sub(sent) <= prompt
	said := span{earliest: at.Sub(arrived), latest: at.Add(time.Second).Sub(sent)}
	jumped := t.heard && !said.overlaps(t.known)
	switch {
	case !t.heard, fast && !t.settled && !jumped:
		t.known = said
	case fast, jumped, !t.settled:
		t.known = t.known.with(said)
	default:
		// A slow answer that agrees with what is known better.
	}
	t.heard, t.settled = true, t.settled || fast || jumped
}

// readDates learns kcp's time from every answer.
func (t *Transport) readDates(next http.RoundTripper) http.RoundTripper {
	return dated{next: next, times: t.times}
}

type dated struct {
	next  http.RoundTripper
	times *times
}

func (d dated) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, ok := d.times.now()
	response, err := d.next.RoundTrip(r)
	if err == nil && ok {
		d.times.answered(response.Header.Get("Date"), sent)
	}
	return response, err
}
