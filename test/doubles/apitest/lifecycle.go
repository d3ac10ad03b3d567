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

// Down checks that the answer is 503 and does not reveal the wrapped error.
func (a Answer) Down(t testing.TB) {
	t.Helper()
	a.Refused(t, http.StatusServiceUnavailable)
	require.NotContains(t, a.Body, "10.0.0.1")
}

// Active returns the condition Active of an object that is active, or deactivated if deleted.
func Active(yes bool) []metav1.Condition {
	if yes {
		return []metav1.Condition{{Type: v1alpha1.ConditionActive, Status: metav1.ConditionTrue}}
	}
	return []metav1.Condition{{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaiting}}
}

// DeleteUser soft-deletes a User.
func (w *World) DeleteUser(name string) {
	u, at := Person(name), Epoch()
	u.Status.DeletionRequestedAt = &at
	w.PutUser(u)
}

// DeleteOrg soft-deletes an Organization and leaves the indexes unchanged.
func (w *World) DeleteOrg(uuid string) {
	at := Epoch()
	w.ChangeOrg(uuid, func(o *v1alpha1.Organization) { o.Status.DeletionRequestedAt = &at })
}

// Reindex updates the index rows of an Organization.
func (w *World) Reindex(uuid string) {
	org, _ := w.Org(uuid)
	for _, m := range w.MembershipsIn(org.ClusterID) {
		w.PutMembership(uuid, m)
	}
}
