package conditions_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/api/internal/conditions"
)

func TestConditions_areWrittenAsKubernetesWritesThem(t *testing.T) {
	t.Parallel()
	held := []metav1.Condition{
		{
			Type: "Ready", Status: metav1.ConditionFalse, ObservedGeneration: 7, Reason: "Waiting", Message: `"it" <takes> time`,
			LastTransitionTime: metav1.NewTime(time.Date(2030, 1, 1, 1, 2, 3, 456, time.FixedZone("east", 3600))),
		},
		{Type: "Bare", Status: metav1.ConditionUnknown, LastTransitionTime: metav1.Unix(1, 0)},
	}
	want, err := json.Marshal(held)
	require.NoError(t, err)
	got, err := json.Marshal(conditions.Of(held))
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	require.NotNil(t, conditions.Of(nil))
}
