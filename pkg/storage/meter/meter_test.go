package meter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/storage/meter"
)

const mib = 1 << 20

// world is what Workspaces store, for all replicas.
type world struct {
	mu     sync.Mutex
	stores map[string]meter.Use
	fails  error
	// broken is what every Workspace stores of a resource that can be unread.
	broken meter.Use
	unread []string
	// owned and bound are the resources of definitions and bindings. gone is true while kcp does not find that resource.
	owned, bound []string
	gone         bool
}

// scene is a meter of two Workspaces of one Organization and one of another.
type scene struct {
	*meter.Meter
	*world
	clock   *clocktesting.FakeClock
	metrics *prometheus.Registry

	// measured are the logical clusters in the order of their measurements.
	measured []string
}

func workspace(org, cluster string) meter.Workspace {
	return meter.Workspace{Org: org, UUID: "uuid-" + cluster, Cluster: cluster}
}

func newScene(t *testing.T, limits meter.Limits) *scene {
	t.Helper()
	return newReplica(t, limits, &world{stores: map[string]meter.Use{}}, clocktesting.NewFakeClock(time.Unix(1_000_000, 0)))
}

func newReplica(t *testing.T, limits meter.Limits, w *world, c *clocktesting.FakeClock) *scene {
	t.Helper()
	s := &scene{clock: c, metrics: prometheus.NewRegistry(), world: w}
	var err error
	s.Meter, err = meter.New(meter.Config{
		Limits: func(string) meter.Limits { return limits }, Clock: s.clock, Metrics: s.metrics,
		Measure: func(_ context.Context, cluster string) (meter.Reading, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.measured = append(s.measured, cluster)
			r := meter.Reading{
				ByResource: map[string]meter.Use{"/configmaps": s.stores[cluster]}, Unread: s.unread, Owned: s.owned, Bound: s.bound,
			}
			if len(s.unread) == 0 && !s.gone {
				r.ByResource["g/broken"] = s.broken
			}
			return r, s.fails
		},
		Workspaces: func(org string) []meter.Workspace {
			if org == "a" {
				return []meter.Workspace{workspace("a", "one"), workspace("a", "two")}
			}
			return []meter.Workspace{workspace("b", "other")}
		},
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	require.Eventually(t, s.clock.HasWaiters, 5*time.Second, time.Millisecond)
	return s
}

// Admit asks for a new object, or for more of them, which kcp then makes.
func (s *scene) Admit(w meter.Workspace, more meter.Use) error {
	return s.ask(w, meter.Growth{Use: more}, meter.Created)
}

// update asks for a change of an object whose body has so many bytes.
func (s *scene) update(w meter.Workspace, bytes int64) error {
	return s.ask(w, meter.Growth{Use: meter.Use{Bytes: bytes}, Update: true}, meter.Changed)
}

func (s *scene) ask(w meter.Workspace, g meter.Growth, o meter.Outcome) error {
	settle, err := s.Meter.Admit(context.Background(), w, g)
	if err == nil {
		settle(o)
	}
	return err
}

// waiting calls a func, and has time pass until it returns.
func (s *scene) waiting(t *testing.T, call func() error) (err error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	require.Eventually(t, func() bool {
		select {
		case err = <-done:
			return true
		default:
			s.clock.Step(100 * time.Millisecond)
			return false
		}
	}, 20*time.Second, 100*time.Microsecond)
	return err
}

// times returns how often a logical cluster was measured.
func (s *scene) times(cluster string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, measured := range s.measured {
		if measured == cluster {
			n++
		}
	}
	return n
}

func (w *world) stored(cluster string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stores[cluster].Objects
}

func (s *scene) store(cluster string, u meter.Use) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores[cluster] = u
}

// known waits until all Workspaces of an Organization are measured after the first growth in one of them.
func (s *scene) known(t *testing.T, w meter.Workspace) {
	t.Helper()
	require.NoError(t, s.Admit(w, meter.Use{Objects: 1}))
	require.Eventually(t, func() bool { return s.times("one") > 0 && s.times("two") > 0 }, 5*time.Second, time.Millisecond)
	require.Eventually(t, func() bool {
		_, _, one := s.Read(workspace("a", "one"))
		_, _, two := s.Read(workspace("a", "two"))
		return one && two
	}, 5*time.Second, time.Millisecond)
}

func refused(t *testing.T, err error, says string) {
	t.Helper()
	var e *errs.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, errs.InsufficientStorage, e.Code, e.Message)
	require.Contains(t, e.Message, says)
	require.Contains(t, e.Message, "delete what you do not need")
	require.Zero(t, e.RetryAfter)
}

func TestMeter_refusesGrowthAtALimit(t *testing.T) {
	t.Parallel()
	limits := meter.Limits{Workspace: meter.Use{Objects: 100, Bytes: 10 * mib, Definitions: 5, Bindings: 4, Roles: 3}, OrgBytes: 15 * mib}
	for name, c := range map[string]struct {
		stores, more meter.Use
		says         string
	}{
		"objects":     {meter.Use{Objects: 99}, meter.Use{Objects: 1}, "this workspace stores 100 of 100 objects"},
		"bytes":       {meter.Use{Bytes: 9 * mib}, meter.Use{Bytes: 2 * mib}, "this workspace stores 9Mi of 10Mi bytes"},
		"definitions": {meter.Use{Definitions: 5}, meter.Use{Definitions: 1}, "this workspace stores 5 of 5 CustomResourceDefinitions"},
		"bindings":    {meter.Use{Bindings: 4}, meter.Use{Bindings: 1}, "this workspace stores 4 of 4 APIBindings"},
		"roles":       {meter.Use{Roles: 3}, meter.Use{Roles: 1}, "this workspace stores 3 of 3 Roles, ClusterRoles and Namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, limits)
			s.store("one", c.stores)
			one := workspace("a", "one")
			s.known(t, one)
			// The object of known was admitted before or during the measurement.
			_ = s.Admit(one, meter.Use{Objects: c.more.Objects})
			refused(t, s.Admit(one, c.more), c.says)
			refused(t, s.Admit(one, c.more), c.says)
			require.NoError(t, s.Admit(one, meter.Use{}), "what adds nothing")
			require.NoError(t, s.Admit(workspace("b", "other"), meter.Use{Objects: 1}), "a neighbour")
		})
	}
}

func TestMeter_addsUpTheWorkspacesOfAnOrganization(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{Workspace: meter.Use{Bytes: 10 * mib}, OrgBytes: 15 * mib})
	s.store("one", meter.Use{Bytes: 8 * mib})
	s.store("two", meter.Use{Bytes: 6 * mib})
	s.known(t, workspace("a", "one"))
	require.NoError(t, s.Admit(workspace("a", "two"), meter.Use{Bytes: mib / 2}))
	refused(t, s.Admit(workspace("a", "two"), meter.Use{Bytes: mib}), "this organization stores 15Mi of 15Mi bytes")
	require.NoError(t, s.Admit(workspace("b", "other"), meter.Use{Bytes: mib / 4}))
}

// Until the first measurement a restart of the hub is worth no more than a share of the allowance.
func TestMeter_refusesMoreThanItsShareWithoutAMeasurement(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 400}})
	s.mu.Lock()
	s.fails = errors.New("kcp does not answer")
	s.mu.Unlock()
	one := workspace("a", "one")
	for range 5 {
		require.NoError(t, s.Admit(one, meter.Use{Objects: 1}))
	}
	err := s.waiting(t, func() error { return s.Admit(one, meter.Use{Objects: 1}) })
	var e *errs.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, errs.Unavailable, e.Code)
	require.ErrorContains(t, err, "is being measured")
	require.Positive(t, e.RetryAfter)
}

// An installation in a new Workspace is measured at once, and meets nothing but that.
func TestMeter_measuresAtOnceForWhatWaits(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 20_000, Definitions: 200, Bindings: 100}})
	one := workspace("a", "one")
	for range 20 {
		require.NoError(t, s.Admit(one, meter.Use{Objects: 1, Definitions: 1}), "no time passes")
	}
	for range 10 {
		require.NoError(t, s.Admit(one, meter.Use{Objects: 1, Bindings: 1}))
	}
	require.Equal(t, 1, s.times("one"))
}

func TestMeter_endsTheWaitWithTheRequest(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 80}})
	s.store("one", meter.Use{Objects: 70})
	one := workspace("a", "one")
	s.known(t, one)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Meter.Admit(ctx, one, meter.Growth{Use: meter.Use{Objects: 5}})
	for err == nil {
		_, err = s.Meter.Admit(ctx, one, meter.Growth{Use: meter.Use{Objects: 2}})
	}
	require.True(t, errs.Is(err, errs.Unavailable), "%v", err)
}

// What each replica lets through without knowing of the others adds up to 5% of a limit.
func TestMeter_replicasPassALimitByFivePercent(t *testing.T) {
	t.Parallel()
	const limit = 8000
	for name, turn := range map[string]func(n int) int{
		"in turn":             func(n int) int { return n },
		"one after the other": func(n int) int { return n / 1000 },
		"in pieces":           func(n int) int { return n / 37 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newScene(t, meter.Limits{Workspace: meter.Use{Objects: limit}})
			replicas := []*scene{first, newReplica(t, meter.Limits{Workspace: meter.Use{Objects: limit}}, first.world, first.clock)}
			one := workspace("a", "one")
			for _, s := range replicas {
				s.known(t, one)
			}
			for n, refusals := 0, 0; refusals < 400; n++ {
				s := replicas[turn(n)%len(replicas)]
				err := s.waiting(t, func() error { return s.Admit(one, meter.Use{Objects: 10}) })
				switch {
				case err == nil:
					s.store("one", meter.Use{Objects: s.stored("one") + 10})
				case errs.Is(err, errs.InsufficientStorage):
					refusals++
				}
			}
			require.GreaterOrEqual(t, first.stored("one"), int64(limit-10))
			require.LessOrEqual(t, first.stored("one"), int64(limit+limit/20))
		})
	}
}

// A request counts as what kcp did, not as what it asked for.
func TestMeter_settlesWhatItAdmitted(t *testing.T) {
	t.Parallel()
	object := meter.Use{Objects: 1, Bytes: 100, Definitions: 1}
	for name, c := range map[string]struct {
		update  bool
		outcome meter.Outcome
		counts  meter.Use
	}{
		"a creation":                       {false, meter.Created, object},
		"a creation without an answer":     {false, meter.Unknown, object},
		"a creation of what exists":        {false, meter.Refused, meter.Use{}},
		"an apply of what exists":          {true, meter.Changed, meter.Use{}},
		"an apply that creates":            {true, meter.Created, object},
		"an apply that is refused":         {true, meter.Refused, meter.Use{}},
		"an apply that was never answered": {true, meter.Unknown, meter.Use{Objects: 1, Definitions: 1}},
	} {
		s := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 8000, Bytes: mib}})
		one := workspace("a", "one")
		_, _, _ = s.Read(one)
		require.Eventually(t, func() bool { _, _, ok := s.Read(one); return ok }, 5*time.Second, time.Millisecond)
		settle, err := s.Meter.Admit(t.Context(), one, meter.Growth{Use: object, Update: c.update})
		require.NoError(t, err, name)
		settle(c.outcome)
		use, _, _ := s.Read(one)
		require.Equal(t, c.counts, use, name)
	}
}

// Updates of what exists are never refused: beyond what they could have added, they are weighed.
func TestMeter_hasUpdatesWeighedBeforeALimit(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{Workspace: meter.Use{Bytes: 8 * mib}})
	s.store("one", meter.Use{Bytes: 4 * mib})
	one := workspace("a", "one")
	s.known(t, one)
	passed := 0
	for ; s.update(one, 100_000) == nil; passed++ {
		require.Less(t, passed, 1000)
	}
	require.InDelta(t, 4*mib/8/100_000, passed, 2)
	use, _, _ := s.Read(one)
	require.EqualValues(t, 4*mib, use.Bytes, "a change of the same size is no growth")
	s.clock.Step(time.Minute)
	require.Eventually(t, func() bool { return s.update(one, 100_000) == nil }, 5*time.Second, time.Millisecond, "a measurement tells more")
}

func TestMeter_findsDeletionsWithinTwoMinutes(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 100}})
	s.store("one", meter.Use{Objects: 100})
	one := workspace("a", "one")
	s.known(t, one)
	require.Eventually(t, func() bool { return s.Admit(one, meter.Use{Objects: 1}) != nil }, 5*time.Second, time.Millisecond)
	s.store("one", meter.Use{Objects: 50})
	before := s.times("one")
	refused(t, s.Admit(one, meter.Use{Objects: 1}), "of 100 objects")
	require.Equal(t, before, s.times("one"), "a refusal does not have it measured at once again")
	s.clock.Step(time.Minute)
	require.Eventually(t, func() bool { return s.Admit(one, meter.Use{Objects: 1}) == nil }, 5*time.Second, time.Millisecond)
}

// A tenant that makes its objects unreadable does not get room by that.
func TestMeter_keepsTheCountWhenAMeasurementFails(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 1600}})
	s.store("one", meter.Use{Objects: 1598})
	one := workspace("a", "one")
	s.known(t, one)
	require.NoError(t, s.Admit(one, meter.Use{Objects: 1}))
	s.mu.Lock()
	s.fails = errors.New("a conversion webhook does not answer")
	s.mu.Unlock()
	before := s.times("one")
	s.clock.Step(time.Minute)
	require.Eventually(t, func() bool { return s.times("one") > before }, 5*time.Second, time.Millisecond)
	for range 2 {
		_ = s.Admit(one, meter.Use{Objects: 1})
	}
	refused(t, s.Admit(one, meter.Use{Objects: 1}), "of 1600 objects")
}

// A provider's API that is dead takes neither room nor the right to write from those who use it.
func TestMeter_countsTheRestOfAWorkspaceWithADeadAPI(t *testing.T) {
	t.Parallel()
	for _, unread := range []string{"g/broken", "g/"} {
		s := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 100}})
		s.mu.Lock()
		s.unread = []string{unread}
		s.mu.Unlock()
		one := workspace("a", "one")
		s.known(t, one)
		s.mu.Lock()
		s.unread, s.broken = nil, meter.Use{Objects: 40}
		s.stores["one"] = meter.Use{Objects: 60}
		s.mu.Unlock()
		reads := func(objects int64) {
			s.clock.Step(10 * time.Minute)
			require.Eventually(t, func() bool {
				_ = s.Admit(one, meter.Use{Objects: 1000})
				use, _, _ := s.Read(one)
				return use.Objects == objects
			}, 5*time.Second, time.Millisecond, "%d objects", objects)
		}
		reads(100)
		s.mu.Lock()
		s.unread = []string{unread}
		s.mu.Unlock()
		refused(t, s.Admit(one, meter.Use{Objects: 1}), "of 100 objects")
		s.store("one", meter.Use{Objects: 10})
		reads(50)
		require.NoError(t, s.Admit(one, meter.Use{Objects: 1}), "a deletion makes room")
	}
}

func TestMeter_showsWorkspacesThatItCannotRead(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 100}})
	s.mu.Lock()
	s.unread = []string{"g/broken"}
	s.mu.Unlock()
	s.known(t, workspace("a", "one"))
	const shown = `# HELP kedge_storage_incomplete_workspaces Workspaces whose last measurement could not read everything that they store.
# TYPE kedge_storage_incomplete_workspaces gauge
kedge_storage_incomplete_workspaces %d
`
	require.NoError(t, testutil.GatherAndCompare(s.metrics, strings.NewReader(fmt.Sprintf(shown, 2)), "kedge_storage_incomplete_workspaces"))
	s.mu.Lock()
	s.unread = nil
	s.mu.Unlock()
	s.clock.Step(10 * time.Minute)
	require.Eventually(t, func() bool {
		return testutil.GatherAndCompare(s.metrics, strings.NewReader(fmt.Sprintf(shown, 0)), "kedge_storage_incomplete_workspaces") == nil
	}, 5*time.Second, time.Millisecond, "it measures again by itself")
}

func TestMeter_withoutLimits(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{})
	for range 10 {
		require.NoError(t, s.Admit(workspace("a", "one"), meter.Use{Objects: 1e6, Bytes: 1 << 40, Definitions: 1e6, Bindings: 1e6}))
	}
}

func TestMeter_readsWhatIsStored(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 100}})
	s.store("one", meter.Use{Objects: 5, Bytes: 50, Definitions: 1, Bindings: 2})
	s.store("two", meter.Use{Objects: 1, Bytes: 10})
	_, _, ok := s.Read(meter.Workspace{Org: "a", UUID: "new"})
	require.False(t, ok, "it has no logical cluster")
	_, _, ok = s.Read(workspace("a", "one"))
	require.False(t, ok, "it was not measured")
	var use meter.Use
	var org int64
	require.Eventually(t, func() bool {
		use, org, ok = s.Read(workspace("a", "one"))
		return ok && org == 60
	}, 5*time.Second, time.Millisecond)
	require.Equal(t, meter.Use{Objects: 5, Bytes: 50, Definitions: 1, Bindings: 2}, use)
	require.NoError(t, s.Admit(workspace("a", "one"), meter.Use{Objects: 1, Bytes: 7}))
	use, org, _ = s.Read(workspace("a", "one"))
	require.Equal(t, meter.Use{Objects: 6, Bytes: 57, Definitions: 1, Bindings: 2}, use)
	require.EqualValues(t, 67, org)
	require.Equal(t, 1, s.times("one"), "reading has it measured once")
}

func TestMeter_readsTheBytesOfAnOrganization(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{OrgBytes: 15 * mib})
	s.store("one", meter.Use{Bytes: 3})
	s.store("two", meter.Use{Bytes: 4})
	_, ok := s.OrgBytes("a")
	require.False(t, ok, "nothing was measured")
	var used int64
	require.Eventually(t, func() bool { used, ok = s.OrgBytes("a"); return ok }, 5*time.Second, time.Millisecond)
	require.EqualValues(t, 7, used)
	require.Zero(t, s.times("other"))
}

// What nobody waits for is measured behind what somebody does, once, also where it was in line already.
func TestMeter_measuresForUsageBehindRequests(t *testing.T) {
	t.Parallel()
	s := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 100}})
	s.store("one", meter.Use{Objects: 7})
	require.Empty(t, s.ReadOrg("a"))
	require.Eventually(t, func() bool { return len(s.ReadOrg("a")) == 2 }, 5*time.Second, time.Millisecond)
	require.Equal(t, map[string]meter.Use{"uuid-one": {Objects: 7}, "uuid-two": {}}, s.ReadOrg("a"))
	require.Equal(t, []int{1, 1, 0}, []int{s.times("one"), s.times("two"), s.times("other")})
}
