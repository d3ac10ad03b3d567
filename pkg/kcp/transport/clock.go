package transport

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// tolerance is the difference up to which two clocks are taken to agree. kcp's time is
	// known less exactly than to a second.
	tolerance = 5 * time.Second
	// prompt is the time within which an answer's Date is taken to be exact.
	prompt = time.Second
)

// Clock is the time of kcp, by which grace periods of deletions are measured: it is the
// same for all replicas. It advances with this process's monotonic clock, and is
// corrected from the Date headers of kcp's answers where the two differ by more than
// tolerance. The time is a range: it covers both times after kcp's clock has jumped, and
// the whole duration of requests as long as all of them are slow.
//
// Reading the header of an answer takes half a microsecond and never fails. Asking kcp when a
// deletion begins and when its grace period is over would need a request and a path for its
// failure at each of these places. Rights, sessions and the tokens of bots end by Current, which needs no
// request to kcp either.
type Clock struct {
	clock.WithTicker
	began time.Time
	times *times
}

// Clock returns kcp's time, which is the local time until the first answer.
func (t *Transport) Clock(local clock.WithTicker) *Clock {
	k := &Clock{WithTicker: local, began: local.Now(), times: t.times}
	t.times.use(k.local)
	return k
}

// local is the monotonic time of this process.
func (k *Clock) local() time.Time { return k.began.Add(k.WithTicker.Since(k.began)) }

// Now is the earliest time that it may be at kcp: a grace period that has ended by Now has
// ended for sure.
func (k *Clock) Now() time.Time {
	return k.local().Add(beyond(k.times.ahead().earliest))
}

// Since is the time from t until Now.
func (k *Clock) Since(t time.Time) time.Duration { return k.Now().Sub(t) }

// Latest returns the clock of the latest time that it may be at kcp, by which grace
// periods begin.
func (k *Clock) Latest() clock.PassiveClock { return latest{k} }

// Latest is c.Latest() of a clock of kcp, and c itself otherwise.
func Latest(c clock.WithTicker) clock.PassiveClock {
	if k, ok := c.(*Clock); ok {
		return k.Latest()
	}
	return c
}

type latest struct{ *Clock }

func (k latest) Now() time.Time {
	return k.local().Add(beyond(k.times.ahead().latest))
}

func (k latest) Since(t time.Time) time.Duration { return k.Now().Sub(t) }

// Current returns the clock of the time that kcp's latest answers tell, by which rights end. It
// follows kcp's clock wherever that is set, and this process's own suspension, with the next answer.
func (k *Clock) Current() clock.WithTicker { return current{k} }

// Current is c.Current() of a clock of kcp, and c itself otherwise.
func Current(c clock.WithTicker) clock.WithTicker {
	if k, ok := c.(*Clock); ok {
		return k.Current()
	}
	return c
}

type current struct{ *Clock }

func (k current) Now() time.Time { return k.local().Add(k.times.latestAnswers().earliest) }

func (k current) Since(t time.Time) time.Duration { return k.Now().Sub(t) }

// times is how far kcp's clock is ahead of this process's.
type times struct {
	mu    sync.Mutex
	local func() time.Time
	heard bool
	known span
	// recent is known by the latest answers alone, as exactly as they agree.
	recent span
	// settled means that prompt answers no longer narrow the range: it is from one
	// already, or kcp's clock has jumped.
	settled bool
}

// span is how far kcp's clock is ahead, at least and at most.
type span struct{ earliest, latest time.Duration }

func (s span) overlaps(o span) bool { return s.earliest <= o.latest && o.earliest <= s.latest }

func (s span) with(o span) span {
	return span{min(s.earliest, o.earliest), max(s.latest, o.latest)}
}

func (t *times) use(local func() time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.local, t.heard, t.known, t.recent, t.settled = local, false, span{}, span{}, false
}

// now is this process's time; ok is false if there is no Clock.
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

func (t *times) latestAnswers() span {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recent
}

func beyond(offset time.Duration) time.Duration {
	if offset.Abs() <= tolerance {
		return 0
	}
	return offset
}

// answered updates the range by the Date of the answer to a request that was sent then. A
// Date is in whole seconds, and lies between the request and its answer.
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
	if t.heard && said.overlaps(t.recent) {
		t.recent = span{max(said.earliest, t.recent.earliest), min(said.latest, t.recent.latest)}
	} else {
		t.recent = said
	}
	switch {
	case !t.heard, fast && !t.settled && !jumped:
		t.known = said
	case fast, jumped, !t.settled:
		t.known = t.known.with(said)
	default:
		// A slow answer within the range adds nothing.
	}
	t.heard, t.settled = true, t.settled || fast || jumped
}

// readDates updates kcp's time by every answer.
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
