package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

func TestContextName_isSafeForShells(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Web": "Web", "My shop $(rm)": "My-shop-rm", "../..": "unnamed", "": "unnamed", "مساحة العمل": "مساحة-العمل", "v1.2_x": "v1.2_x",
	} {
		require.Equal(t, "ACME/"+want, rest.ContextName("ACME", name))
	}
	require.Equal(t, "ACME/Web-50760342", rest.DistinctContextName("ACME/Web", "50760342-89c9-4163-90c9-a5809b1cfe3b"))
}
