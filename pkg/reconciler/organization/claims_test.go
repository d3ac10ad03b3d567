package organization

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestO6_createsClaimedWorkspaces(t *testing.T) {
	t.Parallel()
	asked := tenancy.NewClaim("new", "Display name", "bob", "hash", metav1.Unix(1, 0))
	fails := ""
	o := tenancy.NewOrganization("o", "O", "alice")
	o.Spec.WorkspaceClaims = []v1alpha1.Claim{{UUID: "unseen"}, {UUID: "gone"}, asked}
	var made []tenancy.Workspace
	step := &claims{
		cluster: func(org string) (string, bool) { return "c", org == "o" },
		children: func(org string) []tenancy.Workspace {
			require.Equal(t, "o", org)
			return []tenancy.Workspace{{UUID: "seen"}}
		},
		read: func(_ context.Context, org string) (*v1alpha1.Organization, error) {
			require.Equal(t, "o", org)
			return o, nil
		},
		create: func(_ context.Context, cluster string, w tenancy.Workspace) error {
			require.Equal(t, "c", cluster)
			if w.UUID == fails {
				return errDown
			}
			made = append(made, w)
			return nil
		},
		exists: func(_ context.Context, cluster, uuid string) (bool, error) {
			require.Equal(t, "c", cluster)
			return uuid == "unseen", nil
		},
	}
	fails = "new"
	_, err := step.Reconcile(t.Context(), o)
	require.ErrorIs(t, err, errDown)
	require.Equal(t, []v1alpha1.Claim{{UUID: "unseen"}, asked, {UUID: "seen"}}, o.Spec.WorkspaceClaims, "what was asked for is kept")
	fails = ""
	_, err = step.Reconcile(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, []v1alpha1.Claim{{UUID: "unseen"}, {UUID: "new"}, {UUID: "seen"}}, o.Spec.WorkspaceClaims)
	require.Equal(t, []tenancy.Workspace{tenancy.ClaimedWorkspace("o", asked)}, made)

	o.Spec.WorkspaceClaims = []v1alpha1.Claim{asked}
	step.read = func(context.Context, string) (*v1alpha1.Organization, error) { return nil, errDown }
	_, err = step.Reconcile(t.Context(), o)
	require.ErrorIs(t, err, errDown)
	require.Len(t, made, 1, "what kcp does not say to be asked for is not made")
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
