package members_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// conditional sends a request with a precondition.
func (f *fixture) conditional(as, method, place, body string, header http.Header) apitest.Answer {
	call := apitest.Call{As: as, Method: method, Path: place, Org: apitest.Acme, Body: body, Header: header}
	if len(place) > len(inDev) {
		call.Workspace = apitest.Dev
	}
	return call.Do(f.http)
}

// version gives a Membership in kcp another version than the cache has.
func (f *fixture) version(name, version string) {
	m := f.store.held[name].DeepCopy()
	m.ResourceVersion = version
	f.store.held[name] = m
}

func TestETag_isThatOfTheMembership(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.do(apitest.Admin, http.MethodGet, inOrg+"/members", "").Untagged(t, http.StatusOK)
	f.add(apitest.Admin, inOrg, `{"userRef": {"name": "bob"}, "role": "member"}`).Tagged(t, http.StatusOK, apitest.FirstVersion)
	f.patch(apitest.Admin, inOrg, apitest.Member, `{"role": "admin"}`).Tagged(t, http.StatusOK, "43")
	f.patch(apitest.Admin, inDev, apitest.WSMember, `{"sudo": true}`).Tagged(t, http.StatusOK, "43")
	f.remove(apitest.Admin, inDev, apitest.WSMember).Untagged(t, http.StatusNoContent)
}

func TestIfMatch_refusesAMemberThatHasChanged(t *testing.T) {
	t.Parallel()
	inWorkspace := tenancy.MembershipName(apitest.WSMember, apitest.Dev)
	for name, c := range map[string]struct {
		as, method, place, body, membership string
		code                                int
	}{
		"promoted":                 {apitest.Admin, http.MethodPatch, inOrg + "/members/bob", `{"role": "admin"}`, "bob", http.StatusOK},
		"demoted":                  {apitest.Admin, http.MethodPatch, inOrg + "/members/second", `{"role": "member"}`, "second", http.StatusOK},
		"removed":                  {apitest.Admin, http.MethodDelete, inOrg + "/members/bob", "", "bob", http.StatusNoContent},
		"removed with all":         {apitest.Admin, http.MethodDelete, inOrg + "/members/bob?cascade=true", "", "bob", http.StatusNoContent},
		"leaving":                  {apitest.Member, http.MethodDelete, inOrg + "/memberships/me", "", "bob", http.StatusNoContent},
		"changed in a Workspace":   {apitest.WSAdmin, http.MethodPatch, inDev + "/members/walter", `{"sudo": true}`, inWorkspace, http.StatusOK},
		"removed from a Workspace": {apitest.WSAdmin, http.MethodDelete, inDev + "/members/walter", "", inWorkspace, http.StatusNoContent},
		"leaving a Workspace":      {apitest.WSMember, http.MethodDelete, inDev + "/memberships/me", "", inWorkspace, http.StatusNoContent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apitest.Conditional(t, c.code, 1, func(t *testing.T, header http.Header, version string) (apitest.Answer, int) {
				f := newFixture(t)
				f.world.PutUser(apitest.Person("second"))
				f.join("second", "", v1alpha1.RoleAdmin)
				f.version(c.membership, version)
				return f.conditional(c.as, c.method, c.place, c.body, header), len(f.store.writes)
			})
		})
	}
}

func TestIfMatch_holdsWhereNothingIsToBeDone(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"a member is made one": `{"role": "member"}`, "nothing": `{}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.conditional(apitest.Admin, http.MethodPatch, inOrg+"/members/bob", body, apitest.IfMatch(`"41"`)).Refused(t, http.StatusPreconditionFailed)
			f.conditional(apitest.Admin, http.MethodPatch, inOrg+"/members/bob", body, apitest.IfMatch(`"42"`)).Tagged(t, http.StatusOK, apitest.FirstVersion)
		})
	}
}

// twoAdmins adds a second admin to Acme, so that one of them can be demoted.
func twoAdmins(t *testing.T) *fixture {
	f := newFixture(t)
	f.world.PutUser(apitest.Person("second"))
	f.join("second", "", v1alpha1.RoleAdmin)
	return f
}

// pending adds a decision about the user's current Membership, without carrying it out.
func (f *fixture) pending(user string, role v1alpha1.Role) {
	m := f.store.held[user]
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) {
		o.Spec.MembershipChanges = []v1alpha1.MembershipChange{{User: user, UID: m.UID, Generation: m.Generation, Role: role}}
	})
}

// A pending decision by another request fails the precondition, although the Membership
// still has the version that the caller read.
func TestIfMatch_refusesOneOfTwoRemovals(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]struct{ method, body string }{
		"the same again": {http.MethodPatch, `{"role": "member"}`}, "a removal": {http.MethodDelete, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := twoAdmins(t)
			f.pending("second", v1alpha1.RoleMember)
			writes := len(f.store.writes)
			answer := f.conditional(apitest.Admin, second.method, inOrg+"/members/second", second.body, apitest.IfMatch(`"42"`))
			answer.Refused(t, http.StatusPreconditionFailed)
			require.Len(t, f.store.writes, writes)
		})
	}
}

// The answer to a decision gets lost after it is carried out. The Membership has a new
// version because of this request itself, so the precondition must not fail.
func TestIfMatch_survivesALostAnswer(t *testing.T) {
	t.Parallel()
	f := twoAdmins(t)
	f.store.lost = true
	f.conditional(apitest.Admin, http.MethodPatch, inOrg+"/members/second", `{"role": "member"}`, apitest.IfMatch(`"42"`)).Tagged(t, http.StatusOK, "43")
	f = twoAdmins(t)
	f.store.lost = true
	require.Equal(t, http.StatusNoContent, f.conditional(apitest.Admin, http.MethodDelete, inOrg+"/members/second", "", apitest.IfMatch(`"42"`)).Code)
}

// A concurrent change of the Membership makes the pending decision void.
func TestIfMatch_refusesARemovalThatBecameVoid(t *testing.T) {
	t.Parallel()
	for method, body := range map[string]string{http.MethodPatch: `{"role": "member"}`, http.MethodDelete: ""} {
		for code, header := range map[int]http.Header{http.StatusConflict: nil, http.StatusPreconditionFailed: apitest.IfMatch(`"42"`)} {
			f := twoAdmins(t)
			f.store.decided = func(c v1alpha1.MembershipChange) {
				m := f.store.held[c.User].DeepCopy()
				m.Generation, m.ResourceVersion = 2, "50"
				f.store.show(m)
				f.store.caughtUp()
			}
			answer := f.conditional(apitest.Admin, method, inOrg+"/members/second", body, header)
			answer.Refused(t, code)
			require.Equal(t, header != nil, answer.Header.Get("ETag") == `"50"`)
		}
	}
}
