package transport

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// interval is how often the prober looks whether anything has arrived. After
	// maxSilence looks in a row without anything kcp is unavailable. Looks are counted
	// instead of time, because a process that was suspended could not receive anything.
	interval   = 250 * time.Millisecond
	maxSilence = 6
	// A probe is sent at every second look, whether or not earlier ones were answered: a
	// slow kcp is available. After maxFailures failures in a row kcp is unavailable, even
	// if it still answers.
	looksPerProbe = 2
	probeTimeout  = 10 * time.Second
	maxFailures   = 3
	// After maxBusy answers 429 in a row, which take ten seconds, further ones are
	// failures.
	maxBusy = 20
)

// Probe keeps the health until ctx ends.
func (t *Transport) Probe(ctx context.Context) {
	h := t.health
	var probes sync.WaitGroup
	defer probes.Wait()
	ticker := time.NewTicker(h.interval)
	defer ticker.Stop()
	silence := 0
	for n := 0; ; n++ {
		if n%looksPerProbe == 0 {
			probes.Go(func() { t.probeOnce(ctx) })
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if h.heard.Swap(false) {
			silence = 0
		} else if silence++; silence >= maxSilence {
			h.Lose()
		}
	}
}

func (t *Transport) probeOnce(ctx context.Context) {
	ok, busy := t.ask(ctx)
	if !busy {
		t.health.busy.Store(0)
	} else if t.health.busy.Add(1) <= maxBusy {
		return
	}
	if ctx.Err() != nil {
		return
	}
	if ok {
		t.health.ready.Store(true)
	}
	if t.health.probed(ok) >= maxFailures {
		t.health.Lose()
	}
}

// ask asks kcp whether it is ready. A kcp that answers 429 is alive but busy. The status
// code is enough, because a body that breaks off breaks off on the way.
func (t *Transport) ask(ctx context.Context) (ok, busy bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.host+"/readyz", http.NoBody)
	if err != nil {
		return false, false
	}
	response, err := t.probes.Do(r)
	if err != nil {
		return false, false
	}
	defer func() { _ = response.Body.Close() }()
	// A body that is read to its end leaves the connection to the next request.
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode == http.StatusOK, response.StatusCode == http.StatusTooManyRequests
}
