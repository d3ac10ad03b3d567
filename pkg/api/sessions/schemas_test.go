package sessions

import (
	"testing"

	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/test/contract"
)

func TestSchemas_equalTheTypes(t *testing.T) {
	t.Parallel()
	contract.RequireFields(t, map[string]any{
		"Session": view{}, "SessionList": paging.List[view]{},
	})
}
