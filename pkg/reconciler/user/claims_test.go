package user

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestO5_createsClaimedOrgsAndReleasesMissingOnes(t *testing.T) {
	t.Parallel()
	asked := tenancy.NewClaim("new", "Display name", "alice", "hash", metav1.Unix(1, 0))
	down := errors.New("kcp cannot be reached")
	fails := true
	u := &v1alpha1.User{}
	u.Name = "alice"
	u.Spec.OrgClaims = []v1alpha1.Claim{{UUID: "unseen"}, {UUID: "gone"}, asked}
	var made []*v1alpha1.Organization
	step := &claims{
		existing: func(user string) []string {
			require.Equal(t, "alice", user)
			return []string{"seen"}
		},
		read: func(_ context.Context, user string) (*v1alpha1.User, error) {
			require.Equal(t, "alice", user)
			return u, nil
		},
		create: func(_ context.Context, o *v1alpha1.Organization) error {
			if fails {
				return down
			}
			made = append(made, o)
			return nil
		},
		exists: func(_ context.Context, uuid string) (bool, error) { return uuid == "unseen", nil },
	}
	_, err := step.Reconcile(t.Context(), u)
	require.ErrorIs(t, err, down)
	require.Equal(t, []v1alpha1.Claim{{UUID: "unseen"}, asked, {UUID: "seen"}}, u.Spec.OrgClaims, "what was asked for is kept")
	fails = false
	_, err = step.Reconcile(t.Context(), u)
	require.NoError(t, err)
	require.Equal(t, []v1alpha1.Claim{{UUID: "unseen"}, {UUID: "new"}, {UUID: "seen"}}, u.Spec.OrgClaims)
	require.Equal(t, []*v1alpha1.Organization{tenancy.ClaimedOrg(asked)}, made)
	require.Equal(t, v1alpha1.ConditionClaimsHandled, step.Condition())

	u.Spec.OrgClaims = []v1alpha1.Claim{asked}
	step.read = func(context.Context, string) (*v1alpha1.User, error) { return nil, down }
	_, err = step.Reconcile(t.Context(), u)
	require.ErrorIs(t, err, down)
	require.Len(t, made, 1, "what kcp does not say to be asked for is not made")
}
