package tracing

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func spanContext(remote, sampled bool) trace.SpanContext {
	c := trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Remote: remote}
	if sampled {
		c.TraceFlags = trace.FlagsSampled
	}
	return trace.NewSpanContext(c)
}

func TestSampler_followsTheParentAndThenTheCause(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ratio        float64
		parent, link trace.SpanContext
		want         sdktrace.SamplingDecision
	}{
		"by the ratio":                      {ratio: 1, want: sdktrace.RecordAndSample},
		"not by the ratio":                  {want: sdktrace.Drop},
		"a sampled parent":                  {parent: spanContext(false, true), want: sdktrace.RecordAndSample},
		"a parent that is not":              {ratio: 1, parent: spanContext(false, false), want: sdktrace.Drop},
		"a sampled cause":                   {link: spanContext(false, true), want: sdktrace.RecordAndSample},
		"a client that says it is the same": {link: spanContext(true, true), want: sdktrace.Drop},
	} {
		p := sdktrace.SamplingParameters{ParentContext: trace.ContextWithSpanContext(t.Context(), test.parent)}
		if test.link.IsValid() {
			p.Links = []trace.Link{{SpanContext: test.link}}
		}
		require.Equal(t, test.want, sampler{sdktrace.TraceIDRatioBased(test.ratio)}.ShouldSample(p).Decision, name)
	}
}

func TestCauses_areBoundedAndExpire(t *testing.T) {
	t.Parallel()
	var c causes
	for i := range maxCauses + 1 {
		c.put(object{"c", strconv.Itoa(i)}, spanContext(false, true))
	}
	require.LessOrEqual(t, len(c.of), maxCauses)
	last := object{"c", strconv.Itoa(maxCauses)}
	_, ok := c.take("a", last)
	require.True(t, ok, "the control")
	c.of[last].at = time.Now().Add(-2 * causeAge)
	_, ok = c.take("b", last)
	require.False(t, ok)
	require.NotContains(t, c.of, last)
}
