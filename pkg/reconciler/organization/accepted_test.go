package organization

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestInvitations_carryOutWhatWasAccepted(t *testing.T) {
	t.Parallel()
	carriesOut(t,
		func(k *kcptest.KCP) *accepted[v1alpha1.InvitationChange] {
			return invitations(at("c"), organizations{k.Stored.Organizations, kcptest.Orgs}, k.Stored.Invitations)
		},
		func(name string, at metav1.MicroTime) v1alpha1.InvitationChange {
			return v1alpha1.InvitationChange{Name: name, RequestedAt: at, Invitation: &v1alpha1.InvitationSpec{}}
		})
}

func TestRequests_carryOutWhatWasAccepted(t *testing.T) {
	t.Parallel()
	carriesOut(t,
		func(k *kcptest.KCP) *accepted[v1alpha1.RequestChange] {
			return requests(at("c"), organizations{k.Stored.Organizations, kcptest.Orgs}, k.Stored.Requests)
		},
		func(name string, at metav1.MicroTime) v1alpha1.RequestChange {
			return v1alpha1.RequestChange{Name: name, RequestedAt: at, Request: &v1alpha1.AccessRequestSpec{}}
		})
}

// at is the logical cluster of every Organization.
func at(cluster string) clusterFunc {
	return func(string) (string, bool) { return cluster, true }
}

func carriesOut[C any](t *testing.T, step func(*kcptest.KCP) *accepted[C], change func(name string, at metav1.MicroTime) C) {
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
			k := kcptest.New(t)
			s := step(k)
			var did []string
			k.FailBefore(func(in kcpfake.Request) error {
				if in.Verb != "create" {
					return nil
				}
				var body struct{ Metadata metav1.ObjectMeta }
				_ = json.Unmarshal(in.Body, &body)
				did = append(did, body.Metadata.Name+" in "+in.Cluster)
				if body.Metadata.Name == c.fails {
					return apierrors.NewInternalError(kcptest.ErrDown)
				}
				return nil
			})
			o := &v1alpha1.Organization{}
			o.Name, o.UID = "o", "uid of o"
			*s.of(o) = c.inKCP
			k.Put(kcptest.Orgs, o)
			*s.of(o) = []C{first, second}
			_, err := s.Reconcile(t.Context(), o)
			require.Equal(t, c.fails != "", err != nil)
			var want []string
			for _, name := range c.did {
				want = append(want, name+" in c")
			}
			require.Equal(t, want, did)
			require.Equal(t, c.left, *s.of(o))
		})
	}
}
