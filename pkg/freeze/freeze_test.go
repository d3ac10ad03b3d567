package freeze_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/freeze"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
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

func TestFreezer_setsThePhaseThenTheAnnotation(t *testing.T) {
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
			err := freezer(s).Deactivate(t.Context(), tenantCluster)
			require.Equal(t, test.retried, apierrors.IsConflict(err))
			if !test.retried {
				require.NoError(t, err)
			}
			require.Equal(t, test.want, stateOf(s))
			require.Equal(t, test.writes, writesTo(s))
		})
	}
}

func TestFreezer_forgetsARefusal(t *testing.T) {
	t.Parallel()
	s := kcpWith(t, state{ready, false}, marked)
	f := freezer(s)
	s.FailBefore(func(r kcpfake.Request) error {
		if r.Mutating() {
			return errForbidden
		}
		return nil
	})
	require.True(t, errs.Is(f.Deactivate(t.Context(), tenantCluster), errs.Forbidden))
	require.Equal(t, state{ready, false}, stateOf(s))

	// The refusal is not remembered.
	s.FailBefore(nil)
	require.NoError(t, f.Deactivate(t.Context(), tenantCluster))
	require.Equal(t, state{unavailable, true}, stateOf(s))
}

// The definitions of a tenant can fill the annotations of a LogicalCluster.
func TestFreezer_doesWithoutTheAnnotationWhereThereIsNoRoom(t *testing.T) {
	t.Parallel()
	s := kcpWith(t, state{ready, false}, marked)
	tooLong := field.TooLong(field.NewPath("metadata", "annotations"), "", 256<<10)
	other := field.Invalid(field.NewPath("metadata", "annotations"), "", "no")
	refuse := func(because *field.Error) {
		s.FailBefore(func(r kcpfake.Request) error {
			if r.String() == writeMark && bytes.Contains(r.Body, []byte(`"true"`)) {
				return apierrors.NewInvalid(kcpcorev1alpha1.Kind("LogicalCluster"), "cluster", field.ErrorList{because})
			}
			return nil
		})
	}
	refuse(other)
	require.True(t, apierrors.IsInvalid(freezer(s).Deactivate(t.Context(), tenantCluster)), "the control")
	refuse(tooLong)
	for range 2 {
		require.True(t, errs.Is(freezer(s).Deactivate(t.Context(), tenantCluster), errs.TooLarge))
		require.Equal(t, state{unavailable, false}, stateOf(s))
	}
	require.NoError(t, freezer(s).Within(t.Context(), tenantCluster, func() bool { return true }, func() error { return nil }))
	require.Equal(t, state{unavailable, false}, stateOf(s))
	s.FailBefore(nil)
	require.NoError(t, freezer(s).Activate(t.Context(), tenantCluster))
	require.Equal(t, state{ready, false}, stateOf(s))
}

func TestFreezer_givesWayToAnotherWriter(t *testing.T) {
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
		require.True(t, apierrors.IsConflict(freezer(s).Deactivate(t.Context(), tenantCluster)), at)
		require.Equal(t, state{ready, false}, stateOf(s), at)
	}
}

func TestFreezer_removesTheAnnotationThenSetsThePhase(t *testing.T) {
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
			require.NoError(t, freezer(s).Activate(t.Context(), tenantCluster))
			require.Equal(t, test.want, stateOf(s))
			require.Equal(t, test.writes, writesTo(s))
		})
	}
}

func TestFreezer_keepsThePhaseForDeletion(t *testing.T) {
	t.Parallel()
	s := kcpWith(t, state{unavailable, true}, marked)
	require.NoError(t, freezer(s).ActivateForDeletion(t.Context(), tenantCluster))
	require.Equal(t, state{unavailable, false}, stateOf(s))
	require.Equal(t, []string{writeMark}, writesTo(s))
}

func TestFreezer_activatesForAWrite(t *testing.T) {
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
			err := freezer(s).Within(t.Context(), tenantCluster, func() bool { return deleted }, func() error {
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

func TestFreezer_writesWhereItMayNotDeactivate(t *testing.T) {
	t.Parallel()
	s := kcpWith(t, state{unavailable, false}, marked)
	err := freezer(s).Within(t.Context(), tenantCluster, func() bool { return true }, func() error {
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

func TestFreezer_namesTheVersionItRead(t *testing.T) {
	t.Parallel()
	s := kcpWith(t, state{ready, false}, marked)
	require.NoError(t, freezer(s).Deactivate(t.Context(), tenantCluster))
	for _, w := range s.Writes() {
		var body struct {
			Metadata struct{ UID, ResourceVersion string }
		}
		require.NoError(t, json.Unmarshal(w.Body, &body))
		require.NotEmpty(t, body.Metadata.UID)
		require.NotEmpty(t, body.Metadata.ResourceVersion)
	}
}

func freezer(s *kcpfake.Server) *freeze.Freezer {
	return freeze.New(s.Clients(), nil, nil, "give it another kubeconfig")
}

func TestFreezer_reactivatesOnlyTheVersionItWasGiven(t *testing.T) {
	t.Parallel()
	for _, annotation := range []string{marked, markedBefore} {
		s := kcpWith(t, state{inactive, true}, annotation)
		lc, err := s.Clients().LogicalClusters(s.URL() + "/clusters/*").GetClient().Get().Resource("logicalclusters").DoRaw(t.Context())
		require.NoError(t, err)
		var list kcpcorev1alpha1.LogicalClusterList
		require.NoError(t, json.Unmarshal(lc, &list))
		require.Len(t, list.Items, 1)

		old := list.Items[0].DeepCopy()
		old.ResourceVersion += "0"
		require.True(t, apierrors.IsConflict(freezer(s).Reactivate(t.Context(), old)))
		require.Equal(t, state{inactive, true}, stateOf(s))
		require.NoError(t, freezer(s).Reactivate(t.Context(), &list.Items[0]))
		require.Equal(t, state{inactive, false}, stateOf(s))
	}
}

func TestFreezer_deactivatedIsReadFromTheCache(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		annotation string
		want       bool
	}{{"", false}, {marked, true}, {markedBefore, true}} {
		lc := &kcpcorev1alpha1.LogicalCluster{}
		lc.Annotations = map[string]string{test.annotation: "true"}
		require.Equal(t, test.want, freeze.New(nil, nil, cache{lc}, "").Deactivated(tenantCluster))
	}
	require.False(t, freeze.New(nil, nil, cache{}, "").Deactivated(tenantCluster))
}

// cache holds one logical cluster, or none.
type cache struct {
	lc *kcpcorev1alpha1.LogicalCluster
}

func (c cache) Get(cluster, name string) (*kcpcorev1alpha1.LogicalCluster, bool) {
	return c.lc, c.lc != nil && cluster == tenantCluster && name == kcpcorev1alpha1.LogicalClusterName
}

func (cache) InCluster(string) []*kcpcorev1alpha1.LogicalCluster { return nil }

func (cache) All() iter.Seq[*kcpcorev1alpha1.LogicalCluster] { return nil }

func TestFreezer_writesToTheShardOfTheLogicalCluster(t *testing.T) {
	t.Parallel()
	front, shard := kcpfake.New(t), kcpWith(t, state{phase: ready}, "")
	f := freeze.New(front.Clients(), func(_ context.Context, cluster string) (string, error) {
		if cluster != tenantCluster {
			return "", apierrors.NewNotFound(kcpcorev1alpha1.Resource("logicalclusters"), cluster)
		}
		return shard.URL(), nil
	}, nil, "")
	require.NoError(t, f.Deactivate(t.Context(), tenantCluster))
	require.Equal(t, state{unavailable, true}, stateOf(shard))
	require.NoError(t, f.Activate(t.Context(), tenantCluster))
	require.Equal(t, state{phase: ready}, stateOf(shard))
	require.NoError(t, f.Deactivate(t.Context(), "gone"))
	require.NoError(t, f.Activate(t.Context(), "gone"))
	require.Empty(t, front.Requests())
}
