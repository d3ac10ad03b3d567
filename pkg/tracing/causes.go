package tracing

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
)

const (
	// maxCauses is the number of objects of which the last write is remembered.
	maxCauses = 4096
	// causeAge is the time for which a write is the cause of reconciles.
	causeAge = time.Minute
)

// object names what a controller's key does: an object in a logical cluster.
type object struct{ cluster, name string }

// cause is the last write of an object.
type cause struct {
	span trace.SpanContext
	at   time.Time
	// linked are the controllers that have linked it.
	linked []string
}

// causes are the last writes of objects, of sampled spans alone.
type causes struct {
	mu sync.Mutex
	of map[object]*cause
}

func (c *causes) put(of object, span trace.SpanContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil || len(c.of) >= maxCauses {
		// A link is a help and no record: those that were not taken by now are lost.
		c.of = map[object]*cause{}
	}
	c.of[of] = &cause{span: span, at: time.Now()}
}

// withdraw forgets a write that was not done.
func (c *causes) withdraw(of object, span trace.SpanContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w, ok := c.of[of]; ok && w.span.Equal(span) {
		delete(c.of, of)
	}
}

// take returns the span of the last write of an object, once for each controller.
func (c *causes) take(controller string, of object) (trace.SpanContext, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.of[of]
	switch {
	case !ok:
		return trace.SpanContext{}, false
	case time.Since(w.at) > causeAge:
		delete(c.of, of)
		return trace.SpanContext{}, false
	case slices.Contains(w.linked, controller):
		return trace.SpanContext{}, false
	}
	w.linked = append(w.linked, controller)
	return w.span, true
}
