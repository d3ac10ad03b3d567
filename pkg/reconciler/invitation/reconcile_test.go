package invitation_test

import (
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/invitation"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const day = 24 * time.Hour

func TestReconcile_writesTheEndAndRemovesWhatIsOld(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		after       time.Duration
		state       v1alpha1.InvitationState
		workspace   string
		exists      bool
		deactivated bool
		ignored     bool
		verb        string
		again       time.Duration
	}{
		"open":                            {again: day + time.Millisecond},
		"accepted":                        {state: v1alpha1.InvitationAccepted, again: day + time.Millisecond},
		"expired":                         {after: day, verb: "patch"},
		"expired, and that is written":    {after: day, state: v1alpha1.InvitationExpired, again: 30*day + time.Millisecond},
		"accepted long ago":               {after: 30 * day, state: v1alpha1.InvitationAccepted, again: day + time.Millisecond},
		"old":                             {after: 31 * day, verb: "delete"},
		"old, and accepted":               {after: 31 * day, state: v1alpha1.InvitationAccepted, verb: "delete"},
		"old, of a deleted organization":  {after: 31 * day, deactivated: true},
		"old, and ignored":                {after: 31 * day, ignored: true},
		"to a workspace that kcp has":     {workspace: "w", exists: true, again: day + time.Millisecond},
		"to a workspace that was removed": {workspace: "w", verb: "delete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &v1alpha1.Invitation{Spec: v1alpha1.InvitationSpec{ExpiresAt: metav1.NewTime(now.Add(day))}}
			i.Name, i.Status.State = "i", c.state
			if c.workspace != "" {
				i.Spec.WorkspaceRef = &v1alpha1.NamedRef{Name: c.workspace}
			}
			if c.ignored {
				i.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
			}
			k := kcptest.New(t)
			k.Put("org", i)
			before := len(k.Writes())
			if c.exists {
				k.PutWorkspace("org", "w", "ws")
			}
			workspaces := k.Stored.Workspaces
			workspaces.Cache = kcptest.Behind[*kcptenancyv1alpha1.Workspace]{}
			clock := clocktesting.NewFakePassiveClock(now.Add(c.after))
			work := invitation.Invitations(k.Stored.Invitations).Reconciler(clock, workspaces, func(string) bool { return c.deactivated })
			result, err := work(t.Context(), controller.Key{Cluster: "org", Name: "i"})
			require.NoError(t, err)
			require.Equal(t, c.again, result.RequeueAfter)
			writes := k.Writes()[before:]
			if c.verb == "" {
				require.Empty(t, writes)
				return
			}
			require.Len(t, writes, 1)
			require.Equal(t, c.verb, writes[0].Verb)
			if c.verb == "patch" {
				require.Contains(t, string(writes[0].Body), `"state":"Expired"`)
			}
		})
	}
	require.Equal(t, 30*day, tenancy.InvitationsKept)
}
