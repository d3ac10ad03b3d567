package transport

import "context"

// Healths are available while each of them is: kcp, and what is cached of it.
type Healths []*Health

// Err is nil while all are available, and what a caller is told otherwise.
func (hs Healths) Err() error {
	for _, h := range hs {
		if err := h.Err(); err != nil {
			return err
		}
	}
	return nil
}

// OnUnavailable has f called whenever one of them becomes unavailable; f must not block.
func (hs Healths) OnUnavailable(f func()) {
	for _, h := range hs {
		h.OnUnavailable(f)
	}
}

// Wait waits until each is available, at most MaxWait for each, and returns what a caller
// is told otherwise.
func (hs Healths) Wait(ctx context.Context) error {
	for _, h := range hs {
		if err := h.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// RunWhileAvailable runs a func while all are available, and again when they are again.
// Controllers would otherwise back off further with every failure, and take objects that
// are missing in a cache for deleted.
func (hs Healths) RunWhileAvailable(ctx context.Context, run func(context.Context)) {
	if len(hs) == 0 {
		run(ctx)
		return
	}
	for {
		live, err := hs[0].Await(ctx)
		if err != nil {
			return
		}
		running, stop := context.WithCancel(ctx)
		unbind := context.AfterFunc(live, stop)
		hs[1:].RunWhileAvailable(running, run)
		unbind()
		stop()
		if ctx.Err() != nil {
			return
		}
	}
}
