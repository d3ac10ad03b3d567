package organization

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// roster is a kcp with the Memberships of one Org, in the logical cluster c. It counts the requests of the step.
type roster struct {
	*kcptest.KCP
	kcptest.Calls
	// org is the Organization in kcp; nil if it is as the cache has it.
	org *v1alpha1.Organization
	// unplaced says that the Org has no workspace yet.
	unplaced bool
	expired  []*v1alpha1.Membership
	// bound is true while kcp has bindings of those who are expired.
	bound bool
	// audited are the changes in the audit log.
	audited []string
}

func newRoster(t *testing.T, memberships ...*v1alpha1.Membership) *roster {
	r := &roster{KCP: kcptest.New(t)}
	for _, m := range memberships {
		m.UID = types.UID("uid of " + m.Name)
		r.Put("c", m)
	}
	r.FailBefore(func(in kcpfake.Request) error { return r.request(in, false) })
	r.FailAfter(func(in kcpfake.Request) error { return r.request(in, true) })
	return r
}

// request counts a request of the step, before or after it is carried out.
func (r *roster) request(in kcpfake.Request, after bool) error {
	var body struct{ Metadata metav1.ObjectMeta }
	_ = json.Unmarshal(in.Body, &body)
	what := map[string]string{
		"get organizations": "read", "get memberships": "get " + in.Name, "list memberships": "list " + in.Cluster,
		"create memberships": "create " + body.Metadata.Name,
		"patch memberships":  "set " + in.Name, "delete memberships": "remove " + in.Name, "create bots": "bot " + body.Metadata.Name,
	}[in.Verb+" "+in.Resource]
	if after != r.Late {
		return nil
	}
	if err := r.Call(what, func() {}); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

func (r *roster) names() []string {
	var names []string
	for _, m := range r.Caches.Memberships.InCluster("c") {
		names = append(names, m.Name+" "+string(m.Spec.Role))
	}
	return names
}

// requireDown requires that kcp did not carry a request out, or lost the answer.
func requireDown(t *testing.T, err error) {
	t.Helper()
	require.True(t, apierrors.IsInternalError(err), "%v", err)
}

// edit changes a Membership as another client does.
func (r *roster) edit(t *testing.T, name string, f func(*v1alpha1.Membership)) *v1alpha1.Membership {
	t.Helper()
	m := &v1alpha1.Membership{}
	m.Name = name
	kcptest.Change(t, r.KCP, "c", m, f)
	return m
}

// reconcile runs the step.
func (r *roster) reconcile(t *testing.T, o *v1alpha1.Organization) (controller.Result, error) {
	t.Helper()
	if r.org != nil {
		r.Put(kcptest.Orgs, r.org)
	} else {
		r.Put(kcptest.Orgs, o)
	}
	audit := func(action string, _ bool, _ string, m *v1alpha1.Membership, _, _ v1alpha1.MembershipSpec, write func() error) error {
		r.audited = append(r.audited, action+" "+m.Name)
		return write()
	}
	return (&members{
		cluster: func(string) (string, bool) { return "c", !r.unplaced }, orgs: organizations{r.Stored.Organizations, kcptest.Orgs},
		memberships: r.Stored.Memberships, changes: audited{r.Stored.Memberships, r.Clock, audit}, bots: r.Stored.Bots, clock: r.Clock,
		expired:  func(string) []*v1alpha1.Membership { return r.expired },
		followed: func(string, string, string) bool { return !r.bound },
	}).Reconcile(t.Context(), o)
}
