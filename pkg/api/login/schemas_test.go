package login

import (
	"testing"

	"github.com/faroshq/kedge-hub/test/contract"
)

func TestSchemas_equalTheTypes(t *testing.T) {
	t.Parallel()
	contract.RequireFields(t, map[string]any{
		"Tokens": tokenAnswer{}, "Device": deviceAnswer{}, "AuthorizationServer": metadata{},
	})
}
