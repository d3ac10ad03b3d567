package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/doubles/otlptest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// tracing has a hub send every trace to a collector.
func tracing(c *otlptest.Collector) func(*server.Options) {
	return func(o *server.Options) { o.Tracing.Endpoint, o.Tracing.SampleRatio = c.URL, 1 }
}

// requireTraces requires that a hub has traced the create of a Workspace down to the controller that follows from it,
// and a proxied create of a ConfigMap. The hub has stopped.
func requireTraces(t *testing.T, c *otlptest.Collector) {
	t.Helper()
	spans := c.Spans()
	// below returns the spans of a name right below another one, by their IDs, and what they are about.
	below := func(parent *tracepb.Span, name string) (ids map[string]bool, about []map[string]string) {
		ids = map[string]bool{}
		for _, s := range spans[name] {
			if string(s.GetParentSpanId()) == string(parent.GetSpanId()) {
				ids[string(s.GetSpanId())], about = true, append(about, otlptest.Attributes(s))
			}
		}
		return ids, about
	}
	created := spans["POST /api/orgs/{org}/workspaces"]
	require.Len(t, created, 1)
	require.NotEmpty(t, otlptest.Attributes(created[0])["kedge.organization"])
	// The request writes what the controller of the Organization follows from.
	written, about := below(created[0], "kcp")
	linked := false
	for _, s := range spans["reconcile organization"] {
		for _, l := range s.GetLinks() {
			linked = linked || written[string(l.GetSpanId())]
		}
	}
	require.True(t, linked, "no pass has a link to any of %v", about)
	proxied := spans["POST /clusters/*"]
	require.NotEmpty(t, proxied)
	require.NotEmpty(t, otlptest.Attributes(proxied[0])["kedge.workspace"])
	_, about = below(proxied[0], "kcp proxied")
	require.Len(t, about, 1)
	require.Equal(t, "configmaps", about[0]["k8s.resource"])
	for _, secret := range []string{"alice", "carol", framework.Token("alice")} {
		require.NotContains(t, c.Raw(), secret)
	}
}
