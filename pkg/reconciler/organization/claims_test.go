package organization

import (
	"testing"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestO6_createsClaimedWorkspaces(t *testing.T) {
	t.Parallel()
	k := kcptest.New(t)
	asked := tenancy.NewClaim("new", "Display name", "bob", "hash", metav1.Unix(1, 0))
	fails := ""
	k.FailBefore(func(in kcpfake.Request) error {
		if in.Verb+" "+in.Resource == fails {
			return apierrors.NewInternalError(kcptest.ErrDown)
		}
		return nil
	})
	k.PutWorkspace("c", "unseen", "")
	o := tenancy.NewOrganization("o", "O", "alice")
	o.Spec.WorkspaceClaims = []v1alpha1.Claim{{UUID: "unseen"}, {UUID: "gone"}, asked}
	k.Put(kcptest.Orgs, o)
	step := &claims{
		cluster: func(org string) (string, bool) { return "c", org == "o" },
		children: func(org string) []tenancy.Workspace {
			require.Equal(t, "o", org)
			return []tenancy.Workspace{{UUID: "seen"}}
		},
		orgs: organizations{k.Stored.Organizations, kcptest.Orgs}, workspaces: k.Stored.Workspaces,
	}
	made := func() (all []tenancy.Workspace) {
		for _, ws := range k.Caches.Workspaces.InCluster("c") {
			if ws.Name != "unseen" {
				all = append(all, tenancy.WorkspaceOf("o", ws))
			}
		}
		return all
	}
	fails = "create workspaces"
	_, err := step.Reconcile(t.Context(), o)
	requireDown(t, err)
	require.Equal(t, []v1alpha1.Claim{{UUID: "unseen"}, asked, {UUID: "seen"}}, o.Spec.WorkspaceClaims, "what was asked for is kept")
	require.Empty(t, made())
	fails = ""
	_, err = step.Reconcile(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, []v1alpha1.Claim{{UUID: "unseen"}, {UUID: "new"}, {UUID: "seen"}}, o.Spec.WorkspaceClaims)
	require.Len(t, made(), 1)
	got, want := made()[0], tenancy.ClaimedWorkspace("o", asked)
	require.Equal(t, [...]string{want.UUID, want.DisplayName, want.CreatedBy}, [...]string{got.UUID, got.DisplayName, got.CreatedBy})
	require.Equal(t, want.Labels, got.Labels)

	k.Remove("c", &kcptenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
	o.Spec.WorkspaceClaims = []v1alpha1.Claim{asked}
	fails = "get organizations"
	_, err = step.Reconcile(t.Context(), o)
	requireDown(t, err)
	require.Empty(t, made(), "what kcp does not say to be asked for is not made")
}

// In a soft-deleted Org no Workspace is created. Claims wait for the undelete.
func TestO13_createsNothingInADeletedOrg(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	step := &claims{cluster: func(org string) (string, bool) { return "c", org == "o" }}
	deleted, going, unplaced := tenancy.NewOrganization("o", "O", "alice"), tenancy.NewOrganization("o", "O", "alice"), tenancy.NewOrganization("p", "P", "alice")
	deleted.Status.DeletionRequestedAt, going.DeletionTimestamp = &now, &now
	for _, o := range []*v1alpha1.Organization{deleted, going, unplaced} {
		o.Spec.WorkspaceClaims = []v1alpha1.Claim{tenancy.NewClaim("new", "New", "bob", "", now)}
		before := o.DeepCopy()
		_, err := step.Reconcile(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, before, o)
	}
}
