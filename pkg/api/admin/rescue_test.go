package admin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const rescued = `{"userRef":{"name":"bob"},"reason":"alice has left"}`

func (f *fixture) rescue(as, body string) apitest.Answer {
	return apitest.Call{As: as, Method: http.MethodPost, Path: "/api/admin/" + acmesPath + "/admins", Body: body}.Do(f.http)
}

func TestAddAdmin_makesAPersonAdminWhereNobodyCanAct(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.held = []v1alpha1.Membership{*apitest.Membership(apitest.Member, "", v1alpha1.RoleMember)}
	f.world.Later(func(w *apitest.World) { w.Join(apitest.Member, apitest.Acme, "", v1alpha1.RoleAdmin) })
	m := f.rescue(apitest.Operator, rescued).Object(t, http.StatusCreated)
	require.Equal(t, "bob", m["user"])
	require.Equal(t, "admin", m["role"])
	require.Len(t, f.store.patches, 1)
}

func TestAddAdmin_refusesWhileAnAdminCanAct(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.held = []v1alpha1.Membership{*apitest.Membership(apitest.Admin, "", v1alpha1.RoleAdmin)}
	status := f.rescue(apitest.Operator, rescued).Refused(t, http.StatusConflict)
	require.EqualValues(t, tenancy.CauseAdminReachable, status.Details.Causes[0].Type)
	require.Empty(t, f.store.patches)
}

func TestAddAdmin_refusesEverybodyElseAndBadInput(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, who := range []string{apitest.Admin, apitest.Member, apitest.Auditor} {
		f.rescue(who, rescued).Refused(t, http.StatusForbidden)
	}
	f.rescue(apitest.Operator, `{"userRef":{"name":"bob"},"reason":" "}`).RefusedField(t, "reason")
	f.rescue(apitest.Operator, `{"userRef":{"name":"ghost"},"reason":"x"}`).RefusedField(t, "userRef.name")
	f.rescue(apitest.Operator, `{"userRef":{"name":"`+apitest.Operator+`"},"reason":"x"}`).Refused(t, http.StatusForbidden)
	f.rescue(apitest.Operator, `{"userRef":{"name":"bob"},"reason":"a\u202eb"}`).RefusedField(t, "reason")
	require.Empty(t, f.store.patches, "nobody names themselves")
	acme, _ := f.world.Org(apitest.Acme)
	f.world.PutOrg(acme.DeepCopy(), "")
	f.rescue(apitest.Operator, rescued).Refused(t, http.StatusConflict)
}
