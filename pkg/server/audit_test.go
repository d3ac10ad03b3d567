package server

import (
	"net/http"
	"testing"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// The ends of the audit log of two replicas are in kcp, where kedge-hub audit verify finds them beside a running hub.
func TestHeads_areInKCPForEachReplica(t *testing.T) {
	t.Parallel()
	c := verifying(t)
	kcp := kcpfake.New(t)
	root := &kcptenancyv1alpha1.Workspace{}
	root.Name = "kedge"
	kcp.Put("root", root)
	var want []audit.Head
	for range 2 {
		o := c.Audit()
		o.File = audit.DefaultFile(t.TempDir())
		l, closing, err := audit.Open(t.Context(), o, prometheus.NewRegistry())
		require.NoError(t, err)
		defer closing()
		require.NoError(t, l.Write(audit.Event{Action: "x"}))
		a := &assembly{hub: &hub{config: c, audit: l}, clients: kcp.Clients()}
		a.recordHeads(t.Context())
		want = append(want, l.Heads()[0])
		require.NoError(t, l.Write(audit.Event{Action: "x"}))
		a.recordHeads(t.Context())
		want[len(want)-1] = l.Heads()[0]
	}
	a := &assembly{hub: &hub{config: c}, clients: kcp.Clients()}
	_, read, err := RecordedHeads(t.Context(), c)
	require.NoError(t, err)
	require.False(t, read, "the embedded kcp runs in the hub alone")
	serving(t, c, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == headsPath {
			a.heads(w, r)
		}
	})
	heads, read, err := RecordedHeads(t.Context(), c)
	require.NoError(t, err)
	require.True(t, read)
	require.ElementsMatch(t, want, heads)
}
