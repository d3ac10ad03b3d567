package members_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// withManager is a fixture in which nina is a manager of Dev without a role there.
func withManager(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.world.PutUser(apitest.Person("nina"))
	m := apitest.Membership("nina", apitest.Dev, "")
	m.Spec.Manager = true
	f.world.PutMembership(apitest.Acme, m)
	f.reread()
	return f
}

func TestManager_managesTheOthers(t *testing.T) {
	t.Parallel()
	f := withManager(t)
	require.Equal(t, http.StatusCreated, f.add("nina", inDev, `{"userRef":{"name":"frank"},"role":"viewer"}`).Code)
	f = withManager(t)
	answer := f.add("nina", inDev, `{"userRef":{"name":"frank"},"manager":true}`).Object(t, http.StatusCreated)
	require.Equal(t, []any{"", true}, []any{answer["role"], answer["manager"]})
	f = withManager(t)
	require.Equal(t, http.StatusOK, f.patch("nina", inDev, apitest.WSMember, `{"role":"viewer"}`).Code)
	f = withManager(t)
	require.Equal(t, http.StatusNoContent, f.remove("nina", inDev, apitest.WSMember).Code)
	f = withManager(t)
	require.Equal(t, http.StatusOK, f.do("nina", http.MethodGet, inDev+"/members", "").Code)
	require.Equal(t, http.StatusNoContent, f.leave("nina", inDev).Code)
}

func TestManager_isRefusedAdminsSudoAndThemselves(t *testing.T) {
	t.Parallel()
	f := withManager(t)
	for body, user := range map[string]string{
		`{"role":"admin"}`: apitest.WSMember, `{"sudo":true}`: apitest.WSMember, `{"roles":[{"name":"view"}]}`: apitest.WSMember,
		`{"role":"viewer"}`: apitest.WSAdmin, `{"expiresAt":"2030-01-01T00:00:00Z"}`: apitest.WSAdmin, `{"role":"member"}`: "nina",
	} {
		f.patch("nina", inDev, user, body).RefusedCause(t, tenancy.CauseRoleTooLow)
	}
	f.add("nina", inDev, `{"userRef":{"name":"frank"},"role":"admin"}`).RefusedCause(t, tenancy.CauseRoleTooLow)
	f.remove("nina", inDev, apitest.WSAdmin).RefusedCause(t, tenancy.CauseRoleTooLow)
	f.remove("nina", inDev, "nina").RefusedCause(t, tenancy.CauseRoleTooLow)
	f.add("nina", inOrg, addFrank).Refused(t, http.StatusForbidden)
	require.Empty(t, f.store.writes)
}

// The manager was removed, or made a plain member, between the request and its decision.
func TestManager_isJudgedWhenTheChangeIsWritten(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]v1alpha1.MembershipChange{"removed": {}, "made a member": {Role: v1alpha1.RoleMember}} {
		f := withManager(t)
		held := f.store.held[tenancy.MembershipName("nina", apitest.Dev)]
		f.handler.Rights = f.world.RightsUntil(func() bool {
			c := change
			c.User, c.Workspace, c.UID, c.Generation = "nina", apitest.Dev, held.UID, held.Generation
			f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.MembershipChanges = []v1alpha1.MembershipChange{c} })
			return true
		})
		require.Equal(t, http.StatusForbidden, f.add("nina", inDev, addFrank).Code, name)
		require.Empty(t, f.store.writes)
	}
}

func TestManager_ofAWorkspaceIsMadeByItsAdmins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.patch(apitest.WSAdmin, inDev, apitest.WSMember, `{"role":null,"manager":true}`).Object(t, http.StatusOK)
	require.Equal(t, []any{"", true}, []any{answer["role"], answer["manager"]})
	f = newFixture(t)
	f.patch(apitest.WSAdmin, inDev, apitest.WSMember, `{"role":null}`).RefusedField(t, "role")
	f.patch(apitest.WSAdmin, inDev, apitest.WSMember, `{"manager":null}`).RefusedField(t, "manager")
	f.patch(apitest.WSAdmin, inDev, apitest.WSMember, `{"manager":1}`).RefusedField(t, "manager")
	f.add(apitest.WSAdmin, inDev, `{"userRef":{"name":"frank"}}`).RefusedField(t, "role")
	f.add(apitest.Admin, inOrg, `{"userRef":{"name":"frank"},"role":"member","manager":true}`).RefusedField(t, "manager")
	f.add(apitest.WSMember, inDev, addFrank).RefusedCause(t, tenancy.CauseRoleTooLow)
}
