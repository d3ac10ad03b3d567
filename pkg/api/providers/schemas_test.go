package providers

import (
	"testing"

	"github.com/faroshq/kedge-hub/pkg/api/internal/entry"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/test/contract"
)

func TestSchemas_equalTheTypes(t *testing.T) {
	t.Parallel()
	contract.RequireFields(t, map[string]any{
		"Provider": view{}, "ProviderList": paging.List[view]{}, "ProviderClaim": entry.Claim{}, "GroupResource": entry.Resource{},
		"EnableProviderRequest": enableRequest{},
	})
}
