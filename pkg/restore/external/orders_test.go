package external

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const cluster = "root-id"

// planOf has steps that do not compress to one chunk.
func planOf(steps int) (p restore.Plan) {
	for range steps {
		object := &strings.Builder{}
		for range 100 {
			object.WriteString(rand.Text())
		}
		p.Steps = append(p.Steps, restore.Step{Kind: restore.RemoveMember, Object: object.String()})
	}
	return p
}

// chunks are the names of the Secrets but the head.
func chunks(s *kcpfake.Server) (names []string) {
	for _, o := range s.List(cluster, "", "secrets") {
		if o.GetName() != headName {
			names = append(names, o.GetName())
		}
	}
	return names
}

func ordered(t *testing.T, o *Orders, p restore.Plan) (id string) {
	t.Helper()
	id, err := o.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, o.Complete(t.Context(), id, p))
	return id
}

func TestOrders_areWholeOrNotThere(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	o, plan := New(s.Clients(), cluster), planOf(400)
	state, err := o.State(t.Context())
	require.NoError(t, err)
	require.False(t, state.Replaying())
	_, err = o.Report(t.Context())
	require.ErrorIs(t, err, ErrNone)

	// Every write of the command is its last one.
	for n := 1; ; n++ {
		id, err := o.Begin(t.Context())
		require.NoError(t, err)
		broke := s.Break(n, n%2 == 0)
		err = o.Complete(t.Context(), id, plan)
		if !broke() {
			require.NoError(t, err)
			break
		}
		state, held := o.State(t.Context())
		require.NoError(t, held)
		require.True(t, state.Replaying(), "no hub serves")
		if state.Phase == restore.PhaseOrdered {
			read, err := o.Plan(t.Context(), state)
			require.NoError(t, err)
			require.Equal(t, plan, read)
		}
	}
	s.FailBefore(nil)
	s.FailAfter(nil)
	state, err = o.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, restore.PhaseOrdered, state.Phase)
	require.Len(t, chunks(s), state.Plan.Chunks, "what was interrupted is removed")
	require.Greater(t, state.Plan.Chunks, 1)
	for _, c := range s.List(cluster, "", "secrets") {
		raw, err := json.Marshal(c.Object)
		require.NoError(t, err)
		require.Less(t, len(raw), 1<<20, "etcd refuses what is larger than 1.5 MiB")
	}

	changed := state.Plan
	changed.SHA256 = strings.Repeat("0", 64)
	require.ErrorContains(t, o.read(t.Context(), changed, &plan), "the hash is another one")
	require.NoError(t, o.secrets.Delete(t.Context(), state.Plan.name(1), metav1.DeleteOptions{}))
	_, err = o.Plan(t.Context(), state)
	require.Error(t, err)
}

func TestOrders_goForwardOnly(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	o := New(s.Clients(), cluster)
	first := ordered(t, o, planOf(1))
	require.ErrorContains(t, o.Release(t.Context()), "repeat this when they serve")
	plan := planOf(2)
	id := ordered(t, o, plan)
	require.ErrorIs(t, o.Complete(t.Context(), first, plan), ErrReplaced)
	require.ErrorIs(t, o.Withdraw(t.Context(), first), ErrReplaced)
	require.ErrorIs(t, o.Save(t.Context(), first, restore.Report{}, restore.PhaseApplied), ErrReplaced)

	report := restore.Report{Plan: plan, Done: plan.Steps[:1]}
	require.NoError(t, o.Save(t.Context(), id, report, restore.PhaseOrdered))
	read, err := o.Report(t.Context())
	require.NoError(t, err)
	require.Equal(t, report, read)
	// Replicas write at the same time.
	report.Done = plan.Steps
	var all sync.WaitGroup
	for range 4 {
		own := New(s.Clients(), cluster)
		all.Go(func() {
			if err := own.Save(t.Context(), id, report, restore.PhaseApplied); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.NoError(t, o.Save(t.Context(), id, restore.Report{}, restore.PhaseOrdered), "one that is behind")
	read, err = o.Report(t.Context())
	require.NoError(t, err)
	require.Equal(t, report, read)
	state, err := o.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, restore.PhaseApplied, state.Phase)
	require.True(t, state.Replaying())

	require.NoError(t, o.Save(t.Context(), id, report, restore.PhaseHeld))
	state, err = o.State(t.Context())
	require.NoError(t, err)
	require.False(t, state.Replaying())
	require.Len(t, chunks(s), 2, "the plan and the last report")
	require.NoError(t, o.Release(t.Context()))
	released := State{Format: format, ID: id}
	left := func() State {
		t.Helper()
		require.Empty(t, chunks(s))
		state, err := o.State(t.Context())
		require.NoError(t, err)
		return state
	}
	require.Equal(t, released, left(), "a hub that has the order knows what became of it")
	require.NoError(t, o.Save(t.Context(), id, report, restore.PhaseHeld), "a replica that is late")
	require.NoError(t, o.Release(t.Context()))
	require.Equal(t, released, left())
	_, err = o.Report(t.Context())
	require.ErrorIs(t, err, ErrNone)

	id, err = o.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, o.Withdraw(t.Context(), id))
	require.Equal(t, released, left())
	require.NoError(t, o.secrets.Delete(t.Context(), headName, metav1.DeleteOptions{}))
	require.ErrorIs(t, o.Save(t.Context(), released.ID, report, restore.PhaseHeld), ErrReplaced, "kcp was restored again")
	require.Empty(t, chunks(s))
}

// A second command that is refused would otherwise take from the replicas what they have to end, and release purges.
func TestOrders_keepWhatARefusedCommandWouldReplace(t *testing.T) {
	t.Parallel()
	for _, phase := range []restore.Phase{restore.PhaseOrdered, restore.PhaseApplied, restore.PhaseHeld} {
		s := kcpfake.New(t)
		o, plan := New(s.Clients(), cluster), planOf(2)
		first := ordered(t, o, plan)
		report := restore.Report{Plan: plan, Done: plan.Steps[:1]}
		require.NoError(t, o.Save(t.Context(), first, report, phase))
		before, err := o.State(t.Context())
		require.NoError(t, err)

		killed, err := o.Begin(t.Context())
		require.NoError(t, err)
		waits, err := o.State(t.Context())
		require.NoError(t, err)
		require.True(t, waits.Replaying(), "no hub serves")
		require.ErrorIs(t, o.Save(t.Context(), first, report, restore.PhaseHeld), ErrReplaced)
		s.FailAfter(func(r kcpfake.Request) error {
			if r.Verb != "update" {
				return nil
			}
			s.FailAfter(nil)
			return apierrors.NewConflict(schema.GroupResource{Resource: r.Resource}, r.Name, errors.New("it was written"))
		})
		refused, err := o.Begin(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, o.Withdraw(t.Context(), killed), ErrReplaced)
		require.NoError(t, o.Withdraw(t.Context(), refused))
		after, err := o.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, waits, after, "a command that was killed is repeated first")
		require.NoError(t, o.Withdraw(t.Context(), killed))

		after, err = o.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, after)
		read, err := o.Report(t.Context())
		require.NoError(t, err)
		require.Equal(t, report, read)
		require.NoError(t, o.Save(t.Context(), first, report, restore.PhaseHeld), "its replicas go on")

		// One that is not refused replaces it.
		id := ordered(t, o, plan)
		require.ErrorIs(t, o.Withdraw(t.Context(), id), ErrReplaced, "it is whole")
		after, err = o.State(t.Context())
		require.NoError(t, err)
		require.Nil(t, after.Before)
		require.Len(t, chunks(s), 1, "the plan")
	}
}

func TestOrders_ofAnotherVersionAreNotRead(t *testing.T) {
	t.Parallel()
	s := kcpfake.New(t)
	o := New(s.Clients(), cluster)
	ordered(t, o, planOf(1))
	_, held, err := o.head(t.Context())
	require.NoError(t, err)
	held.Data[dataField] = []byte(`{"format":2,"phase":"Ordered"}`)
	_, err = o.secrets.Update(t.Context(), held, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = o.State(t.Context())
	require.ErrorContains(t, err, "use the same version for the command and the hubs")
}
