package entry_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/entry"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestOf_hasEveryListEvenIfEmpty(t *testing.T) {
	t.Parallel()
	e := &v1alpha1.CatalogEntry{}
	e.Name, e.Spec.Slug, e.Spec.DisplayName = "u", "widgets", "Widgets"
	raw, err := json.Marshal(entry.Of(e, nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"uuid":"u","slug":"widgets","displayName":"Widgets","scope":"Global","apiExport":{"path":"","name":""},
		"createdAt":null,"claims":[],"resources":[],"phase":"Progressing","conditions":[]}`, string(raw))
	e.Status.Export = &v1alpha1.CatalogExport{
		Resources: []v1alpha1.CatalogResource{{Group: "example.org", Resource: "widgets"}},
		Claims:    []v1alpha1.CatalogClaim{{Resource: "secrets", Dangerous: true}},
	}
	org := tenancy.Org{Organization: &v1alpha1.Organization{}}
	org.Name, org.Spec.Personal = "o", true
	v := entry.Of(e, &org)
	require.Equal(t, v1alpha1.CatalogPersonal, v.Scope)
	require.Equal(t, "o", v.Org)
	raw, err = json.Marshal(v.Claims)
	require.NoError(t, err)
	require.JSONEq(t, `[{"group":"","resource":"secrets","verbs":[],"dangerous":true}]`, string(raw))
	require.Equal(t, []entry.Resource{{Group: "example.org", Resource: "widgets"}}, v.Resources)
}
