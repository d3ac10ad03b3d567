package controller_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

func TestAddFinalizer_keepsOtherFinalizers(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.User{}
	o.Finalizers, o.Annotations = []string{"example.com/other"}, map[string]string{"theirs": "kept"}
	require.False(t, controller.AddFinalizer(o), "kcp does not know yet")
	require.True(t, controller.AddFinalizer(o))
	require.Equal(t, []string{"example.com/other", v1alpha1.CascadeFinalizer}, o.Finalizers)
	_, ok := controller.Recorded(o)
	require.False(t, ok)
	require.NoError(t, controller.Record(o, map[string]int{"memberships": 2}))
	counts, ok := controller.Recorded(o)
	require.True(t, ok)
	require.Equal(t, map[string]int{"memberships": 2}, counts)
	require.Equal(t, "kept", o.Annotations["theirs"])
	controller.RemoveFinalizer(o)
	require.False(t, controller.HasFinalizer(o))
	require.Equal(t, []string{"example.com/other"}, o.Finalizers)
}

func TestInGrace_endsAtItsTime(t *testing.T) {
	t.Parallel()
	until := metav1.NewTime(time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC))
	result, over := controller.InGrace("it", &until, until.Add(-time.Second), nil)
	require.False(t, over)
	require.Equal(t, controller.Result{Message: "it was deleted; until 2026-03-31T12:00:00Z it can be undeleted", RequeueAfter: time.Second, Stop: true}, result)
	for _, late := range []time.Duration{0, time.Hour} {
		result, over = controller.InGrace("it", &until, until.Add(late), func() bool { return false })
		require.True(t, over)
		require.Zero(t, result.RequeueAfter)
	}
}

func TestInGrace_isNotOverWhileTheOperatorHoldsPurges(t *testing.T) {
	t.Parallel()
	until := metav1.NewTime(time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC))
	held := func() bool { return true }
	result, over := controller.InGrace("it", &until, until.Add(time.Hour), held)
	require.False(t, over)
	require.True(t, result.Stop)
	require.Equal(t, 15*time.Second, result.RequeueAfter, "it is looked at again")
	require.Contains(t, result.Message, "can be undeleted until the operator")
	result, over = controller.InGrace("it", &until, until.Add(-time.Second), held)
	require.False(t, over)
	require.Equal(t, time.Second, result.RequeueAfter, "it is in its grace period")
}

func TestResult_announcesBeforeItDeactivates(t *testing.T) {
	t.Parallel()
	down := errors.New("kcp cannot be reached")
	result, err := controller.Result{RequeueAfter: time.Hour}.Deactivate(nil, func() error { return down })
	require.NoError(t, err, "not deactivated yet")
	require.Equal(t, v1alpha1.ReasonProgressing, result.Reason)
	require.Less(t, result.RequeueAfter, time.Second)
	said := []metav1.Condition{{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse}}
	result, err = controller.Result{RequeueAfter: time.Hour}.Deactivate(said, func() error { return down })
	require.ErrorIs(t, err, down)
	require.Equal(t, time.Hour, result.RequeueAfter)
}

func TestResult_asksAgainAfterForbidden(t *testing.T) {
	t.Parallel()
	announced := []metav1.Condition{{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse}}
	for _, after := range []time.Duration{0, time.Hour} {
		result, err := controller.Result{Message: "it was deleted", RequeueAfter: after}.Deactivate(announced, func() error {
			return errs.New(errs.Forbidden, "kcp does not let the hub deactivate it")
		})
		require.NoError(t, err)
		require.Equal(t, controller.Result{
			Message: "it was deleted; kcp does not let the hub deactivate it",
			Reason:  v1alpha1.ReasonDeactivationForbidden, RequeueAfter: time.Minute,
		}, result)
	}
}

func TestResult_acceptsAPartialDeactivation(t *testing.T) {
	t.Parallel()
	announced := []metav1.Condition{{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse}}
	result, err := controller.Result{Message: "it was deleted", RequeueAfter: time.Hour, Stop: true}.Deactivate(announced, func() error {
		return errs.New(errs.TooLarge, "watches stay open")
	})
	require.NoError(t, err)
	require.Equal(t, controller.Result{Message: "it was deleted; watches stay open", RequeueAfter: time.Hour, Stop: true}, result)
}
