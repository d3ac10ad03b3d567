package objects_test

import (
	"errors"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// A claim takes the spare of its name, whether the cache has the spare or not, unless it is another's.
func TestCreateChild_takesASpare(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	claimed := tenancy.Workspace{
		UUID: "w", DisplayName: "Web", Description: "What\nfor", CreatedBy: "alice", CreatedAt: at,
		Labels:  map[string]string{v1alpha1.IdempotencyKeyLabel: "k"},
		Billing: v1alpha1.RevisedBilling{Billing: v1alpha1.Billing{CostCenter: "4711"}, Revision: 2},
	}
	for name, test := range map[string]struct {
		cached      bool
		reservation string
		taken       bool
	}{
		"reserved for its maker":    {true, `{"user":"alice"}`, true},
		"reserved for nobody":       {true, "", true},
		"which the cache lacks":     {false, `{"user":"alice"}`, true},
		"reserved for another":      {true, `{"user":"bob"}`, false},
		"another's that it lacks":   {false, `{"user":"bob"}`, false},
		"with a broken reservation": {true, `{`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := kcpfake.New(t)
			ws := &kcptenancyv1alpha1.Workspace{}
			ws.Name, ws.Labels, ws.Finalizers = "w", map[string]string{v1alpha1.SpareLabel: "hash"}, []string{"core.kcp.io/logicalcluster"}
			ws.Annotations = map[string]string{v1alpha1.StatusAnnotation: "{}"}
			if test.reservation != "" {
				ws.Annotations[v1alpha1.SpareReservedAnnotation] = test.reservation
			}
			s.Put(cluster, ws)
			require.True(t, s.Read(cluster, ws))
			tree, err := tenancy.NewTree("root:kedge")
			require.NoError(t, err)
			stored := objects.New(s.Clients(), objects.Caches{Workspaces: held{ws, test.cached}}, tree).Workspaces
			err = stored.CreateChild(t.Context(), cluster, claimed)
			got := &kcptenancyv1alpha1.Workspace{}
			got.Name = "w"
			there := s.Read(cluster, got)
			if !test.taken {
				require.ErrorIs(t, err, controller.ErrRetry)
				require.True(t, !there || !got.DeletionTimestamp.IsZero(), "it is thrown away")
				return
			}
			require.NoError(t, err)
			require.True(t, there)
			require.Equal(t, map[string]string{v1alpha1.IdempotencyKeyLabel: "k"}, got.Labels)
			require.Equal(t, []string{"core.kcp.io/logicalcluster", v1alpha1.CascadeFinalizer}, got.Finalizers)
			require.Equal(t, "Web", got.Annotations[v1alpha1.DisplayNameAnnotation])
			require.Equal(t, claimed.Description, tenancy.WorkspaceOf("", got).Description)
			require.Equal(t, "alice", got.Annotations[v1alpha1.CreatedByAnnotation])
			require.Equal(t, "{}", got.Annotations[v1alpha1.StatusAnnotation], "what is done stays done")
			require.NotContains(t, got.Annotations, v1alpha1.SpareReservedAnnotation)
			require.Equal(t, claimed.Billing, tenancy.WorkspaceOf("", got).Billing)
			require.Equal(t, at.Time, tenancy.WorkspaceOf("", got).CreatedAt.UTC())
		})
	}
}

// A process that is killed at the write with which it takes a spare, or throws one away that is another's, leaves what the
// next one finishes. kcp needs a while to remove a spare.
func TestCreateChild_isFinishedAfterAKill(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reservation string
		after       bool
	}{
		"before it is taken":       {`{"user":"alice"}`, false},
		"after it is taken":        {`{"user":"alice"}`, true},
		"before it is thrown away": {`{"user":"bob"}`, false},
		"after it is thrown away":  {`{"user":"bob"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := kcpfake.New(t)
			tree, err := tenancy.NewTree("root:kedge")
			require.NoError(t, err)
			ws := &kcptenancyv1alpha1.Workspace{}
			ws.Name, ws.Labels, ws.Finalizers = "w", map[string]string{v1alpha1.SpareLabel: "hash"}, []string{"core.kcp.io/logicalcluster"}
			ws.Annotations = map[string]string{v1alpha1.SpareReservedAnnotation: test.reservation}
			s.Put(cluster, ws)
			create := func() error {
				cached := &kcptenancyv1alpha1.Workspace{}
				cached.Name = "w"
				there := s.Read(cluster, cached)
				stored := objects.New(s.Clients(), objects.Caches{Workspaces: held{cached, there}}, tree).Workspaces
				return stored.CreateChild(t.Context(), cluster, tenancy.Workspace{UUID: "w", DisplayName: "Web", CreatedBy: "alice"})
			}
			kill := func(kcpfake.Request) error { return errors.New("the process is killed") }
			if test.after {
				s.FailAfter(kill)
			} else {
				s.FailBefore(kill)
			}
			require.Error(t, create())
			s.FailBefore(nil)
			s.FailAfter(nil)

			got := &kcptenancyv1alpha1.Workspace{}
			got.Name = "w"
			if err := create(); err != nil {
				require.ErrorIs(t, err, controller.ErrRetry)
				require.True(t, s.Read(cluster, got))
				require.False(t, got.DeletionTimestamp.IsZero(), "it is another's")
				s.Remove(cluster, got)
				require.NoError(t, create())
			}
			require.True(t, s.Read(cluster, got))
			require.True(t, got.DeletionTimestamp.IsZero())
			require.False(t, tenancy.IsSpare(got))
			require.Equal(t, "alice", got.Annotations[v1alpha1.CreatedByAnnotation])
			require.NotContains(t, got.Annotations, v1alpha1.SpareReservedAnnotation)
			require.Contains(t, got.Finalizers, v1alpha1.CascadeFinalizer)
		})
	}
}

// held is a cache with one Workspace, or none.
type held struct {
	ws *kcptenancyv1alpha1.Workspace
	ok bool
}

func (h held) Get(string, string) (*kcptenancyv1alpha1.Workspace, bool) { return h.ws, h.ok }
func (h held) InCluster(string) []*kcptenancyv1alpha1.Workspace         { return nil }
