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

// The answer to the first request is lost, and the client repeats it: on the replica that carried it out, on another one
// with a cache that is behind, and while the change still waits.
func TestAddAdmin_answersARepetitionAsTheFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	keyed := func(key, body string) apitest.Answer {
		return apitest.Call{
			As: apitest.Operator, Method: http.MethodPost, Path: "/api/admin/" + acmesPath + "/admins", Body: body,
			Header: http.Header{"Idempotency-Key": {key}},
		}.Do(f.http)
	}
	keyed("a b", rescued).RefusedField(t, "header:Idempotency-Key")
	member := apitest.Membership(apitest.Member, "", v1alpha1.RoleMember)
	f.store.held = []v1alpha1.Membership{*member}
	f.world.Later(func(w *apitest.World) { w.Join(apitest.Member, apitest.Acme, "", v1alpha1.RoleAdmin) })
	first := keyed("k", rescued).Object(t, http.StatusCreated)
	require.Len(t, f.store.patches, 1)
	require.NoError(t, f.world.Await(t.Context(), []tenancy.Ref{tenancy.OrgRef(apitest.Acme)}, func() bool { return f.world.StillToCome() == 0 }))
	require.Equal(t, first, keyed("k", rescued).Object(t, http.StatusCreated), "the change waits")
	f.store.held = []v1alpha1.Membership{*apitest.Membership(apitest.Member, "", v1alpha1.RoleAdmin)}
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.MembershipChanges = nil })
	require.Equal(t, first, keyed("k", rescued).Object(t, http.StatusCreated), "it is carried out")
	require.Len(t, f.store.patches, 1, "a repetition writes nothing")
	require.True(t, f.store.asked, "the repetition is judged by what kcp has, not by a cache")
	keyed("other", rescued).Refused(t, http.StatusConflict)
	f.rescue(apitest.Operator, rescued).Refused(t, http.StatusConflict)
	keyed("k", `{"userRef":{"name":"walter"},"reason":"x"}`).Refused(t, http.StatusConflict)
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
