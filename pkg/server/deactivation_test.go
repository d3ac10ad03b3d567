package server

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp/kcpfake"
)

const (
	tenantCluster = "c1"
	ready         = kcpcorev1alpha1.LogicalClusterPhaseReady
	unavailable   = kcpcorev1alpha1.LogicalClusterPhaseUnavailable
	inactive      = kcpcorev1alpha1.LogicalClusterPhaseInactive
	creating      = kcpcorev1alpha1.LogicalClusterPhaseInitializing
	marked        = kcpcorev1alpha1.LogicalClusterInactiveAnnotationKey
	markedBefore  = "internal.kcp.io/inactive"

	writePhase = "patch logicalclusters/cluster/status in c1"
	writeMark  = "patch logicalclusters/cluster in c1"
)

var errForbidden = apierrors.NewForbidden(kcpcorev1alpha1.Resource("logicalclusters"), "cluster", errors.New("not the shard admin"))

// state is what makes a logical cluster deactivated.
type state struct {
	phase  kcpcorev1alpha1.LogicalClusterPhaseType
	marked bool
}

// kcpWith is a kcp with one logical cluster; with an empty phase it has none.
func kcpWith(t *testing.T, is state, annotation string) *kcpfake.Server {
	t.Helper()
	s := kcpfake.New(t)
	if is.phase == "" {
		return s
	}
	lc := &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{Name: kcpcorev1alpha1.LogicalClusterName}}
	lc.Status.Phase = is.phase
	if is.marked {
		lc.Annotations = map[string]string{annotation: "true"}
	}
	s.Put(tenantCluster, lc)
	return s
}

func stateOf(s *kcpfake.Server) state {
	lc := &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{Name: kcpcorev1alpha1.LogicalClusterName}}
	if !s.Read(tenantCluster, lc) {
		return state{}
	}
	return state{lc.Status.Phase, lc.Annotations[marked] != "" || lc.Annotations[markedBefore] != ""}
}

func writesTo(s *kcpfake.Server) []string {
	var writes []string
	for _, w := range s.Writes() {
		writes = append(writes, w.String())
	}
	return writes
}

func TestDeactivate_setsThePhaseThenTheAnnotation(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		is, want   state
		writes     []string
		retried    bool
		annotation string
	}{
		{name: "active", is: state{ready, false}, want: state{unavailable, true}, writes: []string{writePhase, writeMark}},
		{name: "half deactivated", is: state{unavailable, false}, want: state{unavailable, true}, writes: []string{writeMark}},
		{name: "deactivated", is: state{unavailable, true}, want: state{unavailable, true}, writes: []string{writeMark}},
		{name: "being created", is: state{creating, false}, want: state{creating, false}},
		{name: "Inactive by the hand of kcp's admin", is: state{inactive, true}, want: state{inactive, true}, retried: true},
		{name: "gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := kcpWith(t, test.is, marked)
			err := deactivating(s).deactivate(t.Context(), tenantCluster)
			require.Equal(t, test.retried, errors.Is(err, controller.ErrRetry))
			if !test.retried {
				require.NoError(t, err)
			}
			require.Equal(t, test.want, stateOf(s))
			require.Equal(t, test.writes, writesTo(s))
		})
	}
}

func TestDeactivate_isRefusedWithoutTheRight(t *testing.T) {
	t.Parallel()
	s := kcpWith(t, state{ready, false}, marked)
	f := deactivating(s)
	s.FailBefore(func(r kcpfake.Request) error {
		if r.Mutating() {
			return errForbidden
		}
		return nil
	})
	require.True(t, errs.Is(f.deactivate(t.Context(), tenantCluster), errs.Forbidden))
	require.Equal(t, state{ready, false}, stateOf(s))

	// The refusal is not remembered.
	s.FailBefore(nil)
	require.NoError(t, f.deactivate(t.Context(), tenantCluster))
	require.Equal(t, state{unavailable, true}, stateOf(s))
}

func TestDeactivate_givesWayToAnotherWriter(t *testing.T) {
	t.Parallel()
	for _, at := range []string{writePhase, writeMark} {
		s := kcpWith(t, state{ready, false}, marked)
		s.FailBefore(func(r kcpfake.Request) error {
			if r.String() == at {
				s.FailBefore(nil)
				lc := &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{Name: kcpcorev1alpha1.LogicalClusterName}}
				lc.Status.Phase = ready
				s.Put(tenantCluster, lc)
			}
			return nil
		})
		require.ErrorIs(t, deactivating(s).deactivate(t.Context(), tenantCluster), controller.ErrRetry, at)
		require.Equal(t, state{ready, false}, stateOf(s), at)
	}
}

func TestActivate_removesTheAnnotationThenSetsThePhase(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		is, want   state
		annotation string
		writes     []string
	}{
		{name: "deactivated", is: state{unavailable, true}, annotation: marked, want: state{ready, false}, writes: []string{writeMark, writePhase}},
		{name: "annotated as by an older kcp", is: state{unavailable, true}, annotation: markedBefore, want: state{ready, false}, writes: []string{writeMark, writePhase}},
		{name: "half activated", is: state{unavailable, false}, want: state{ready, false}, writes: []string{writeMark, writePhase}},
		{name: "active", is: state{ready, false}, want: state{ready, false}, writes: []string{writeMark}},
		{name: "being created", is: state{creating, false}, want: state{creating, false}, writes: []string{writeMark}},
		{name: "gone", writes: []string{writeMark}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := kcpWith(t, test.is, test.annotation)
			require.NoError(t, deactivating(s).activate(t.Context(), tenantCluster))
			require.Equal(t, test.want, stateOf(s))
			require.Equal(t, test.writes, writesTo(s))
		})
	}
}

func TestActivateForDeletion_keepsThePhase(t *testing.T) {
	t.Parallel()
	s := kcpWith(t, state{unavailable, true}, marked)
	require.NoError(t, deactivating(s).activateForDeletion(t.Context(), tenantCluster))
	require.Equal(t, state{unavailable, false}, stateOf(s))
	require.Equal(t, []string{writeMark}, writesTo(s))
}

func TestWithin_activatesForTheWrite(t *testing.T) {
	t.Parallel()
	failure := errors.New("the write failed")
	for _, test := range []struct {
		name string
		is   state
		// deletion is what the views say before the write and after it.
		deletion [2]bool
		failure  error
		during   state
		want     state
		writes   int
	}{
		{name: "an active Org", is: state{ready, false}, during: state{ready, false}, want: state{ready, false}},
		{name: "a deactivated Org", is: state{unavailable, true}, deletion: [2]bool{true, true}, during: state{ready, false}, want: state{unavailable, true}, writes: 4},
		{name: "an Org undeleted meanwhile", is: state{unavailable, true}, deletion: [2]bool{true, false}, during: state{ready, false}, want: state{ready, false}, writes: 2},
		{name: "a write that fails", is: state{unavailable, true}, deletion: [2]bool{true, true}, failure: failure, during: state{ready, false}, want: state{unavailable, true}, writes: 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := kcpWith(t, test.is, marked)
			deleted := test.deletion[0]
			err := deactivating(s).within(t.Context(), tenantCluster, func() bool { return deleted }, func() error {
				require.Equal(t, test.during, stateOf(s))
				deleted = test.deletion[1]
				return test.failure
			})
			require.ErrorIs(t, err, test.failure)
			require.Equal(t, test.want, stateOf(s))
			require.Len(t, writesTo(s), test.writes)
		})
	}
}

func TestWithin_succeedsWhereKCPForbidsToDeactivate(t *testing.T) {
	t.Parallel()
	s := kcpWith(t, state{unavailable, false}, marked)
	err := deactivating(s).within(t.Context(), tenantCluster, func() bool { return true }, func() error {
		s.FailBefore(func(r kcpfake.Request) error {
			if r.Mutating() {
				return errForbidden
			}
			return nil
		})
		return nil
	})
	require.NoError(t, err)
}

func TestDeactivate_sendsJSON(t *testing.T) {
	t.Parallel()
	s := kcpWith(t, state{ready, false}, marked)
	require.NoError(t, deactivating(s).deactivate(t.Context(), tenantCluster))
	for _, w := range s.Writes() {
		var body struct {
			Metadata struct{ UID, ResourceVersion string }
		}
		require.NoError(t, json.Unmarshal(w.Body, &body))
		require.NotEmpty(t, body.Metadata.UID)
		require.NotEmpty(t, body.Metadata.ResourceVersion)
	}
}

// deactivator is what is under test.
type deactivator struct{ *writes }

func deactivating(s *kcpfake.Server) deactivator {
	return deactivator{&writes{closer: s.Clients(), refused: func() {}}}
}

func (d deactivator) deactivate(ctx context.Context, cluster string) error {
	return d.freeze(ctx, cluster)
}

func (d deactivator) activate(ctx context.Context, cluster string) error { return d.thaw(ctx, cluster) }

func (d deactivator) activateForDeletion(ctx context.Context, cluster string) error {
	return d.release(ctx, cluster)
}

func (d deactivator) within(ctx context.Context, cluster string, deleted func() bool, do func() error) error {
	return d.writes.within(ctx, cluster, deleted, do)
}
