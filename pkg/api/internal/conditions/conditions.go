package conditions

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition has the fields of metav1.Condition. LastTransitionTime is RFC 3339 in UTC.
type Condition struct {
	Type               string                 `json:"type"`
	Status             metav1.ConditionStatus `json:"status"`
	ObservedGeneration int64                  `json:"observedGeneration,omitempty"`
	LastTransitionTime string                 `json:"lastTransitionTime"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message"`
}

// Of converts conditions for an answer. The result is never nil.
func Of(held []metav1.Condition) []Condition {
	answered := make([]Condition, len(held))
	for i := range held {
		c := &held[i]
		answered[i] = Condition{
			Type: c.Type, Status: c.Status, ObservedGeneration: c.ObservedGeneration,
			LastTransitionTime: c.LastTransitionTime.UTC().Format(time.RFC3339),
			Reason:             c.Reason, Message: c.Message,
		}
	}
	return answered
}
