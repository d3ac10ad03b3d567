package users

import (
	"testing"

	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/test/contract"
)

func TestSchemas_equalTheTypes(t *testing.T) {
	t.Parallel()
	contract.RequireFields(t, map[string]any{
		"User": view{}, "BotSelf": botView{}, "Person": found{}, "UserDeletion": deletion{}, "MembershipRow": row{}, "Quota": quota{},
		"People": paging.List[found]{}, "MembershipRows": paging.List[row]{},
	})
}
