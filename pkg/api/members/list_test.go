package members_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestMembers_haveExactlyTheirFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.world.DeleteUser(apitest.Member)
	unseen := apitest.Membership("nobody", "", v1alpha1.RoleMember)
	unseen.Status = v1alpha1.MembershipStatus{}
	f.world.PutMembership(apitest.Acme, unseen)
	answer := f.do(apitest.Admin, http.MethodGet, inOrg+"/members", "")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"continue": "", "items": [
		{"user": "alice", "displayName": "Display of alice", "role": "admin", "scope": "org", "since": "2026-03-01T12:00:00Z", "phase": "Ready", "active": true, "sources": [{"source": "hand", "role": "admin"}]},
		{"user": "bob", "displayName": "Display of bob", "role": "member", "scope": "org", "since": "2026-03-01T12:00:00Z", "phase": "Ready", "active": false, "sources": [{"source": "hand", "role": "member"}]},
		{"user": "mallory", "displayName": "Display of mallory", "role": "member", "scope": "org", "since": "2026-03-01T12:00:00Z", "phase": "Ready", "active": true, "sources": [{"source": "hand", "role": "member"}]},
		{"user": "nobody", "displayName": "nobody", "role": "member", "scope": "org", "since": "2026-03-01T12:00:00Z", "phase": "Progressing", "active": false, "sources": [{"source": "hand", "role": "member"}]}
	]}`, answer.Body, "the soft-deleted stay listed (O-8)")

	f.world.PutMembership(apitest.Acme, withRights(apitest.WSMember, v1alpha1.RoleMember, true, "view"))
	answer = f.do(apitest.Admin, http.MethodGet, inDev+"/members", "")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"continue": "", "items": [
		{"user": "carol", "displayName": "Display of carol", "role": "admin", "scope": "workspace", "since": "2026-03-01T12:00:00Z", "phase": "Ready", "active": true, "sources": [{"source": "hand", "role": "admin"}]},
		{"user": "mallory", "displayName": "Display of mallory", "role": "admin", "scope": "workspace", "since": "2026-03-01T12:00:00Z", "phase": "Ready", "active": true, "sources": [{"source": "hand", "role": "admin"}]},
		{"user": "walter", "displayName": "Display of walter", "role": "member", "scope": "workspace", "roles": [{"name": "view"}], "sudo": true, "since": "2026-03-01T12:00:00Z", "phase": "Ready", "active": true, "sources": [{"source": "hand", "role": "member", "sudo": true}]}
	]}`, answer.Body)
	require.Zero(t, f.world.Waits(), "a read waits for nothing")
	require.Empty(t, f.store.writes)
}

// withRights returns a Membership in Dev that the controller has observed.
func withRights(user string, role v1alpha1.Role, sudo bool, roles ...string) *v1alpha1.Membership {
	m := apitest.Membership(user, apitest.Dev, role)
	m.Spec.Sudo = sudo
	for _, name := range roles {
		m.Spec.Roles = append(m.Spec.Roles, v1alpha1.RoleRef{Name: name})
	}
	return m
}

func TestMembers_comeInPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.do(apitest.Member, http.MethodGet, inOrg+"/members?limit=2", "")
	require.Equal(t, []string{"alice", "bob"}, first.Items(t, "user"))
	next, ok := first.Object(t, http.StatusOK)["continue"].(string)
	require.True(t, ok)
	require.Equal(t, []string{"mallory"}, f.do(apitest.Member, http.MethodGet, inOrg+"/members?limit=2&continue="+next, "").Items(t, "user"))
	require.Equal(t, []string{"mallory"}, f.do(apitest.Member, http.MethodGet, inOrg+"/members?q=MALL", "").Items(t, "user"))
	f.do(apitest.Member, http.MethodGet, inOrg+"/members?limit=0", "").RefusedField(t, "query:limit")
}

func TestMembers_ofAnEmptyWorkspaceAreAnEmptyList(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	answer := f.do(apitest.Admin, http.MethodGet, inOrg+"/workspaces/"+apitest.Prod+"/members", "")
	answer.Object(t, http.StatusOK)
	require.JSONEq(t, `{"continue": "", "items": []}`, answer.Body)
}

// everybody lists the users of apitest.NewWorld.
var everybody = []string{apitest.Admin, apitest.Member, apitest.WSAdmin, apitest.WSMember, apitest.Mixed, apitest.Foreigner, apitest.Operator}

func TestMembers_areReadByMembersOnly(t *testing.T) {
	t.Parallel()
	for path, may := range map[string]map[string]bool{
		inOrg: {apitest.Admin: true, apitest.Member: true, apitest.Mixed: true},
		inDev: {apitest.Admin: true, apitest.WSAdmin: true, apitest.WSMember: true, apitest.Mixed: true},
	} {
		f := newFixture(t)
		for _, as := range everybody {
			answer := f.do(as, http.MethodGet, path+"/members", "")
			if may[as] {
				answer.Object(t, http.StatusOK)
			} else {
				answer.Refused(t, http.StatusForbidden)
			}
		}
		f.do("", http.MethodGet, path+"/members", "").Refused(t, http.StatusUnauthorized)
	}
}

// Only the caller's role in the Org or Workspace itself counts, not a role elsewhere
// (O-15).
func TestO15_membersAreWrittenByAdminsOnly(t *testing.T) {
	t.Parallel()
	for place, admins := range map[string][]string{
		inOrg: {apitest.Admin},
		inDev: {apitest.Admin, apitest.WSAdmin, apitest.Mixed},
	} {
		for verb, request := range map[string]func(*fixture, string) apitest.Answer{
			"add": func(f *fixture, as string) apitest.Answer {
				return f.add(as, place, `{"userRef":{"name":"frank"},"role":"member"}`)
			},
			"change": func(f *fixture, as string) apitest.Answer { return f.patch(as, place, "target", `{"role":"admin"}`) },
			"remove": func(f *fixture, as string) apitest.Answer { return f.remove(as, place, "target") },
		} {
			t.Run(verb+" "+place, func(t *testing.T) {
				t.Parallel()
				for _, as := range append([]string{""}, everybody...) {
					f := newFixture(t)
					f.world.PutUser(apitest.Person("target"))
					f.join("target", "", v1alpha1.RoleMember)
					f.join("target", apitest.Dev, v1alpha1.RoleMember)
					if verb == "remove" && place == inOrg {
						f.world.Leave("target", apitest.Acme, apitest.Dev)
						delete(f.store.held, tenancy.MembershipName("target", apitest.Dev))
					}
					answer := request(f, as)
					switch {
					case slices.Contains(admins, as):
						require.Less(t, answer.Code, 300, "%s: %s", as, answer.Body)
						require.Len(t, f.store.writes, 1, as)
						continue
					case as == "":
						answer.Refused(t, http.StatusUnauthorized)
					default:
						answer.Refused(t, http.StatusForbidden)
					}
					require.Empty(t, f.store.writes, as)
				}
			})
		}
	}
}

func TestO13_doesNothingInADeletedPlace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	gone := inOrg + "/workspaces/" + apitest.Gone
	f.do(apitest.Admin, http.MethodGet, gone+"/members", "").Refused(t, http.StatusNotFound)
	f.add(apitest.Admin, gone, `{"userRef":{"name":"bob"},"role":"member"}`).Refused(t, http.StatusNotFound)
	f.leave(apitest.WSMember, gone).Refused(t, http.StatusForbidden)
	f.do(apitest.Admin, http.MethodGet, inDev+"/members", "").Object(t, http.StatusOK)
	f.world.DeleteOrg(apitest.Acme)
	f.add(apitest.Admin, inOrg, `{"userRef":{"name":"frank"},"role":"member"}`).Refused(t, http.StatusNotFound)
	f.leave(apitest.Member, inOrg).Refused(t, http.StatusNotFound)
	f.leave(apitest.WSMember, inDev).Refused(t, http.StatusNotFound)
	require.Empty(t, f.store.writes)
}
