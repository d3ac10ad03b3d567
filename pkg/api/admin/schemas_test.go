package admin

import (
	"testing"

	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/test/contract"
)

func TestSchemas_equalTheTypes(t *testing.T) {
	t.Parallel()
	contract.RequireFields(t, map[string]any{
		"AdminUser": userView{}, "AdminUserList": paging.List[userView]{}, "AdminOrg": orgView{}, "Deletion": deletion{}, "DeletionList": paging.List[deletion]{},
		"AdminUpdateUserRequest": patchUserRequest{}, "AdminUpdateOrgRequest": patchOrgRequest{},
	})
}
