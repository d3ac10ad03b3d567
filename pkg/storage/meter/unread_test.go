package meter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/storage/meter"
)

// broken is the resource that a tenant makes unreadable.
const broken = "g/broken"

// change changes what Workspaces store.
func (w *world) change(f func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
}

// again has a Workspace measured once more, and waits for the end of it.
func (s *scene) again(t *testing.T, w meter.Workspace) {
	t.Helper()
	before := s.times(w.Cluster)
	require.Eventually(t, func() bool {
		s.clock.Step(time.Hour)
		return s.times(w.Cluster) > before
	}, 5*time.Second, time.Millisecond)
	// The next one begins behind its end.
	before = s.times(w.Cluster)
	require.Eventually(t, func() bool {
		s.clock.Step(time.Hour)
		return s.times(w.Cluster) > before
	}, 5*time.Second, time.Millisecond)
}

// adds is growth of the resource.
func adds(objects, bytes int64) meter.Growth {
	return meter.Growth{Resource: broken, Use: meter.Use{Objects: objects, Bytes: bytes}}
}

// A tenant makes a resource unreadable and fills it: each measurement would forget what was added behind the last one that
// could read it.
func TestMeter_aTenantCannotGrowBehindAResourceThatItBreaks(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*world){
		"kcp refuses to read it":           func(w *world) { w.unread = []string{broken} },
		"its group has no discovery":       func(w *world) { w.unread = []string{"g/"} },
		"its definition serves no version": func(w *world) { w.owned, w.gone = []string{broken}, true },
		"its provider took its API away":   func(w *world) { w.bound, w.gone = []string{broken}, true },
	} {
		for outcome, o := range map[string]meter.Outcome{"kcp makes it": meter.Created, "kcp makes it and answers with an error": meter.Unknown} {
			t.Run(name+", "+outcome, func(t *testing.T) {
				t.Parallel()
				s, one := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 100_000, Bytes: 100_000}}), workspace("a", "one")
				s.change(func(w *world) { w.broken = meter.Use{Objects: 10, Bytes: 100} })
				s.known(t, one)
				s.again(t, one)
				s.change(breaks)
				for round := range int64(5) {
					require.NoError(t, s.ask(one, adds(10, 50), o))
					s.again(t, one)
					use, _, _ := s.Read(one)
					require.Equal(t, meter.Use{Objects: 20 + 10*round, Bytes: 150 + 50*round}, use, "round %d", round)
				}
				s.change(func(w *world) { w.unread, w.gone, w.broken = nil, false, meter.Use{Objects: 1, Bytes: 2} })
				s.again(t, one)
				use, _, _ := s.Read(one)
				require.Equal(t, meter.Use{Objects: 1, Bytes: 2}, use, "what can be read is as large as it is")
			})
		}
	}
}

// A tenant makes the objects larger, or has made them so just before.
func TestMeter_updatesOfAnUnreadableResourceAreWeighed(t *testing.T) {
	t.Parallel()
	s, one := newScene(t, meter.Limits{Workspace: meter.Use{Bytes: 100_000}}), workspace("a", "one")
	s.known(t, one)
	s.again(t, one)
	update := meter.Growth{Resource: broken, Use: meter.Use{Bytes: 300}, Update: true}
	require.NoError(t, s.ask(one, update, meter.Changed))
	s.change(func(w *world) { w.unread = []string{broken} })
	s.again(t, one)
	use, _, _ := s.Read(one)
	require.EqualValues(t, 300, use.Bytes, "any of it may be new")
	require.ErrorContains(t, s.ask(one, update, meter.Changed), "broken.g cannot be read")
	require.NoError(t, s.ask(one, meter.Growth{Resource: broken, Use: meter.Use{Bytes: 200}}, meter.Changed), "weighed")
	update.Resource = "/configmaps"
	require.NoError(t, s.ask(one, update, meter.Changed), "what can be read needs no weighing")
	s.again(t, one)
	use, _, _ = s.Read(one)
	require.EqualValues(t, 500, use.Bytes)
}

// The refusal names what cannot be read, and the names that a tenant makes up below a group without discovery take no memory.
func TestMeter_saysWhatItCannotRead(t *testing.T) {
	t.Parallel()
	s, one := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 10}}), workspace("a", "one")
	s.known(t, one)
	s.again(t, one)
	s.change(func(w *world) { w.unread = []string{"g/"} })
	s.again(t, one)
	for _, name := range []string{"g/a", "g/b", "g/c"} {
		require.NoError(t, s.ask(one, meter.Growth{Resource: name, Use: meter.Use{Objects: 1}}, meter.Unknown))
		s.again(t, one)
	}
	use, _, _ := s.Read(one)
	require.EqualValues(t, 3, use.Objects)
	err := s.ask(one, meter.Growth{Resource: "/configmaps", Use: meter.Use{Objects: 8}}, meter.Created)
	refused(t, err, "of 10 objects")
	require.ErrorContains(t, err, "Of the group g, which kcp cannot read")
}

// A tenant fills a definition, has it serve no version, and waits for a restart of the hub, which has forgotten the count.
func TestMeter_aRestartGivesNoRoomToWhoHidesObjects(t *testing.T) {
	t.Parallel()
	limits := meter.Limits{Workspace: meter.Use{Objects: 100_000, Bytes: 100_000}}
	s, one := newScene(t, limits), workspace("a", "one")
	s.change(func(w *world) { w.owned, w.gone = []string{broken}, true })
	s.known(t, one)
	require.NoError(t, s.ask(one, adds(1, 1), meter.Created), "a definition that is a moment old is not in discovery")
	s.again(t, one)
	err := s.ask(one, meter.Growth{Resource: "/configmaps", Use: meter.Use{Objects: 1}}, meter.Created)
	require.True(t, errs.Is(err, errs.InsufficientStorage), "%v", err)
	require.ErrorContains(t, err, "kcp cannot read broken.g in any version")
	require.NoError(t, s.ask(one, meter.Growth{Resource: "definitions", Use: meter.Use{Bytes: 1}, Mends: true}, meter.Changed), "the way out")
	s.change(func(w *world) { w.gone = false })
	s.again(t, one)
	require.NoError(t, s.ask(one, adds(1, 1), meter.Created))
	s.change(func(w *world) { w.gone = true })
	s.again(t, one)
	require.NoError(t, s.ask(one, adds(1, 1), meter.Created), "its last count is known now")
}

// A provider whose API is dead from the beginning stops none of its tenants.
func TestMeter_aDeadProviderStopsNobodyAfterARestart(t *testing.T) {
	t.Parallel()
	s, one := newScene(t, meter.Limits{Workspace: meter.Use{Objects: 100_000}}), workspace("a", "one")
	s.change(func(w *world) { w.bound, w.gone = []string{broken}, true })
	s.known(t, one)
	s.again(t, one)
	require.NoError(t, s.ask(one, meter.Growth{Resource: "/configmaps", Use: meter.Use{Objects: 1}}, meter.Created))
}
