package kcp

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
	// prompt is how fast an answer is whose Date is believed.
	prompt = time.Second
)

// Clock is the time that deletions go by: kcp's, so that it is the same for all
// replicas, whatever their own clocks say. It advances with this process's
// monotonic clock, and is corrected by what kcp's answers say where the two are
// more than a few seconds apart. Where kcp's clock jumps, both times stay known.
type Clock struct {
	clock.WithTicker
	began time.Time
	times *times
}

// Clock returns kcp's time, which is local's until kcp says otherwise.
func (c *Clients) Clock(local clock.WithTicker) *Clock {
	k := &Clock{WithTicker: local, began: local.Now(), times: c.times}
	c.times.use(k.local)
	return k
}

// local is the time of this process, which nobody sets.
func (k *Clock) local() time.Time { return k.began.Add(k.WithTicker.Since(k.began)) }

// Now is the earliest that it can be: a grace that has ended by it has ended.
func (k *Clock) Now() time.Time {
	earliest, _ := k.times.offsets()
	return k.local().Add(earliest)
}

// Since is how much of Now is past since then.
func (k *Clock) Since(t time.Time) time.Duration { return k.Now().Sub(t) }

// Latest returns the latest that it can be, for the beginning of a grace.
func (k *Clock) Latest() clock.PassiveClock { return latest{k} }

type latest struct{ *Clock }

func (k latest) Now() time.Time {
	_, latest := k.times.offsets()
	return k.local().Add(latest)
}

func (k latest) Since(t time.Time) time.Duration { return k.Now().Sub(t) }

// times compare kcp's clock with this process's.
type times struct {
	mu    sync.Mutex
	local func() time.Time
	known bool
	// earliest and latest are how far kcp's clock was ahead, at the least and at the
	// most.
	earliest, latest time.Duration
}

func (t *times) use(local func() time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.local, t.known, t.earliest, t.latest = local, false, 0, 0
}

func (t *times) offsets() (earliest, latest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return beyond(t.earliest), beyond(t.latest)
}

func beyond(offset time.Duration) time.Duration {
	if offset.Abs() <= tolerance {
		return 0
	}
	return offset
}

// answered learns from a Date, which is in whole seconds, and between a request and
// its answer.
func (t *times) answered(date string, took time.Duration) {
	at, err := http.ParseTime(date)
	if err != nil || took > prompt {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.local == nil {
		return
	}
	now := t.local()
	earliest, latest := at.Sub(now), at.Add(time.Second).Sub(now.Add(-took))
	if !t.known {
		t.known, t.earliest, t.latest = true, earliest, latest
	}
	t.earliest, t.latest = min(t.earliest, earliest), max(t.latest, latest)
}

// dated lets the times learn from every answer.
type dated struct {
	next  http.RoundTripper
	times *times
}

func (d dated) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := d.next.RoundTrip(r)
	if err == nil {
		d.times.answered(response.Header.Get("Date"), time.Since(began))
	}
	return response, err
}
