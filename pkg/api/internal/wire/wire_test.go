package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestEntry_hasEveryListEvenIfEmpty(t *testing.T) {
	t.Parallel()
	e := &v1alpha1.CatalogEntry{}
	e.Name, e.Spec.Slug, e.Spec.DisplayName = "u", "widgets", "Widgets"
	raw, err := json.Marshal(wire.Entry(e, nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"uuid":"u","slug":"widgets","displayName":"Widgets","scope":"Global","apiExport":{"path":"","name":""},
		"createdAt":null,"claims":[],"resources":[],"phase":"Progressing","conditions":[]}`, string(raw))
	e.Status.Export = &v1alpha1.CatalogExport{
		Resources: []v1alpha1.CatalogResource{{Group: "example.org", Resource: "widgets"}},
		Claims:    []v1alpha1.CatalogClaim{{Resource: "secrets", Dangerous: true}},
	}
	org := tenancy.Org{Organization: &v1alpha1.Organization{}}
	org.Name, org.Spec.Personal = "o", true
	v := wire.Entry(e, &org)
	require.Equal(t, string(v1alpha1.CatalogPersonal), v.Scope)
	require.Equal(t, "o", v.Org)
	raw, err = json.Marshal(v.Claims)
	require.NoError(t, err)
	require.JSONEq(t, `[{"group":"","resource":"secrets","verbs":[],"dangerous":true}]`, string(raw))
	require.Equal(t, []rest.GroupResource{{Group: "example.org", Resource: "widgets"}}, v.Resources)
}

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
	got, err := json.Marshal(wire.Conditions(held))
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	require.NotNil(t, wire.Conditions(nil))
}
