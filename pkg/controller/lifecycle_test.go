package controller_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

func TestWhatIsHeldKeepsWhatOthersHaveOnIt(t *testing.T) {
	t.Parallel()
	o := &v1alpha1.User{}
	o.Finalizers, o.Annotations = []string{"example.com/other"}, map[string]string{"theirs": "kept"}
	require.False(t, controller.Hold(o), "kcp does not know yet")
	require.True(t, controller.Hold(o))
	require.Equal(t, []string{"example.com/other", v1alpha1.CascadeFinalizer}, o.Finalizers)
	_, ok := controller.Noted(o)
	require.False(t, ok)
	require.NoError(t, controller.Note(o, map[string]int{"memberships": 2}))
	counts, ok := controller.Noted(o)
	require.True(t, ok)
	require.Equal(t, map[string]int{"memberships": 2}, counts)
	require.Equal(t, "kept", o.Annotations["theirs"])
	controller.LetGo(o)
	require.False(t, controller.Held(o))
	require.Equal(t, []string{"example.com/other"}, o.Finalizers)
}

func TestTheGraceEndsAtItsTimeAndNotBefore(t *testing.T) {
	t.Parallel()
	until := metav1.NewTime(time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC))
	outcome, over := controller.InGrace("it", &until, until.Add(-time.Second))
	require.False(t, over)
	require.Equal(t, controller.Outcome{Waiting: "it was deleted; until 2026-03-31T12:00:00Z it can be undeleted", After: time.Second, Stop: true}, outcome)
	for _, late := range []time.Duration{0, time.Hour} {
		outcome, over = controller.InGrace("it", &until, until.Add(late))
		require.True(t, over)
		require.Zero(t, outcome.After)
	}
}

func TestNothingIsClosedBeforeItIsSaid(t *testing.T) {
	t.Parallel()
	down := errors.New("kcp cannot be reached")
	outcome, err := controller.Outcome{After: time.Hour}.Announced(nil, func() error { return down })
	require.NoError(t, err, "not closed yet")
	require.Equal(t, v1alpha1.ReasonProgressing, outcome.Reason)
	require.Less(t, outcome.After, time.Second)
	said := []metav1.Condition{{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse}}
	outcome, err = controller.Outcome{After: time.Hour}.Announced(said, func() error { return down })
	require.ErrorIs(t, err, down)
	require.Equal(t, time.Hour, outcome.After)
}
