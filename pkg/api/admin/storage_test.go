package admin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// hubsLimits are those of newFixture.
const hubsLimits = `{"bytes": "2Gi", "workspaceBytes": "256Mi", "workspaceObjects": 20000, ` +
	`"workspaceCRDs": 200, "workspaceAPIBindings": 0, "workspaceRoles": 0}`

func TestStorage_limitsAreSetAndTakenAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	limits := func(body string) any {
		t.Helper()
		return f.patch(apitest.Operator, acmesPath, body).Object(t, http.StatusOK)["storage"]
	}
	type m = map[string]any
	all := m{"bytes": "10Gi", "workspaceBytes": "1536Mi", "workspaceObjects": 1e5, "workspaceCRDs": 300., "workspaceAPIBindings": 150., "workspaceRoles": 900.}
	require.Equal(t, all, limits(`{"storage": {"bytes": "10Gi", "workspaceBytes": "1.5Gi", "workspaceObjects": 100000, `+
		`"workspaceCRDs": 300, "workspaceAPIBindings": 150, "workspaceRoles": 900}}`))
	o, _ := f.world.Org(apitest.Acme)
	require.Equal(t, &v1alpha1.StorageLimits{
		Bytes: 10 << 30, WorkspaceBytes: 3 << 29, WorkspaceObjects: 100_000, WorkspaceCRDs: 300, WorkspaceAPIBindings: 150, WorkspaceRoles: 900,
	}, o.Spec.Storage)
	all["bytes"], all["workspaceObjects"] = "2Gi", 20000.
	require.Equal(t, all, limits(`{"storage": {"bytes": null, "workspaceObjects": 0}}`), "the others stay")
	require.Equal(t, all, limits(`{"workspaceQuota": 7}`))
	hubs := m{
		"bytes": "2Gi", "workspaceBytes": "256Mi", "workspaceObjects": 20000., "workspaceCRDs": 200.,
		"workspaceAPIBindings": 0., "workspaceRoles": 0.,
	}
	require.Equal(t, hubs, limits(`{"storage": null}`))
	o, _ = f.world.Org(apitest.Acme)
	require.Nil(t, o.Spec.Storage)
}

func TestStorage_limitsAreNamedWhereTheyAreWrong(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for body, field := range map[string]string{
		`7`: "storage", `[]`: "storage", `{"bytes": "1Gi", "bytes": "2Gi"}`: "storage",
		`{"bytes": 7}`: "storage.bytes", `{"bytes": "much"}`: "storage.bytes", `{"bytes": "1Ki"}`: "storage.bytes", `{"bytes": "-1Gi"}`: "storage.bytes",
		`{"workspaceBytes": "2Ti"}`: "storage.workspaceBytes", `{"workspaceObjects": -1}`: "storage.workspaceObjects", `{"workspaceObjects": "7"}`: "storage.workspaceObjects",
		`{"workspaceObjects": 1e3}`: "storage.workspaceObjects", `{"workspaceCRDs": 10001}`: "storage.workspaceCRDs",
		`{"workspaceAPIBindings": 1.5}`: "storage.workspaceAPIBindings", `{"objects": 1}`: "storage.objects",
	} {
		f.patch(apitest.Operator, acmesPath, `{"storage": `+body+`}`).RefusedField(t, field)
	}
	require.Empty(t, f.store.patches)
}
