package restore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/kcp-dev/sdk/apis/core"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// The logical clusters of these tests: the Organization acme with the Workspaces w1 and, between the snapshots of two
// shards, w2; and the Organization late with w3, which is from between the snapshots, too.
func clustersOfTwoSnapshots() (all []*kcpcorev1alpha1.LogicalCluster) {
	add := func(cluster, path, ownerCluster, owner string) {
		lc := &kcpcorev1alpha1.LogicalCluster{ObjectMeta: metav1.ObjectMeta{
			Name: kcpcorev1alpha1.LogicalClusterName,
			Annotations: map[string]string{
				core.LogicalClusterPathAnnotationKey: path, logicalcluster.AnnotationKey: cluster,
			},
		}}
		if owner != "" {
			lc.Spec.Owner = &kcpcorev1alpha1.LogicalClusterOwner{Cluster: ownerCluster, Name: owner}
		}
		all = append(all, lc)
	}
	// What is in an Organization can be listed before it.
	add("c-w3", "root:kedge:orgs:late:w3", "c-late", "w3")
	add("root", "root", "", "")
	add("c-orgs", "root:kedge:orgs", "c-kedge", "orgs")
	add("c-other", "root:other:orgs:x", "c-9", "x")
	add("c-acme", "root:kedge:orgs:acme", "c-orgs", "acme")
	add("c-w1", "root:kedge:orgs:acme:w1", "c-acme", "w1")
	add("c-w2", "root:kedge:orgs:acme:w2", "c-acme", "w2")
	add("c-late", "root:kedge:orgs:late", "c-orgs", "late")
	return all
}

type twoSnapshots struct {
	restore.Orphans
	closed []string
	// workspaces are kcp's, by the logical cluster that they are in and their name.
	workspaces map[string]*kcptenancyv1alpha1.Workspace
	behind     bool
}

func newTwoSnapshots(t *testing.T) *twoSnapshots {
	t.Helper()
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	s := &twoSnapshots{workspaces: map[string]*kcptenancyv1alpha1.Workspace{}}
	for at, cluster := range map[string]string{"c-orgs/acme": "c-acme", "c-acme/w1": "c-w1", "c-late/w3": "c-w3"} {
		ws := &kcptenancyv1alpha1.Workspace{}
		ws.Spec.Cluster = cluster
		s.workspaces[at] = ws
	}
	s.Orphans = restore.Orphans{
		Tree: tree,
		List: func(context.Context) ([]*kcpcorev1alpha1.LogicalCluster, error) { return clustersOfTwoSnapshots(), nil },
		Cached: func(cluster, name string) (*kcptenancyv1alpha1.Workspace, bool) {
			ws, ok := s.workspaces[cluster+"/"+name]
			return ws, ok && !s.behind
		},
		Read: func(_ context.Context, cluster, name string) (*kcptenancyv1alpha1.Workspace, error) {
			if ws, ok := s.workspaces[cluster+"/"+name]; ok {
				return ws, nil
			}
			return nil, apierrors.NewNotFound(kcptenancyv1alpha1.Resource("workspaces"), name)
		},
		Deactivate: func(_ context.Context, cluster string) error {
			s.closed = append(s.closed, cluster)
			return nil
		},
	}
	return s
}

// kcp would let a person who was removed into what was made between the snapshots.
func TestOrphans_areClosed(t *testing.T) {
	t.Parallel()
	want := []restore.Orphan{
		{Path: "root:kedge:orgs:acme:w2", Cluster: "c-w2"},
		{Path: "root:kedge:orgs:late", Cluster: "c-late"},
		{Path: "root:kedge:orgs:late:w3", Cluster: "c-w3"},
	}
	for _, behind := range []bool{false, true} {
		s := newTwoSnapshots(t)
		s.behind = behind
		found, err := s.Close(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, found)
		require.ElementsMatch(t, []string{"c-w2", "c-late", "c-w3"}, s.closed)
	}
}

// A controller makes what the backup has promised: kcp names the logical cluster in the Workspace last.
func TestOrphans_areNotWorkspacesInTheMaking(t *testing.T) {
	t.Parallel()
	s := newTwoSnapshots(t)
	s.workspaces["c-acme/w2"], s.workspaces["c-orgs/late"] = &kcptenancyv1alpha1.Workspace{}, &kcptenancyv1alpha1.Workspace{}
	found, err := s.Close(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
	require.Empty(t, s.closed)

	// Another one has the name since.
	s.workspaces["c-acme/w2"].Spec.Cluster = "c-another"
	found, err = s.Close(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, []string{"c-w2"}, s.closed)
}

func TestOrphans_sayWhatIsOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  error
		passes bool
	}{
		"no right": {fault: errs.New(errs.Forbidden, "no")},
		"no room":  {fault: errs.New(errs.TooLarge, "no")},
		"outage":   {fault: errors.New("no"), passes: true},
	} {
		s := newTwoSnapshots(t)
		s.Deactivate = func(_ context.Context, cluster string) error {
			if cluster == "c-w2" {
				return c.fault
			}
			return nil
		}
		found, err := s.Close(t.Context())
		require.Equal(t, c.passes, err != nil, "%s: %v", name, err)
		require.Len(t, found, 3, name)
		require.Contains(t, found[0].Open, "no", name)
		require.Empty(t, found[1].Open, name)

		s = newTwoSnapshots(t)
		s.Read = func(context.Context, string, string) (*kcptenancyv1alpha1.Workspace, error) {
			return nil, errors.New("no")
		}
		found, err = s.Close(t.Context())
		require.Error(t, err)
		require.Contains(t, found[0].Open, "it is not known")
		require.Empty(t, s.closed)
	}
	s := newTwoSnapshots(t)
	s.List = func(context.Context) ([]*kcpcorev1alpha1.LogicalCluster, error) {
		return nil, apierrors.NewForbidden(kcpcorev1alpha1.Resource("logicalclusters"), "", errors.New("no"))
	}
	found, err := s.Close(t.Context())
	require.NoError(t, err, "the hub waits for no right")
	require.Contains(t, found[0].Open, "it is not known")
	require.Empty(t, s.closed)
}
