package apitest

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

const behind = "dial tcp 10.0.0.1: refused"

// ErrDown is the error of a store that cannot reach kcp.
var ErrDown error = errs.Wrap(errs.Unavailable, errors.New(behind), "kcp cannot be reached")

// Down checks that the answer says so, and not what is behind it.
func (a Answer) Down(t testing.TB) {
	t.Helper()
	a.Refused(t, http.StatusServiceUnavailable)
	require.NotContains(t, a.Body, "10.0.0.1")
}

// Active is the condition that tells whether kcp serves something, or was told that
// it is deleted.
func Active(yes bool) []metav1.Condition {
	if yes {
		return []metav1.Condition{{Type: v1alpha1.ConditionActive, Status: metav1.ConditionTrue}}
	}
	return []metav1.Condition{{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaiting}}
}

// DeleteUser soft-deletes a person.
func (w *World) DeleteUser(name string) {
	u, at := Person(name), Epoch()
	u.Status.DeletionRequestedAt = &at
	w.PutUser(u)
}

// DeleteOrg soft-deletes an Org; no row of it has followed.
func (w *World) DeleteOrg(uuid string) {
	at := Epoch()
	w.ChangeOrg(uuid, func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &at })
}

// Reindex makes the rows of all in an Org follow what it is at present.
func (w *World) Reindex(uuid string) {
	org, _ := w.Org(uuid)
	for _, m := range w.MembershipsIn(org.ClusterID) {
		w.PutMembership(uuid, m)
	}
}
