package members_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const addFrank = `{"userRef": {"name": "frank"}, "role": "member"}`

func TestAdd_makesAMembershipThatIsReadAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ place, body, write, want string }{
		"in the Org":                {inOrg, addFrank, "decide " + apitest.Acme, `"role": "member", "scope": "org"`},
		"as its admin":              {inOrg, `{"userRef": {"name": "frank"}, "role": "admin"}`, "decide " + apitest.Acme, `"role": "admin", "scope": "org"`},
		"in a Workspace":            {inDev, addFrank, "decide " + apitest.Acme, `"role": "member", "scope": "workspace"`},
		"with roles and sudo":       {inDev, `{"userRef": {"name": "frank"}, "role": "member", "roles": [{"name": "view"}], "sudo": true}`, "decide " + apitest.Acme, `"role": "member", "scope": "workspace", "roles": [{"name": "view"}], "sudo": true`},
		"with a role in namespaces": {inDev, `{"userRef": {"name": "frank"}, "role": "member", "roles": [{"name": "view"}, {"name": "view", "namespace": "a"}, {"name": "view", "namespace": "b"}]}`, "decide " + apitest.Acme, `"role": "member", "scope": "workspace", "roles": [{"name": "view"}, {"name": "view", "namespace": "a"}, {"name": "view", "namespace": "b"}]`},
		"without, said expressly":   {inDev, `{"userRef": {"name": "frank"}, "role": "admin", "roles": [], "sudo": false}`, "decide " + apitest.Acme, `"role": "admin", "scope": "workspace"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			answer := f.add(apitest.Admin, c.place, c.body)
			requireBody(t, answer, http.StatusCreated, `{"user": "frank", "displayName": "Display of frank", `+c.want+`, "since": "2026-03-01T12:00:00Z", "phase": "Ready", "active": true}`)
			require.Equal(t, []string{c.write}, f.store.writes)
			require.Zero(t, f.world.StillToCome(), "it waited until it counts")
			require.Contains(t, f.do(apitest.Admin, http.MethodGet, c.place+"/members", "").Items(t, "user"), "frank")
		})
	}
}

func TestAdd_limitsTheAdditionsOfACaller(t *testing.T) {
	t.Parallel()
	for _, place := range []string{inOrg, inDev} {
		f := newFixture(t)
		f.handler.LimitAdditions = func(r *http.Request, person string) error {
			require.Equal(t, apitest.Admin, httpmw.CallerOf(r).Key())
			if person == "frank" {
				return errs.New(errs.TooManyRequests, "too many")
			}
			return nil
		}
		f.add(apitest.Admin, place, addFrank).Refused(t, http.StatusTooManyRequests)
		require.Empty(t, f.store.writes)
		f.add(apitest.Admin, place, `{"userRef": {"name": "olga"}, "role": "member"}`).Object(t, http.StatusCreated)
	}
}

// A retry creates no duplicate and does not change the existing Membership.
func TestAdd_changesNothingForAMember(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		place, body string
		code        int
		says        string
	}{
		"with the same role":                 {inOrg, `{"userRef": {"name": "bob"}, "role": "member"}`, http.StatusOK, ""},
		"with another role":                  {inOrg, `{"userRef": {"name": "bob"}, "role": "admin"}`, http.StatusConflict, "as member"},
		"with a lesser role":                 {inOrg, `{"userRef": {"name": "alice"}, "role": "member"}`, http.StatusConflict, "as admin"},
		"with the same role in a Workspace":  {inDev, `{"userRef": {"name": "walter"}, "role": "member", "sudo": true, "roles": [{"name": "b"}, {"name": "a"}]}`, http.StatusOK, ""},
		"with another role in a Workspace":   {inDev, `{"userRef": {"name": "walter"}, "role": "admin", "sudo": true, "roles": [{"name": "b"}, {"name": "a"}]}`, http.StatusConflict, "as member"},
		"with a role in a namespace only":    {inDev, `{"userRef": {"name": "walter"}, "role": "member", "sudo": true, "roles": [{"name": "b"}, {"name": "a", "namespace": "a"}]}`, http.StatusConflict, "PATCH"},
		"with other roles in a Workspace":    {inDev, `{"userRef": {"name": "walter"}, "role": "member", "sudo": true, "roles": [{"name": "a"}]}`, http.StatusConflict, "PATCH"},
		"without the sudo that they have":    {inDev, `{"userRef": {"name": "walter"}, "role": "member", "roles": [{"name": "a"}, {"name": "b"}]}`, http.StatusConflict, "PATCH"},
		"being a member of the Org is apart": {inDev, `{"userRef": {"name": "bob"}, "role": "member"}`, http.StatusCreated, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.world.PutMembership(apitest.Acme, withRights(apitest.WSMember, v1alpha1.RoleMember, true, "a", "b"))
			f.reread()
			answer := f.add(apitest.Admin, c.place, c.body)
			if c.code == http.StatusConflict {
				require.Equal(t, metav1.StatusReasonAlreadyExists, answer.Refused(t, c.code).Reason)
				require.Contains(t, answer.Body, c.says)
			} else {
				answer.Object(t, c.code)
			}
			if c.code != http.StatusCreated {
				require.Empty(t, f.store.writes)
			}
		})
	}
}

// The hub must not confirm a Membership that a pending removal or demotion is about to
// undo.
func TestAdd_conflictsWithARemovalOrDemotion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change v1alpha1.MembershipChange
		user   string
		code   int
	}{
		"being removed":              {v1alpha1.MembershipChange{User: "bob", UID: "uid of bob", Generation: 1}, "bob", http.StatusConflict},
		"being removed from all":     {v1alpha1.MembershipChange{User: "bob", UID: "uid of bob", Generation: 1, Cascade: true}, "bob", http.StatusConflict},
		"of one who was made anew":   {v1alpha1.MembershipChange{User: "bob", UID: "uid before", Generation: 1}, "bob", http.StatusOK},
		"of one who was changed":     {v1alpha1.MembershipChange{User: "bob", UID: "uid of bob", Generation: 0}, "bob", http.StatusOK},
		"somebody else is":           {v1alpha1.MembershipChange{User: "mallory", UID: "uid of mallory", Generation: 1}, "bob", http.StatusOK},
		"somebody new, of that name": {v1alpha1.MembershipChange{User: "frank", UID: "uid before", Generation: 1}, "frank", http.StatusCreated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.MembershipChanges = []v1alpha1.MembershipChange{c.change} })
			answer := f.add(apitest.Admin, inOrg, `{"userRef": {"name": "`+c.user+`"}, "role": "member"}`)
			if c.code != http.StatusConflict {
				answer.Object(t, c.code)
				return
			}
			require.Equal(t, metav1.StatusReasonConflict, answer.Refused(t, c.code).Reason)
			require.Contains(t, answer.Body, "afterwards")
		})
	}
}

func TestAdd_namesTheFieldOfABadBody(t *testing.T) {
	t.Parallel()
	both := map[string]string{
		`{"role": "member"}`:                                                              "userRef.name",
		`{"userRef": {}, "role": "member"}`:                                               "userRef.name",
		`{"userRef": null, "role": "member"}`:                                             "userRef.name",
		`{"userRef": {"name": ""}, "role": "member"}`:                                     "userRef.name",
		`{"userRef": {"name": 7}, "role": "member"}`:                                      "userRef.name",
		`{"userRef": "frank", "role": "member"}`:                                          "userRef",
		`{"userRef": {"name": "frank", "email": "f@example.com"}, "role": "member"}`:      "userRef.email",
		`{"userRef": {"name": "frank"}}`:                                                  "role",
		`{"userRef": {"name": "frank"}, "role": ""}`:                                      "role",
		`{"userRef": {"name": "frank"}, "role": null}`:                                    "role",
		`{"userRef": {"name": "frank"}, "role": "owner"}`:                                 "role",
		`{"userRef": {"name": "frank"}, "role": "Admin"}`:                                 "role",
		`{"userRef": {"name": "frank"}, "role": true}`:                                    "role",
		`{"userRef": {"name": "frank"}, "role": "member", "role": "admin"}`:               "role",
		`{"userRef": {"name": "frank"}, "role": "member", "scope": "org"}`:                "scope",
		`{"userRef": {"name": "frank"}, "role": "member", "workspaceRef": {"name": "x"}}`: "workspaceRef",
	}
	bodies := map[string]map[string]string{inOrg: {
		`{"userRef": {"name": "frank"}, "role": "member", "sudo": true}`: "sudo",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": []}`:  "roles",
	}, inDev: {
		`{"userRef": {"name": "frank"}, "role": "member", "sudo": "yes"}`:                                                               "sudo",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": {"name": "view"}}`:                                                   "roles",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": [{}]}`:                                                               "roles.name",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": [{"name": "cluster-admin"}]}`:                                        "roles.name",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": [{"name": "kedge:workspace:admin"}]}`:                                "roles.name",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": [{"name": "system:masters"}]}`:                                       "roles.name",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": [{"name": "view", "namespace": "../x"}]}`:                            "roles.namespace",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": [{"name": "view", "namespace": "a/b"}]}`:                             "roles.namespace",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": [{"name": "system:x", "namespace": "a"}]}`:                           "roles.name",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": [{"name": "r", "namespace": "a"}, {"name": "r", "namespace": "a"}]}`: "roles.name",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": [{"name": "../x"}]}`:                                                 "roles.name",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": [{"name": "view"}, {"name": "view"}]}`:                               "roles.name",
		`{"userRef": {"name": "frank"}, "role": "member", "roles": [` + strings.Repeat(`{"name":"r"},`, 32) + `{"name":"r"}]}`:          "roles",
	}}
	for place, more := range bodies {
		f := newFixture(t)
		for _, bad := range []map[string]string{both, more} {
			for body, field := range bad {
				t.Log(place, body)
				f.add(apitest.Admin, place, body).RefusedField(t, field)
			}
		}
		f.add(apitest.Admin, place, "").Refused(t, http.StatusUnsupportedMediaType)
		require.Empty(t, f.store.writes)
		f.add(apitest.Admin, place, addFrank).Object(t, http.StatusCreated)
	}
}

// O-15: only metadata.name identifies a user. The name becomes part of an object's name,
// so the hub accepts existing users only.
func TestO15_addFindsPeopleByNameOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.DeleteUser(apitest.WSMember)
	leaving := apitest.Person("leaving")
	now := apitest.Epoch()
	leaving.DeletionTimestamp = &now
	f.world.PutUser(leaving)
	for _, name := range []string{
		"nobody", "Frank", "Display of frank", "frank@example.com", apitest.WSMember, "leaving", "me",
		"../organizations/" + apitest.Acme, "frank/../bob", "%66rank", apitest.Dev + ".frank", "frank\\u0000", " frank", ".", "..",
	} {
		for _, place := range []string{inOrg, inDev} {
			f.add(apitest.Admin, place, `{"userRef": {"name": "`+name+`"}, "role": "member"}`).RefusedField(t, "userRef.name")
		}
	}
	require.Empty(t, f.store.writes)

	// A pending user can be added, but the Membership stays inactive.
	pending := apitest.Person(apitest.Foreigner)
	pending.Spec.Registration = v1alpha1.RegistrationPending
	f.world.PutUser(pending)
	require.Equal(t, false, f.add(apitest.Admin, inOrg, addFrank).Object(t, http.StatusCreated)["active"])
}

func TestAdd_answers202WithRespondAsync(t *testing.T) {
	t.Parallel()
	for _, place := range []string{inOrg, inDev} {
		f := newFixture(t)
		call := apitest.Call{
			As: apitest.Admin, Method: http.MethodPost, Path: place + "/members", Body: addFrank, Org: apitest.Acme,
			Header: http.Header{"Prefer": {"respond-async"}},
		}
		if place == inDev {
			call.Workspace = apitest.Dev
		}
		require.Equal(t, "frank", call.Do(f.http).Object(t, http.StatusAccepted)["user"])
		require.Len(t, f.store.writes, 1)

		// Prefer has no effect if there is nothing to wait for.
		f = newFixture(t)
		f.join(apitest.Foreigner, call.Workspace, v1alpha1.RoleMember)
		require.Equal(t, "Ready", call.Do(f.http).Object(t, http.StatusOK)["phase"])
	}
}

// The answer is 202 if the Membership does not take effect in time: in the index, for the
// controller, or in kcp.
func TestAdd_answers202AtTheTimeout(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func(*fixture){
		"the controller": func(f *fixture) { f.store.unsettled = true },
		"kcp":            func(f *fixture) { f.handler.Followed = func(string, string, string) bool { return false } },
		"the index":      func(f *fixture) { f.store.unindexed = true },
		"nobody":         func(*fixture) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, place := range []string{inOrg, inDev} {
				f := newFixture(t)
				late(f)
				f.impatient()
				code := http.StatusAccepted
				if name == "nobody" {
					code = http.StatusCreated
				}
				require.Equal(t, "frank", f.add(apitest.Admin, place, addFrank).Object(t, code)["user"])
				require.Equal(t, []string{"decide " + apitest.Acme}, f.store.writes)
			}
		})
	}
}

func TestWrite_answersAFailureWithoutWaiting(t *testing.T) {
	t.Parallel()
	for _, place := range []string{inOrg, inDev} {
		for name, request := range map[string]func(*fixture) apitest.Answer{
			"add": func(f *fixture) apitest.Answer { return f.add(apitest.Admin, place, addFrank) },
			"promote": func(f *fixture) apitest.Answer {
				return f.patch(apitest.Admin, place, apitest.Mixed, `{"role": "admin"}`)
			},
			"demote": func(f *fixture) apitest.Answer { return f.patch(apitest.Admin, place, "second", `{"role": "member"}`) },
			"remove": func(f *fixture) apitest.Answer { return f.remove(apitest.Admin, place, "second") },
			"leave":  func(f *fixture) apitest.Answer { return f.leave("second", place) },
		} {
			f := newFixture(t)
			f.world.PutUser(apitest.Person("second"))
			f.join("second", map[string]string{inDev: apitest.Dev}[place], v1alpha1.RoleAdmin)
			f.store.failure = apitest.ErrDown
			request(f).Down(t)
			require.Zero(t, f.world.Waits(), name)
			f.store.failure = nil
			require.Less(t, request(f).Code, 300, name)
		}
	}
}
