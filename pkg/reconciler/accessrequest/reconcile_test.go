package accessrequest_test

import (
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/accessrequest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
)

const day = 24 * time.Hour

func TestReconcile_writesTheEndAndRemovesWhatIsOld(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		after       time.Duration
		state       v1alpha1.AccessRequestState
		gone        bool
		deactivated bool
		verb, body  string
		again       time.Duration
	}{
		"open":                           {again: day + time.Millisecond},
		"lapsed":                         {after: day, verb: "patch", body: `"state":"Lapsed"`},
		"lapsed, and that is written":    {after: day, state: v1alpha1.RequestLapsed, again: 29*day + time.Millisecond},
		"approved":                       {state: v1alpha1.RequestApproved, again: time.Hour + time.Millisecond},
		"ended":                          {after: time.Hour, state: v1alpha1.RequestApproved, verb: "patch", body: `"state":"Ended"`},
		"denied":                         {after: day, state: v1alpha1.RequestDenied, again: 29*day + time.Millisecond},
		"old":                            {after: 30 * day, state: v1alpha1.RequestDenied, verb: "delete"},
		"old, of a deleted organization": {after: 30 * day, deactivated: true},
		"in a workspace that is gone":    {gone: true, verb: "delete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &v1alpha1.AccessRequest{Spec: v1alpha1.AccessRequestSpec{WorkspaceRef: v1alpha1.NamedRef{Name: "w"}}}
			r.Name, r.Status.State, r.CreationTimestamp = "r", c.state, metav1.NewTime(made)
			if c.state == v1alpha1.RequestApproved {
				r.Status.EndsAt = &metav1.Time{Time: made.Add(time.Hour)}
			}
			k := kcptest.New(t)
			k.Put("org", r)
			before := len(k.Writes())
			if !c.gone {
				k.PutWorkspace("org", "w", "ws")
			}
			workspaces := k.Stored.Workspaces
			workspaces.Cache = kcptest.Behind[*kcptenancyv1alpha1.Workspace]{}
			clock := clocktesting.NewFakePassiveClock(made.Add(c.after))
			work := accessrequest.Requests(k.Stored.Requests).Reconciler(clock, workspaces, func(string) bool { return c.deactivated })
			result, err := work(t.Context(), controller.Key{Cluster: "org", Name: "r"})
			require.NoError(t, err)
			require.Equal(t, c.again, result.RequeueAfter)
			writes := k.Writes()[before:]
			if c.verb == "" {
				require.Empty(t, writes)
				return
			}
			require.Len(t, writes, 1)
			require.Equal(t, c.verb, writes[0].Verb)
			require.Contains(t, string(writes[0].Body), c.body)
		})
	}
}
