package meter_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/storage/meter"
)

// many is the number of Workspaces of the Organization a in these tests. There is one of b.
const many = 50

// platform is a meter of Organizations, each of whose Workspaces stores one object of ten bytes.
type platform struct {
	*meter.Meter
	clock *clocktesting.FakeClock

	mu   sync.Mutex
	held map[string][]meter.Workspace
	// listed counts how often the Workspaces of an Organization were listed, and during is called in the next listing of a.
	listed map[string]int
	during func()
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{clock: clocktesting.NewFakeClock(time.Unix(1_000_000, 0)), listed: map[string]int{}}
	p.held = map[string][]meter.Workspace{"b": {workspace("b", "other")}}
	for i := range many {
		p.held["a"] = append(p.held["a"], workspace("a", fmt.Sprint("c", i)))
	}
	var err error
	p.Meter, err = meter.New(meter.Config{
		Limits: func(string) meter.Limits { return meter.Limits{OrgBytes: mib} }, Clock: p.clock, Metrics: prometheus.NewRegistry(),
		Measure: func(context.Context, string) (meter.Reading, error) {
			return meter.Reading{ByResource: map[string]meter.Use{"/configmaps": {Objects: 1, Bytes: 10}}}, nil
		},
		Workspaces: p.list,
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	require.Eventually(t, p.clock.HasWaiters, 5*time.Second, time.Millisecond)
	for org, all := range p.held {
		require.Eventually(t, func() bool { return len(p.ReadOrg(org)) == len(all) }, 5*time.Second, time.Millisecond)
	}
	p.change(func() { p.listed = map[string]int{} })
	return p
}

func (p *platform) list(org string) []meter.Workspace {
	p.mu.Lock()
	all, during := slices.Clone(p.held[org]), p.during
	p.listed[org]++
	if org == "a" {
		p.during = nil
	}
	p.mu.Unlock()
	if org == "a" && during != nil {
		during()
	}
	return all
}

func (p *platform) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// look has old measurements looked for once more, and waits until all Organizations were listed for that.
func (p *platform) look(t *testing.T) {
	t.Helper()
	before := map[string]int{}
	p.change(func() { before = maps.Clone(p.listed) })
	p.clock.Step(30 * time.Second)
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.listed["a"] > before["a"] && p.listed["b"] > before["b"]
	}, 5*time.Second, time.Millisecond)
}

// meanwhile has something done during the next listing of a. done is closed behind it; the listing waits for it for some
// seconds.
func (p *platform) meanwhile(do func()) (done chan struct{}) {
	done = make(chan struct{})
	p.change(func() {
		p.during = func() {
			go func() {
				defer close(done)
				do()
			}()
			select {
			case <-done:
			case <-time.After(5 * time.Second):
			}
		}
	})
	return done
}

// All growth waits for the lock of the meter. To look for old measurements costs no more than one listing of each
// Organization, during which nothing waits.
func TestMeter_listsAnOrganizationOnceForOldMeasurements(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	read := p.meanwhile(func() { _, _, _ = p.Read(workspace("a", "c0")) })
	p.look(t)
	// The second time begins when the first one is over.
	p.look(t)
	p.change(func() { require.Equal(t, map[string]int{"a": 2, "b": 2}, p.listed) })
	select {
	case <-read:
	default:
		require.Fail(t, "what is stored cannot be read while an Organization is listed")
	}
}

// A Workspace that grows for the first time while its Organization is listed is not in the list, and is not gone.
func TestMeter_keepsAWorkspaceThatGrowsDuringTheListing(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	late := workspace("a", "late")
	admitted := p.meanwhile(func() {
		p.change(func() { p.held["a"] = append(p.held["a"], late) })
		_, err := p.Admit(t.Context(), late, meter.Growth{Use: meter.Use{Objects: 4}})
		assert.NoError(t, err)
	})
	p.look(t)
	select {
	case <-admitted:
	case <-time.After(10 * time.Second):
		require.Fail(t, "nothing grows while an Organization is listed")
	}
	p.look(t)
	require.Eventually(t, func() bool {
		use, _, known := p.Read(late)
		return known && use.Objects == 5
	}, 5*time.Second, time.Millisecond, "one is stored, and the request for the others has no answer yet")
}

func TestMeter_forgetsWorkspacesThatAreGone(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	stores := func(want int64) func() bool {
		return func() bool {
			used, known := p.OrgBytes("a")
			return known && used == want
		}
	}
	require.Eventually(t, stores(many*10), 5*time.Second, time.Millisecond)
	p.change(func() { p.held["a"] = p.held["a"][1:] })
	p.look(t)
	require.Eventually(t, stores((many-1)*10), 5*time.Second, time.Millisecond)
}
