package members_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestChange_isReadAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ place, user, body, write, want string }{
		"promote":                     {inOrg, "bob", `{"role": "admin"}`, "decide " + apitest.Acme, `"role": "admin", "scope": "org"`},
		"demote":                      {inOrg, "second", `{"role": "member"}`, "decide " + apitest.Acme, `"role": "member", "scope": "org"`},
		"an admin is made one":        {inOrg, "second", `{"role": "admin"}`, "", `"role": "admin", "scope": "org"`},
		"a member is made one":        {inOrg, "bob", `{"role": "member"}`, "", `"role": "member", "scope": "org"`},
		"nothing":                     {inOrg, "bob", `{}`, "", `"role": "member", "scope": "org"`},
		"promote in a Workspace":      {inDev, "walter", `{"role": "admin"}`, "decide " + apitest.Acme, `"role": "admin", "scope": "workspace", "sudo": true, "roles": [{"name": "view"}]`},
		"demote in a Workspace":       {inDev, "carol", `{"role": "member"}`, "decide " + apitest.Acme, `"role": "member", "scope": "workspace"`},
		"the roles are replaced":      {inDev, "walter", `{"roles": [{"name": "edit"}]}`, "decide " + apitest.Acme, `"role": "member", "scope": "workspace", "sudo": true, "roles": [{"name": "edit"}]`},
		"the roles are taken":         {inDev, "walter", `{"roles": []}`, "decide " + apitest.Acme, `"role": "member", "scope": "workspace", "sudo": true`},
		"the roles are taken by null": {inDev, "walter", `{"roles": null}`, "decide " + apitest.Acme, `"role": "member", "scope": "workspace", "sudo": true`},
		"sudo is taken":               {inDev, "walter", `{"sudo": false}`, "decide " + apitest.Acme, `"role": "member", "scope": "workspace", "roles": [{"name": "view"}]`},
		"sudo is given":               {inDev, "carol", `{"sudo": true}`, "decide " + apitest.Acme, `"role": "admin", "scope": "workspace", "sudo": true`},
		"nothing in a Workspace":      {inDev, "carol", `{}`, "", `"role": "admin", "scope": "workspace"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.world.PutUser(apitest.Person("second"))
			f.join("second", "", v1alpha1.RoleAdmin)
			f.world.PutMembership(apitest.Acme, withRights(apitest.WSMember, v1alpha1.RoleMember, true, "view"))
			f.reread()
			answer := f.patch(apitest.Admin, c.place, c.user, c.body)
			requireBody(t, answer, http.StatusOK, `{"user": "`+c.user+`", "displayName": "Display of `+c.user+`", `+c.want+`, "since": "2026-03-01T12:00:00Z", "phase": "Ready", "active": true}`)
			if c.write == "" {
				require.Empty(t, f.store.writes)
			} else {
				require.Equal(t, []string{c.write}, f.store.writes)
			}
		})
	}
}

func TestPatch_thatLowersTheRoleTakesSudoAndRoles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from       v1alpha1.Role
		body, want string
	}{
		"lower":                       {v1alpha1.RoleAdmin, `{"role": "member"}`, `"role": "member"`},
		"lower, with sudo":            {v1alpha1.RoleAdmin, `{"role": "member", "sudo": true}`, `"role": "member", "sudo": true`},
		"lower, with roles":           {v1alpha1.RoleAdmin, `{"role": "member", "roles": [{"name": "view"}]}`, `"role": "member", "roles": [{"name": "view"}]`},
		"lower, with both":            {v1alpha1.RoleAdmin, `{"role": "member", "sudo": true, "roles": [{"name": "view"}]}`, `"role": "member", "sudo": true, "roles": [{"name": "view"}]`},
		"higher":                      {v1alpha1.RoleMember, `{"role": "admin"}`, `"role": "admin", "sudo": true, "roles": [{"name": "view"}]`},
		"the same":                    {v1alpha1.RoleMember, `{"role": "member"}`, `"role": "member", "sudo": true, "roles": [{"name": "view"}]`},
		"another field than the role": {v1alpha1.RoleAdmin, `{"sudo": false}`, `"role": "admin", "roles": [{"name": "view"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.world.PutMembership(apitest.Acme, withRights(apitest.WSMember, c.from, true, "view"))
			f.reread()
			answer := f.patch(apitest.Admin, inDev, apitest.WSMember, c.body)
			requireBody(t, answer, http.StatusOK, `{"user": "walter", "displayName": "Display of walter", "scope": "workspace", `+c.want+`, "since": "2026-03-01T12:00:00Z", "phase": "Ready", "active": true}`)
		})
	}
}

func TestChange_namesTheFieldOfABadBody(t *testing.T) {
	t.Parallel()
	both := map[string]string{
		`{"role": ""}`:                           "role",
		`{"role": null}`:                         "role",
		`{"role": "owner"}`:                      "role",
		`{"role": 1}`:                            "role",
		`{"role": "admin", "role": "member"}`:    "role",
		`{"userRef": {"name": "frank"}}`:         "userRef",
		`{"scope": "org"}`:                       "scope",
		`{"workspaceRef": {"name": "x"}}`:        "workspaceRef",
		`{"role": "admin", "status": {}}`:        "status",
		`{"metadata": {"resourceVersion": "1"}}`: "metadata",
	}
	for place, more := range map[string]map[string]string{
		inOrg: {`{"sudo": true}`: "sudo", `{"roles": []}`: "roles"},
		inDev: {
			`{"sudo": null}`:                              "sudo",
			`{"sudo": "true"}`:                            "sudo",
			`{"roles": {"name": "view"}}`:                 "roles",
			`{"roles": ["view"]}`:                         "roles",
			`{"roles": [{"name": "a", "kind": "b"}]}`:     "roles[0].kind",
			`{"roles": [{"name": ""}]}`:                   "roles.name",
			`{"roles": [{"name": "cluster-admin"}]}`:      "roles.name",
			`{"roles": [{"name": "kedge:x"}]}`:            "roles.name",
			`{"roles": [{"name": "a"}, {"name": "a"}]}`:   "roles.name",
			`{"role": "admin", "roles": [{"name": "%"}]}`: "roles.name",
		},
	} {
		f := newFixture(t)
		for _, bad := range []map[string]string{both, more} {
			for body, field := range bad {
				t.Log(place, body)
				f.patch(apitest.Admin, place, apitest.Mixed, body).RefusedField(t, field)
			}
		}
		require.Empty(t, f.store.writes)
		f.patch(apitest.Admin, place, apitest.Mixed, `{"role": "admin"}`).Object(t, http.StatusOK)
	}
}

// The user in the path becomes part of an object's name. It must not lead to a Membership
// outside the Org or Workspace of the path.
func TestChange_refusesAMembershipOfAnotherPlace(t *testing.T) {
	t.Parallel()
	for name, user := range map[string]string{
		"of a Workspace":       apitest.Dev + ".carol",
		"escaped":              "%2e%2e",
		"an escaped slash":     "..%2Forganizations%2F" + apitest.Acme,
		"a fragment":           "bob%23",
		"a query":              "bob%3Fdryrun=All",
		"upper case":           "Bob",
		"a space":              "bob%20",
		"a null byte":          "bob%00",
		"a line":               "bob%0a",
		"not UTF-8":            "%ff",
		"too long for a label": "a123456789012345678901234567890123456789012345678901234567890123",
		"nobody":               "nobody",
		"me":                   "me",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			for _, place := range []string{inOrg, inDev} {
				f.patch(apitest.Admin, place, user, `{"role": "admin"}`).Refused(t, http.StatusNotFound)
				f.patch(apitest.Admin, place, user, `{"role": "member"}`).Refused(t, http.StatusNotFound)
				f.remove(apitest.Admin, place, user).Refused(t, http.StatusNotFound)
				f.remove(apitest.Admin, place, user+"?cascade=true").Refused(t, http.StatusNotFound)
			}
			require.Empty(t, f.store.writes)
		})
	}
	f := newFixture(t)
	require.Equal(t, http.StatusNoContent, f.remove(apitest.Admin, inOrg, apitest.Member).Code)
	require.Equal(t, http.StatusNoContent, f.remove(apitest.Admin, inDev, apitest.Mixed).Code)
}

func TestChange_answers404ToPeopleWhoAreNotThere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// Each user is a member of either the Org or Dev.
	for place, user := range map[string]string{inDev: apitest.Member, inOrg: apitest.WSAdmin} {
		for _, body := range []string{`{"role": "admin"}`, `{"role": "member"}`, `{}`} {
			require.Contains(t, f.patch(apitest.Admin, place, user, body).Refused(t, http.StatusNotFound).Message, user+" is not a member")
		}
	}
	require.Empty(t, f.store.writes)
}

func TestO9_refusesToDemoteTheLastAdmin(t *testing.T) {
	t.Parallel()
	for name, c := range lastAdmins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.arrange(f)
			answer := f.patch(apitest.Admin, inOrg, apitest.Admin, `{"role": "member"}`)
			if c.another {
				require.Equal(t, "member", answer.Object(t, http.StatusOK)["role"])
				return
			}
			causes := refusedCauses(t, answer)
			require.Len(t, causes, 1)
			require.EqualValues(t, tenancy.CauseSoleAdmin, causes[0].Type)
			require.Contains(t, causes[0].Message, apitest.Admin)
			require.Empty(t, f.store.writes)
		})
	}
}

// lastAdmins lists arrangements with and without another admin of Acme.
var lastAdmins = map[string]struct {
	arrange func(*fixture)
	another bool
}{
	"there are members":           {func(*fixture) {}, false},
	"there is another admin":      {func(f *fixture) { f.join(apitest.Member, "", v1alpha1.RoleAdmin) }, true},
	"the other admin was deleted": {func(f *fixture) { f.join(apitest.Member, "", v1alpha1.RoleAdmin); f.world.DeleteUser(apitest.Member) }, false},
	"the other admin has no approval": {func(f *fixture) {
		f.join(apitest.Member, "", v1alpha1.RoleAdmin)
		f.register(v1alpha1.RegistrationPending)
	}, false},
	"the other admin was rejected": {func(f *fixture) {
		f.join(apitest.Member, "", v1alpha1.RoleAdmin)
		f.register(v1alpha1.RegistrationRejected)
	}, false},
	"the other admin is being demoted": {func(f *fixture) {
		f.join(apitest.Member, "", v1alpha1.RoleAdmin)
		f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) {
			o.Spec.MembershipChanges = []v1alpha1.MembershipChange{{User: apitest.Member, UID: "uid of bob", Generation: 1, Role: v1alpha1.RoleMember}}
		})
	}, false},
	"the view has one more than kcp": {func(f *fixture) { f.world.Join(apitest.Member, apitest.Acme, "", v1alpha1.RoleAdmin) }, false},
}

func TestO9_aFormerAdminEndsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.join(apitest.Member, "", v1alpha1.RoleAdmin)
	// The cache lags behind: in kcp, Member is not an admin.
	f.store.held[apitest.Member] = apitest.Membership(apitest.Member, "", v1alpha1.RoleMember)
	f.patch(apitest.Member, inOrg, apitest.Admin, `{"role": "member"}`).Refused(t, http.StatusForbidden)
	f.remove(apitest.Member, inOrg, apitest.Mixed+"?cascade=true").Refused(t, http.StatusForbidden)
	require.Empty(t, f.store.writes)
	require.Equal(t, http.StatusNoContent, f.leave(apitest.Member, inOrg).Code, "leaving is everybody's")
}

// A decision is void if the Membership changes before the decision is carried out.
func TestDemotion_conflictsWithALaterChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(*fixture)
		code      int
	}{
		"changed": {func(f *fixture) { f.store.show(changedAgain(v1alpha1.RoleAdmin)) }, http.StatusConflict},
		"demoted": {func(f *fixture) { f.store.show(changedAgain(v1alpha1.RoleMember)) }, http.StatusOK},
		"removed": {func(f *fixture) { f.store.hide(f.store.held["second"]) }, http.StatusNotFound},
		"nothing of it": {func(f *fixture) {
			f.store.carryOut(v1alpha1.MembershipChange{User: "second", UID: "uid of second", Generation: 1, Role: v1alpha1.RoleMember})
		}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.world.PutUser(apitest.Person("second"))
			f.join("second", "", v1alpha1.RoleAdmin)
			f.store.decided = func(v1alpha1.MembershipChange) { c.meanwhile(f); f.store.caughtUp() }
			answer := f.patch(apitest.Admin, inOrg, "second", `{"role": "member"}`)
			if c.code == http.StatusOK {
				require.Equal(t, "member", answer.Object(t, c.code)["role"])
			} else {
				answer.Refused(t, c.code)
			}
			require.Len(t, f.store.writes, 1)
		})
	}
}

// changedAgain returns the Membership of "second" after a concurrent change.
func changedAgain(role v1alpha1.Role) *v1alpha1.Membership {
	m := apitest.Membership("second", "", role)
	m.Generation = 2
	return m
}

func TestChange_answers202AtTheTimeout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late  func(*fixture)
		place string
		body  string
		role  string
	}{
		"a demotion is not carried out":   {func(f *fixture) { f.store.decided = func(v1alpha1.MembershipChange) {} }, inOrg, `{"role": "member"}`, "admin"},
		"a demotion is not in kcp's RBAC": {neverFollowed, inOrg, `{"role": "member"}`, "member"},
		"a promotion":                     {neverFollowed, inOrg, `{"role": "admin"}`, "admin"},
		"a promotion is not carried out":  {func(f *fixture) { f.store.decided = func(v1alpha1.MembershipChange) {} }, inOrg, `{"role": "admin"}`, "member"},
		"one in a Workspace":              {neverFollowed, inDev, `{"role": "member"}`, "member"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.world.PutUser(apitest.Person("second"))
			f.join("second", "", v1alpha1.RoleAdmin)
			f.join("second", apitest.Dev, v1alpha1.RoleAdmin)
			c.late(f)
			f.impatient()
			user := "second"
			if strings.HasPrefix(name, "a promotion") {
				user = apitest.Member
			}
			require.Equal(t, c.role, f.patch(apitest.Admin, c.place, user, c.body).Object(t, http.StatusAccepted)["role"])
			require.Len(t, f.store.writes, 1)
		})
	}
}

func neverFollowed(f *fixture) {
	f.handler.Followed = func(string, string, string) bool { return false }
}

// The store retries after a lost answer and finds its own write.
func TestDemotion_isFoundAfterALostAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.PutUser(apitest.Person("second"))
	f.join("second", "", v1alpha1.RoleAdmin)
	f.store.lost = true
	require.Equal(t, "member", f.patch(apitest.Admin, inOrg, "second", `{"role": "member"}`).Object(t, http.StatusOK)["role"])
	require.Equal(t, []string{"decide " + apitest.Acme}, f.store.writes)
}

// The hub must not confirm a role while a pending removal is about to take it away, and no
// change voids a removal.
func TestChange_doesNotConfirmARoleThatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		user, body string
		pending    v1alpha1.Role
	}{
		"an admin who is being removed":             {"second", `{"role": "admin"}`, ""},
		"a member who is being removed is promoted": {apitest.Member, `{"role": "admin"}`, ""},
		"a member who is being removed":             {apitest.Member, `{"role": "member"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := twoAdmins(t)
			f.pending(c.user, c.pending)
			require.Contains(t, f.patch(apitest.Admin, inOrg, c.user, c.body).Refused(t, http.StatusConflict).Message, "at the moment")
			f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.MembershipChanges = nil })
			f.patch(apitest.Admin, inOrg, c.user, c.body).Object(t, http.StatusOK)
		})
	}
}

// A promotion replaces a pending demotion: the later decision counts.
func TestPromotion_replacesAPendingDemotion(t *testing.T) {
	t.Parallel()
	f := twoAdmins(t)
	f.pending("second", v1alpha1.RoleMember)
	require.Equal(t, "admin", f.patch(apitest.Admin, inOrg, "second", `{"role": "admin"}`).Object(t, http.StatusOK)["role"])
	require.Len(t, f.store.writes, 1)
}

// PATCH and POST report the same field for the same mistake.
func TestChange_namesTheFieldOfABadRole(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for roles, field := range map[string]string{
		`[{"name": "a", "x": 1}]`:        "roles[0].x",
		`[{"name": "a", "name": "b"}]`:   "roles[0].name",
		`["a"]`:                          "roles",
		`"a"`:                            "roles",
		`[{"name": 1}]`:                  "roles.name",
		`[{"name": "a"}, {"nome": "b"}]`: "roles[1].nome",
	} {
		f.patch(apitest.Admin, inDev, apitest.WSMember, `{"roles": `+roles+`}`).RefusedField(t, field)
		f.add(apitest.Admin, inDev, `{"userRef": {"name": "frank"}, "role": "member", "roles": `+roles+`}`).RefusedField(t, field)
	}
	require.Empty(t, f.store.writes)
	f.patch(apitest.Admin, inDev, apitest.WSMember, `{"roles": [{"name": "a"}]}`).Object(t, http.StatusOK)
}
