package client_test

import (
	"testing"

	"github.com/faroshq/kedge-hub/pkg/client"
	"github.com/faroshq/kedge-hub/test/contract"
)

// Types that stand for several schemas, such as Person and Entry, have the fields of all of them.
func TestTypes_haveTheFieldsOfTheDocument(t *testing.T) {
	t.Parallel()
	contract.RequireFields(t, map[string]any{
		"MembershipRow": client.Membership{}, "Person": client.FoundPerson{}, "UserDeletion": client.DeletedPerson{}, "Session": client.Session{},
		"AuditEvent": client.AuditEvent{}, "AuditActor": client.AuditActor{}, "AuditFacts": client.AuditFacts{}, "AuditResource": client.AuditResource{},
		"Org": client.Organization{}, "Workspace": client.Workspace{}, "Member": client.Member{}, "Bot": client.Bot{},
		"AdminUser": client.AdminPerson{}, "AdminOrg": client.AdminOrganization{}, "Deletion": client.Deletion{}, "Provider": client.Provider{},
		"EnableProviderRequest": client.Decision{}, "UpdateOrgRequest": client.OrganizationPatch{},
		"UpdateWorkspaceMemberRequest": client.MemberPatch{}, "UpdateBotRequest": client.BotPatch{}, "AdminUpdateUserRequest": client.AdminPersonPatch{},
	})
}
