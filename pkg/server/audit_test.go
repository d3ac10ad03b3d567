package server

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
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

// A replica that runs is not taken for one that has ended because kcp did not answer at the hour.
func TestRunAudit_recordsTheHeadsAgainUntilKCPHasThem(t *testing.T) {
	t.Parallel()
	k := clocktesting.NewFakeClock(time.Unix(4_100_000_000, 0))
	c := verifying(t, func(o *Options) { o.Clock = k })
	kcp := kcpfake.New(t)
	root := &kcptenancyv1alpha1.Workspace{}
	root.Name = "kedge"
	kcp.Put("root", root)
	l, closing, err := audit.Open(t.Context(), c.Audit(), prometheus.NewRegistry())
	require.NoError(t, err)
	defer closing()
	a := &assembly{hub: &hub{config: c, audit: l, budget: audit.NewBudget(0, k, l)}, clients: kcp.Clients()}
	below, end := context.WithCancel(t.Context())
	defer end()
	a.runAudit(below)
	eventually := func(is func() bool) {
		t.Helper()
		require.Eventually(t, is, time.Minute, time.Millisecond)
	}
	// The budget and the hour have a ticker each.
	soon := func() bool { return k.Waiters() == 3 }
	recorded := func() bool {
		kcp.Read("root", root)
		all, err := audit.ParseRecorded(root.Annotations[v1alpha1.AuditHeadsAnnotation])
		return err == nil && all[l.Heads()[0].Replica].At.Equal(k.Now())
	}

	eventually(soon)
	k.Step(firstHeads)
	eventually(soon)
	require.Empty(t, kcp.Writes(), "there is no event")
	require.NoError(t, l.Write(audit.Event{Action: "x"}))
	k.Step(firstHeads)
	eventually(recorded)

	var tries atomic.Int32
	kcp.FailBefore(func(kcpfake.Request) error {
		tries.Add(1)
		return apierrors.NewInternalError(errors.New("down"))
	})
	k.Step(headsInterval)
	for n := range int32(3) {
		eventually(func() bool { return tries.Load() == n+1 && soon() })
		k.Step(firstHeads)
	}
	eventually(func() bool { return tries.Load() == 4 && soon() })
	kcp.FailBefore(nil)
	k.Step(firstHeads)
	eventually(recorded)

	// Then it is up to the hours again.
	for range 10 {
		k.Step(firstHeads)
		k.Step(headsInterval)
		eventually(recorded)
	}
	end()
	a.running.Wait()
	require.Len(t, kcp.Requests(), 29, "twelve times a read and a write, four failures, and a read at the end")
}
