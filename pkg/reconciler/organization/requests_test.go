package organization

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

func TestRequests_carryOutWhatWasAccepted(t *testing.T) {
	t.Parallel()
	at := func(s int64) metav1.MicroTime { return metav1.NewMicroTime(time.Unix(s, 0)) }
	first, second := v1alpha1.RequestChange{Name: "a", RequestedAt: at(1)}, v1alpha1.RequestChange{Name: "b", RequestedAt: at(2)}
	for name, c := range map[string]struct {
		inKCP []v1alpha1.RequestChange
		fails string
		did   []string
		left  []v1alpha1.RequestChange
	}{
		"both":                           {[]v1alpha1.RequestChange{first, second}, "", []string{"a", "b"}, nil},
		"one that fails stays":           {[]v1alpha1.RequestChange{first, second}, "a", []string{"a", "b"}, []v1alpha1.RequestChange{first}},
		"not what was carried out":       {[]v1alpha1.RequestChange{second}, "", []string{"b"}, nil},
		"not what was decided anew":      {[]v1alpha1.RequestChange{{Name: "a", RequestedAt: at(3)}}, "", nil, nil},
		"nothing that kcp does not have": {nil, "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var did []string
			s := &requests{
				cluster: func(string) (string, bool) { return "c", true },
				current: func(_ context.Context, o *v1alpha1.Organization) (*v1alpha1.Organization, error) {
					now := o.DeepCopy()
					now.Spec.RequestChanges = c.inKCP
					return now, nil
				},
				change: func(_ context.Context, cluster string, change v1alpha1.RequestChange) error {
					require.Equal(t, "c", cluster)
					did = append(did, change.Name)
					if change.Name == c.fails {
						return errDown
					}
					return nil
				},
			}
			o := &v1alpha1.Organization{Spec: v1alpha1.OrganizationSpec{RequestChanges: []v1alpha1.RequestChange{first, second}}}
			_, err := s.Reconcile(t.Context(), o)
			require.Equal(t, c.fails != "", err != nil)
			require.Equal(t, c.did, did)
			require.Equal(t, c.left, o.Spec.RequestChanges)
		})
	}
}
