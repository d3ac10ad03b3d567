package organization

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

func TestInvitations_carryOutWhatWasAccepted(t *testing.T) {
	t.Parallel()
	carriesOut(t, invitations,
		func(name string, at metav1.MicroTime) v1alpha1.InvitationChange {
			return v1alpha1.InvitationChange{Name: name, RequestedAt: at}
		},
		func(c v1alpha1.InvitationChange) string { return c.Name })
}

func TestRequests_carryOutWhatWasAccepted(t *testing.T) {
	t.Parallel()
	carriesOut(t, requests,
		func(name string, at metav1.MicroTime) v1alpha1.RequestChange {
			return v1alpha1.RequestChange{Name: name, RequestedAt: at}
		},
		func(c v1alpha1.RequestChange) string { return c.Name })
}

func carriesOut[C any](t *testing.T, step func(clusterFunc, current, func(context.Context, string, C) error) *accepted[C],
	change func(name string, at metav1.MicroTime) C, nameOf func(C) string,
) {
	t.Helper()
	at := func(s int64) metav1.MicroTime { return metav1.NewMicroTime(time.Unix(s, 0)) }
	first, second := change("a", at(1)), change("b", at(2))
	for name, c := range map[string]struct {
		inKCP []C
		fails string
		did   []string
		left  []C
	}{
		"both":                           {[]C{first, second}, "", []string{"a", "b"}, nil},
		"one that fails stays":           {[]C{first, second}, "a", []string{"a", "b"}, []C{first}},
		"not what was carried out":       {[]C{second}, "", []string{"b"}, nil},
		"not what was decided anew":      {[]C{change("a", at(3))}, "", nil, nil},
		"nothing that kcp does not have": {nil, "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var did []string
			var s *accepted[C]
			s = step(
				func(string) (string, bool) { return "c", true },
				func(_ context.Context, o *v1alpha1.Organization) (*v1alpha1.Organization, error) {
					now := o.DeepCopy()
					*s.of(now) = c.inKCP
					return now, nil
				},
				func(_ context.Context, cluster string, change C) error {
					require.Equal(t, "c", cluster)
					did = append(did, nameOf(change))
					if nameOf(change) == c.fails {
						return errDown
					}
					return nil
				},
			)
			o := &v1alpha1.Organization{}
			*s.of(o) = []C{first, second}
			_, err := s.Reconcile(t.Context(), o)
			require.Equal(t, c.fails != "", err != nil)
			require.Equal(t, c.did, did)
			require.Equal(t, c.left, *s.of(o))
		})
	}
}
