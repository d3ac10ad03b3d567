package v1_test

import (
	"reflect"
	"testing"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/test/contract"
)

// The claims in answers about the catalog have no state, so that Entry has one field more than the
// schema of a catalog entry. Every answer of a handler is compared by apitest.Router.
func TestSchemas_equalTheTypes(t *testing.T) {
	t.Parallel()
	schemas := map[string]any{
		"People": rest.List[rest.Person]{}, "MembershipRows": rest.List[rest.MembershipRow]{}, "SessionList": rest.List[rest.Session]{},
		"OrgList": rest.List[rest.Org]{}, "WorkspaceList": rest.List[rest.Workspace]{}, "MemberList": rest.List[rest.Member]{},
		"BotList": rest.List[rest.Bot]{}, "BotTokenList": rest.List[rest.BotToken]{}, "BotTrustList": rest.List[rest.BotTrust]{}, "ProviderList": rest.List[rest.Provider]{},
		"AccessRequestList": rest.List[rest.AccessRequest]{}, "RequestableWorkspaceList": rest.List[rest.RequestableWorkspace]{},
		"InvitationList": rest.List[rest.Invitation]{}, "OfferedInvitationList": rest.List[rest.OfferedInvitation]{},
		"AdminUserList": rest.List[rest.AdminUser]{}, "AdminOrgList": rest.List[rest.AdminOrg]{}, "DeletionList": rest.List[rest.Deletion]{},
		"BilledWorkspaceList": rest.List[rest.BilledWorkspace]{},
	}
	for _, value := range []any{
		rest.Condition{}, rest.Quota{}, rest.User{}, rest.BotSelf{}, rest.Person{}, rest.UserDeletion{}, rest.MembershipRow{}, rest.Session{},
		rest.AdminUser{}, rest.AdminUpdateUserRequest{}, rest.CreateRequest{}, rest.RenameRequest{}, rest.CreateWorkspaceRequest{}, rest.UpdateWorkspaceRequest{},
		rest.Org{}, rest.Billing{}, rest.BillingPatch{}, rest.UpdateOrgRequest{}, rest.Workspace{}, rest.Member{}, rest.RoleRef{}, rest.UserRef{},
		rest.AddOrgMemberRequest{}, rest.UpdateOrgMemberRequest{}, rest.AddWorkspaceMemberRequest{}, rest.UpdateWorkspaceMemberRequest{},
		rest.Bot{}, rest.CreateBotRequest{}, rest.UpdateBotRequest{}, rest.BotToken{}, rest.IssuedBotToken{}, rest.IssueBotTokenRequest{},
		rest.BotTrust{}, rest.TrustRefusal{}, rest.AddBotTrustRequest{}, rest.ExchangedToken{},
		rest.AdminOrg{}, rest.AdminUpdateOrgRequest{}, rest.StorageLimits{}, rest.StorageLimitsPatch{}, rest.Deletion{},
		rest.CatalogEntryRequest{}, rest.CatalogExportRef{}, rest.CatalogBackend{}, rest.CatalogUI{},
		rest.GroupResource{}, rest.ProviderClaim{}, rest.Provider{}, rest.EnableProviderRequest{},
		rest.CreateAccessRequest{}, rest.CreateOrgAccessRequest{}, rest.DecideAccessRequest{}, rest.AccessRequest{}, rest.RequestableWorkspace{},
		rest.CreateInvitationRequest{}, rest.Invitation{}, rest.CreatedInvitation{}, rest.OfferedInvitation{}, rest.AcceptedInvitation{},
		rest.AuditEvent{}, rest.AuditEventList{}, rest.AdminAuditEvent{}, rest.AdminAuditEventList{}, rest.AuditReplica{}, rest.AuditActor{}, rest.AuditFacts{}, rest.Receipt{}, rest.AuditResource{},
		rest.UsageItem{}, rest.UsageRequests{}, rest.OrgSize{}, rest.UsageList{}, rest.AdminUsageItem{}, rest.BilledWorkspace{}, rest.AdminUsageList{},
		rest.Why{}, rest.AccessSource{}, rest.Missing{},
		rest.PastAccess{}, rest.AccessHolder{}, rest.PastSource{}, rest.PastToken{},
		rest.Tokens{}, rest.Device{}, rest.AuthorizationServer{}, rest.OAuthError{},
	} {
		schemas[reflect.TypeOf(value).Name()] = value
	}
	contract.RequireFields(t, schemas)
}
