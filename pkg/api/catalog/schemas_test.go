package catalog

import (
	"testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/contract"
)

// The claims in answers about the catalog have no state, so that entry.View has one field more
// than the schema. Every answer is compared by apitest.Router.
func TestSchemas_equalTheTypes(t *testing.T) {
	t.Parallel()
	contract.RequireFields(t, map[string]any{
		"CatalogEntryRequest": request{}, "CatalogExportRef": v1alpha1.APIExportRef{},
		"CatalogBackend": v1alpha1.CatalogBackend{}, "CatalogUI": v1alpha1.CatalogUI{},
	})
}
