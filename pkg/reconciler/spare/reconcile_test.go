package spare

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is a platform in memory.
type world struct {
	spares  map[string][]tenancy.Spare
	orgs    map[string]tenancy.Org
	inOrg   map[string][]tenancy.Workspace
	busy    bool
	full    bool
	claimed bool
	failure error
	did     []string
	waiting []controller.Key
}

func (w *world) SparesIn(cluster string) []tenancy.Spare { return w.spares[cluster] }
func (w *world) SpareParents() (parents []string) {
	for parent := range w.spares {
		parents = append(parents, parent)
	}
	return parents
}

func (w *world) OrgByCluster(cluster string) (tenancy.Org, bool) {
	o, ok := w.orgs[cluster]
	return o, ok
}
func (w *world) Workspaces(org string) []tenancy.Workspace { return w.inOrg[org] }

func (w *world) do(format string, args ...any) error {
	w.did = append(w.did, fmt.Sprintf(format, args...))
	return w.failure
}

func (w *world) Create(_ context.Context, in string) error { return w.do("create in %s", in) }
func (w *world) Finish(_ context.Context, s tenancy.Spare) (time.Duration, error) {
	return 0, w.do("finish %s", s.Name)
}

func (w *world) Delete(_ context.Context, in string, s tenancy.Spare) error {
	return w.do("delete %s in %s", s.Name, in)
}

func (w *world) Claimed(_ context.Context, in string, s tenancy.Spare) (bool, error) {
	return w.claimed, w.do("read the claim of %s in %s", s.Name, in)
}

func (w *world) pass(t *testing.T, cluster string, orgs, workspaces int) (controller.Result, string) {
	t.Helper()
	w.did = nil
	result, err := New(Config{
		Clock: clocktesting.NewFakePassiveClock(now), Hash: "new", Organizations: orgs, Workspaces: workspaces, OrgsCluster: "orgs", Cache: w, KCP: w,
		Full: func() bool { return w.full }, Busy: func() bool { return w.busy },
		Idle: func(k controller.Key) { w.waiting = append(w.waiting, k) }, Discarded: func(reason string) { w.did = append(w.did, reason) },
	})(t.Context(), controller.Key{Cluster: cluster})
	require.ErrorIs(t, err, w.failure)
	return result, strings.Join(w.did, ", ")
}

// spareOf returns a whole spare that was made a while ago.
func spareOf(name string, more ...func(*tenancy.Spare)) tenancy.Spare {
	s := tenancy.Spare{Name: name, ClusterID: "c-" + name, Hash: "new", KCPReady: true, Whole: true, CreatedAt: metav1.NewTime(now.Add(-time.Hour))}
	for _, f := range more {
		f(&s)
	}
	return s
}

func reserved(ago time.Duration) func(*tenancy.Spare) {
	return func(s *tenancy.Spare) {
		s.Reserved = &tenancy.Reservation{User: "alice", At: metav1.NewTime(now.Add(-ago))}
	}
}

func making(ago time.Duration) func(*tenancy.Spare) {
	return func(s *tenancy.Spare) { s.Whole, s.KCPReady, s.CreatedAt = false, false, metav1.NewTime(now.Add(-ago)) }
}

func outdated(s *tenancy.Spare) { s.Hash = "old" }
func going(s *tenancy.Spare)    { s.Terminating = true }

func TestSpares_ofOrganizationsAreKeptInNumber(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spares []tenancy.Spare
		want   string
		after  time.Duration
	}{
		"none":                         {nil, "create in orgs", 0},
		"one, one is going":            {[]tenancy.Spare{spareOf("a"), spareOf("b", going)}, "create in orgs", 0},
		"enough":                       {[]tenancy.Spare{spareOf("a"), spareOf("b")}, "", 0},
		"too many: the oldest stay":    {[]tenancy.Spare{spareOf("a"), spareOf("b"), spareOf("c")}, "delete c in orgs, surplus", 0},
		"of another hash":              {[]tenancy.Spare{spareOf("a", outdated), spareOf("b")}, "delete a in orgs, outdated, create in orgs", 0},
		"unfinished":                   {[]tenancy.Spare{spareOf("a", making(time.Minute)), spareOf("b")}, "finish a", unfinished - time.Minute},
		"unfinished for too long":      {[]tenancy.Spare{spareOf("a", making(unfinished)), spareOf("b")}, "delete a in orgs, incomplete, create in orgs", 0},
		"reserved a moment ago":        {[]tenancy.Spare{spareOf("a", reserved(time.Second)), spareOf("b"), spareOf("c")}, "", tenancy.ReservationTTL - time.Second},
		"reserved, of another hash":    {[]tenancy.Spare{spareOf("a", outdated, reserved(time.Second)), spareOf("b"), spareOf("c")}, "", tenancy.ReservationTTL - time.Second},
		"reserved and never claimed":   {[]tenancy.Spare{spareOf("a", reserved(time.Hour)), spareOf("b"), spareOf("c")}, "read the claim of a in orgs, delete a in orgs, abandoned", 0},
		"reserved by nobody, an error": {[]tenancy.Spare{spareOf("a", func(s *tenancy.Spare) { s.Reserved = &tenancy.Reservation{} })}, "read the claim of a in orgs, delete a in orgs, abandoned, create in orgs", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{spares: map[string][]tenancy.Spare{"orgs": test.spares}}
			result, did := w.pass(t, "orgs", 2, 1)
			require.Equal(t, test.want, did)
			require.Equal(t, test.after, result.RequeueAfter)
		})
	}
}

func TestSpares_withAClaimAreNeverThrownAway(t *testing.T) {
	t.Parallel()
	w := &world{claimed: true, spares: map[string][]tenancy.Spare{"orgs": {spareOf("a", reserved(time.Hour))}}}
	result, did := w.pass(t, "orgs", 0, 0)
	require.Equal(t, "read the claim of a in orgs", did)
	require.Equal(t, tenancy.ReservationTTL, result.RequeueAfter)
	// Nor is one of which kcp does not say.
	w.failure = errors.New("kcp is down")
	_, did = w.pass(t, "orgs", 0, 0)
	require.Equal(t, "read the claim of a in orgs", did)
}

func TestSpares_areMadeWhenKcpMakesNothingElse(t *testing.T) {
	t.Parallel()
	w := &world{busy: true}
	result, did := w.pass(t, "orgs", 2, 1)
	require.Empty(t, did)
	require.Equal(t, recheck, result.RequeueAfter)
	require.Equal(t, []controller.Key{{Cluster: "orgs"}}, w.waiting)
}

func TestSpares_areNotMadeWhileTheStoreIsFull(t *testing.T) {
	t.Parallel()
	w := &world{full: true}
	result, did := w.pass(t, "orgs", 2, 1)
	require.Empty(t, did)
	require.Equal(t, recheck, result.RequeueAfter)
	w.full = false
	_, did = w.pass(t, "orgs", 2, 1)
	require.Equal(t, "create in orgs", did)
}

func TestSpares_ofWorkspacesAreWhereTheyAreUsed(t *testing.T) {
	t.Parallel()
	org := func(age time.Duration) tenancy.Org {
		o := tenancy.NewOrganization("org", "O", "alice")
		o.CreationTimestamp = metav1.NewTime(now.Add(-age))
		return tenancy.Org{Organization: o, ClusterID: "org1"}
	}
	deleted := org(time.Minute)
	deleted.Status.DeletionRequestedAt = &metav1.Time{Time: now}
	for name, test := range map[string]struct {
		org    tenancy.Org
		last   time.Duration
		spares []tenancy.Spare
		want   string
	}{
		"a new Organization":             {org(time.Minute), 0, nil, "create in org1"},
		"one that made one today":        {org(100 * inUse), time.Hour, nil, "create in org1"},
		"one that made none today":       {org(100 * inUse), 2 * inUse, nil, ""},
		"one that has made none today":   {org(100 * inUse), 2 * inUse, []tenancy.Spare{spareOf("a")}, "delete a in org1, surplus"},
		"a soft-deleted one":             {deleted, 0, []tenancy.Spare{spareOf("a", outdated)}, ""},
		"one with the spare it is given": {org(time.Minute), 0, []tenancy.Spare{spareOf("a")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{orgs: map[string]tenancy.Org{"org1": test.org}, spares: map[string][]tenancy.Spare{"org1": test.spares}}
			if test.last > 0 {
				w.inOrg = map[string][]tenancy.Workspace{"org": {{UUID: "w", CreatedAt: metav1.NewTime(now.Add(-test.last))}}}
			}
			_, did := w.pass(t, "org1", 2, 1)
			require.Equal(t, test.want, did)
		})
	}
	w := &world{}
	_, did := w.pass(t, "unknown", 2, 1)
	require.Empty(t, did)
}

func TestSpares_ofOrganizationsHaveOneWorkspace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		org  tenancy.Spare
		want string
	}{
		"a ready one":      {spareOf("a"), "create in c-a"},
		"an unfinished":    {spareOf("a", making(time.Second)), ""},
		"one that is gone": {spareOf("a", going), ""},
		"a reserved one":   {spareOf("a", reserved(time.Second)), ""},
		"of another hash":  {spareOf("a", outdated), ""},
	} {
		w := &world{spares: map[string][]tenancy.Spare{"orgs": {test.org}}}
		_, did := w.pass(t, "c-a", 2, 0)
		require.Equal(t, test.want, did, name)
	}
}

func TestPending_waitsForTheLastOne(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(now)
	p := newPending(clock)
	a, b, key := controller.Key{Cluster: "a"}, controller.Key{Cluster: "b"}, controller.Key{Cluster: "orgs"}
	require.False(t, p.any())
	require.Empty(t, p.note(a, true, true))
	require.Empty(t, p.note(b, true, true))
	p.wait(key)
	require.Empty(t, p.note(a, false, true))
	require.True(t, p.any())
	require.Equal(t, []controller.Key{key}, p.note(b, false, true))
	require.False(t, p.any())
	require.Empty(t, p.note(b, false, true), "it waits no more")
	p.note(a, true, true)
	clock.SetTime(now.Add(2 * stuck))
	require.False(t, p.any(), "nobody waits for what is stuck")
}

// A tenant damages a Workspace again and again, so that it is not Ready for most of the time. The others get spares.
// The next spare is made after the Organization that took the last one is Ready, so that its creator does not share kcp with it.
func TestSpares_waitForTheOrganizationThatTookOne(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(now)
	edited := func(f func(*v1alpha1.Organization)) *v1alpha1.Organization {
		o := &v1alpha1.Organization{}
		f(o)
		return o
	}
	for name, test := range map[string]struct {
		org  *v1alpha1.Organization
		want bool
	}{
		"new":          {edited(func(*v1alpha1.Organization) {}), true},
		"progressing":  {edited(func(o *v1alpha1.Organization) { o.Status.Phase = v1alpha1.PhaseProgressing }), true},
		"ready":        {edited(func(o *v1alpha1.Organization) { o.Status.Phase = v1alpha1.PhaseReady }), false},
		"soft-deleted": {edited(func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &at }), false},
		"going":        {edited(func(o *v1alpha1.Organization) { o.DeletionTimestamp = &at }), false},
		"gone":         {nil, false},
	} {
		require.Equal(t, test.want, awaited(test.org), name)
	}
}

func TestPending_doesNotWaitForWhatWasFinished(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(now)
	p := newPending(clock)
	damaged, stuckOne := controller.Key{Cluster: "a"}, controller.Key{Cluster: "b"}
	p.note(damaged, true, true)
	require.True(t, p.any(), "it is being made")
	p.note(damaged, false, false)
	p.note(damaged, true, false)
	require.False(t, p.any())

	p.note(stuckOne, true, true)
	clock.SetTime(now.Add(2 * stuck))
	require.False(t, p.any())
	p.note(stuckOne, true, false)
	require.False(t, p.any(), "it has had its time")
}

func TestMetrics_countSparesByKindAndState(t *testing.T) {
	t.Parallel()
	w := &world{spares: map[string][]tenancy.Spare{
		"orgs": {spareOf("a"), spareOf("b", reserved(0)), spareOf("c", making(0))},
		"c-a":  {spareOf("d", going), spareOf("e")},
	}}
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, w, "orgs")
	require.NoError(t, err)
	m.discard(reasonSurplus)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`# HELP kedge_spares Workspaces that nobody owns, by what they are for and state.
# TYPE kedge_spares gauge
kedge_spares{kind="organization",state="making"} 1
kedge_spares{kind="organization",state="ready"} 1
kedge_spares{kind="organization",state="removing"} 0
kedge_spares{kind="organization",state="reserved"} 1
kedge_spares{kind="workspace",state="making"} 0
kedge_spares{kind="workspace",state="ready"} 1
kedge_spares{kind="workspace",state="removing"} 1
kedge_spares{kind="workspace",state="reserved"} 0
`), "kedge_spares"))
	require.InDelta(t, 1, testutil.ToFloat64(m.discarded.WithLabelValues(reasonSurplus)), 0)
}
