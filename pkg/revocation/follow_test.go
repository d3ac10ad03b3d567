package revocation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// scene plays the gate, kcp and the streams.
type scene struct {
	*Revocation
	clock *clocktesting.FakeClock

	mu sync.Mutex
	// role is what the gate gives bob, refusal why it refuses him.
	role    v1alpha1.Role
	refusal error
	// answers are kcp's; the last one is repeated.
	answers []answer
	asked   int
	calls   []string
}

type answer struct {
	followed bool
	err      error
}

func newScene(t *testing.T, v *views.Views) *scene {
	t.Helper()
	s := &scene{role: v1alpha1.RoleMember, answers: []answer{{followed: true}}, clock: clocktesting.NewFakeClock(time.Now())}
	if v == nil {
		var err error
		clients := kcpfake.New(t).Clients()
		v, err = views.New(views.Config{Clients: clients, Admin: clients, Metrics: prometheus.NewRegistry()})
		require.NoError(t, err)
	}
	r, err := New(Config{
		Views: v, Enter: s.enter, Kcp: s, Streams: s, Clock: s.clock, Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	s.Revocation = r
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s
}

func (s *scene) enter(_, cluster string) (tenancy.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal != nil {
		return tenancy.Entry{}, s.refusal
	}
	return tenancy.Entry{Workspace: tenancy.Workspace{ClusterID: cluster}, Role: s.role}, nil
}

// Followed implements Kcp.
func (s *scene) Followed(_ context.Context, user, clusterRole string, left tenancy.Entry) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, "ask "+user+" "+left.Workspace.ClusterID+" "+clusterRole)
	a := s.answers[min(s.asked, len(s.answers)-1)]
	s.asked++
	return a.followed, a.err
}

// Recheck implements Streams.
func (s *scene) Recheck(user string) { s.called("recheck " + user) }

// RecheckClusters implements Streams.
func (s *scene) RecheckClusters(clusters ...string) {
	slices.Sort(clusters)
	s.called("recheck in " + strings.Join(slices.Compact(clusters), " "))
}

// Unbound implements Streams.
func (s *scene) Unbound(user, cluster, clusterRole string) {
	s.called("cut " + user + " " + cluster + " " + clusterRole)
}

func (s *scene) called(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

// set changes what is played.
func (s *scene) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// settled lets time pass until no end of a right is pending, and returns the calls.
func (s *scene) settled(t *testing.T) []string {
	t.Helper()
	require.Eventually(t, func() bool {
		s.clock.Step(10 * time.Millisecond)
		s.Revocation.mu.Lock()
		defer s.Revocation.mu.Unlock()
		return len(s.since) == 0
	}, time.Minute, time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

var bobsAdmin = loss{"bob", "ws1", tenancy.ClusterRoleAdmin}

const (
	cutBob = "cut bob ws1 kedge:workspace:admin"
	askBob = "ask bob ws1 kedge:workspace:admin"
)

// The attack: open a watch anew after the first cut, while kcp still goes by the binding.
func TestLost_cutsOnceMoreWhenKcpHasFollowed(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	s.answers = []answer{{}, {err: errors.New("kcp is busy")}, {}, {followed: true}}
	s.lost(bobsAdmin)
	require.Equal(t, []string{cutBob, askBob, askBob, askBob, askBob, cutBob}, s.settled(t))
	require.Zero(t, testutil.ToFloat64(s.metrics.late))
}

func TestLost_cutsWithoutAnAnswerAtTheDeadline(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]answer{"kcp grants it still": {}, "kcp cannot be asked": {err: errors.New("gone")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, nil)
			s.answers = []answer{a}
			began := s.clock.Now()
			s.lost(bobsAdmin)
			calls := s.settled(t)
			require.GreaterOrEqual(t, s.clock.Since(began), deadline)
			require.Equal(t, []string{cutBob, cutBob}, slices.DeleteFunc(slices.Clone(calls), func(c string) bool { return c == askBob }))
			require.Equal(t, cutBob, calls[len(calls)-1])
			require.Less(t, len(calls), 30, "the back-off grows")
			require.InDelta(t, 1, testutil.ToFloat64(s.metrics.late), 0)
		})
	}
}

func TestLost_doesNotAskWhereNothingIsLeftToAsk(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*scene){
		"the gate refuses the person":   func(s *scene) { s.refusal = errs.New(errs.Forbidden, "no access") },
		"the person has the role again": func(s *scene) { s.role = v1alpha1.RoleAdmin },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, nil)
			s.set(func() { set(s) })
			s.lost(bobsAdmin)
			require.Equal(t, []string{cutBob}, s.settled(t))
		})
	}
}

func TestLost_waitsForAGateThatCannotTell(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	s.refusal = errs.New(errs.Unavailable, "kcp is gone")
	s.lost(bobsAdmin)
	for range 50 {
		s.clock.Step(10 * time.Millisecond)
	}
	s.set(func() {
		require.Equal(t, []string{cutBob}, s.calls)
		s.refusal = nil
	})
	require.Equal(t, []string{cutBob, askBob, cutBob}, s.settled(t))
}

func TestLost_startsAnewWhenTheRightEndsOnceMore(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	s.answers = []answer{{}}
	s.lost(bobsAdmin)
	began := s.clock.Now()
	require.Eventually(t, func() bool {
		s.clock.Step(100 * time.Millisecond)
		return s.clock.Since(began) > deadline/2
	}, time.Minute, time.Millisecond)
	s.lost(bobsAdmin)
	began = s.clock.Now()
	s.settled(t)
	require.GreaterOrEqual(t, s.clock.Since(began), deadline, "the deadline is that of the last end")
}

func TestAfterRecheck_endsStreamsBeforeItHolds(t *testing.T) {
	t.Parallel()
	s, holds := newScene(t, nil), false
	followed := s.AfterRecheck(func(org, workspace, user string) bool {
		s.called("ask " + org + " " + workspace + " " + user)
		return holds
	})
	require.False(t, followed("acme", "w1", "bob"))
	holds = true
	require.True(t, followed("acme", "w1", "bob"))
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, []string{"ask acme w1 bob", "ask acme w1 bob", "recheck bob"}, s.calls)
}
