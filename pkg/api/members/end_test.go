package members_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

// ways lists the two ways to end a Membership: an admin removes the user, or the user
// leaves. The same rules apply to both.
var ways = map[string]func(f *fixture, place, user, query string) apitest.Answer{
	"removed": func(f *fixture, place, user, query string) apitest.Answer {
		return f.remove(apitest.Admin, place, user+query)
	},
	"leaving": func(f *fixture, place, user, query string) apitest.Answer {
		return f.do(user, http.MethodDelete, place+"/memberships/me"+query, "")
	},
}

func TestO12_aRemovedPersonIsGoneAtOnce(t *testing.T) {
	t.Parallel()
	for way, end := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			for place, c := range map[string]struct{ user, write string }{
				inOrg: {apitest.Member, "decide " + apitest.Acme},
				inDev: {apitest.WSMember, "decide " + apitest.Acme},
			} {
				f := newFixture(t)
				answer := end(f, place, c.user, "")
				require.Equal(t, http.StatusNoContent, answer.Code, answer.Body)
				require.Empty(t, answer.Body)
				require.Equal(t, []string{c.write}, f.store.writes)
				require.NotContains(t, f.do(apitest.Admin, http.MethodGet, place+"/members", "").Items(t, "user"), c.user)
				require.Empty(t, f.world.Index(c.user))
				f.do(c.user, http.MethodGet, place+"/members", "").Refused(t, http.StatusForbidden)
			}
		})
	}
}

func TestO9_refusesARemovalWithoutCascade(t *testing.T) {
	t.Parallel()
	for way, end := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.join(apitest.Mixed, apitest.Prod, v1alpha1.RoleMember)
			for _, query := range []string{"", "?cascade=", "?cascade=false"} {
				answer := end(f, inOrg, apitest.Mixed, query)
				require.Contains(t, answer.Refused(t, http.StatusConflict).Message, "?cascade=true")
				require.Equal(t, []metav1.StatusCause{
					{Type: tenancy.CauseWorkspaceMembership, Field: apitest.Dev, Message: "Development"},
					{Type: tenancy.CauseWorkspaceMembership, Field: apitest.Prod, Message: "Production"},
				}, refusedCauses(t, answer), "the body lists them")
			}
			require.Empty(t, f.store.writes)
			var decided v1alpha1.MembershipChange
			f.store.decided = func(c v1alpha1.MembershipChange) { decided = c; f.store.carryOut(c); f.store.caughtUp() }
			require.Equal(t, http.StatusNoContent, end(f, inOrg, apitest.Mixed, "?cascade=true").Code)
			decided.RequestedAt = metav1.NewMicroTime(decided.RequestedAt.UTC())
			require.Equal(t, v1alpha1.MembershipChange{
				User: apitest.Mixed, UID: "uid of mallory", Generation: 1, Cascade: true, By: map[string]string{"removed": apitest.Admin, "leaving": apitest.Mixed}[way], RequestedAt: metav1.NewMicroTime(apitest.Epoch().UTC()),
			}, decided, "one write holds the whole plan")
			require.Equal(t, []string{"decide " + apitest.Acme}, f.store.writes)
			require.Empty(t, f.world.Index(apitest.Mixed))
			for _, place := range []string{inOrg, inDev, inOrg + "/workspaces/" + apitest.Prod} {
				require.NotContains(t, f.do(apitest.Admin, http.MethodGet, place+"/members", "").Items(t, "user"), apitest.Mixed)
			}
		})
	}
}

// The cascade deletes Memberships in Workspaces, so the hub does not guess its value.
func TestEnd_refusesAnUnclearCascade(t *testing.T) {
	t.Parallel()
	for way, end := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			for place, user := range map[string]string{inOrg: apitest.Member, inDev: apitest.WSMember} {
				f := newFixture(t)
				for _, query := range []string{"?cascade=maybe", "?cascade=1", "?cascade=TRUE", "?cascade=false&cascade=true", "?cascade=true&cascade=true", "?cascade=&cascade"} {
					end(f, place, user, query).RefusedField(t, "query:cascade")
				}
				require.Empty(t, f.store.writes)
				require.Equal(t, http.StatusNoContent, end(f, place, user, "?cascade=true").Code)
			}
		})
	}
}

// A Workspace member is not a member of the Org, and an Org member is not a member of its
// Workspaces.
func TestLeave_refusesPeopleWhoAreNotMembers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.leave(apitest.WSMember, inOrg).Refused(t, http.StatusForbidden)
	f.leave(apitest.Member, inDev).Refused(t, http.StatusForbidden)
	f.leave(apitest.Foreigner, inOrg).Refused(t, http.StatusForbidden)
	f.leave("", inOrg).Refused(t, http.StatusUnauthorized)
	// An Org admin may enter every Workspace without a Membership in it.
	require.Contains(t, f.leave(apitest.Admin, inDev).Refused(t, http.StatusNotFound).Message, "alice is not a member")
	f.remove(apitest.Admin, inOrg, apitest.WSMember+"?cascade=true").Refused(t, http.StatusNotFound)
	f.remove(apitest.Admin, inDev, apitest.Member).Refused(t, http.StatusNotFound)
	require.Empty(t, f.store.writes)
	require.Equal(t, http.StatusNoContent, f.leave(apitest.WSMember, inDev).Code)
}

func TestO9_refusesToRemoveTheLastAdmin(t *testing.T) {
	t.Parallel()
	for name, c := range lastAdmins {
		for way, end := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				for _, query := range []string{"", "?cascade=true"} {
					f := newFixture(t)
					c.arrange(f)
					answer := end(f, inOrg, apitest.Admin, query)
					if c.another {
						require.Equal(t, http.StatusNoContent, answer.Code, answer.Body)
						continue
					}
					causes := refusedCauses(t, answer)
					require.Len(t, causes, 1)
					require.EqualValues(t, tenancy.CauseSoleAdmin, causes[0].Type)
					require.Empty(t, f.store.writes)
				}
			})
		}
	}
}

func TestRemove_takesTheLastAdminOfAWorkspace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	require.Equal(t, http.StatusNoContent, f.leave(apitest.Mixed, inDev).Code)
	require.Equal(t, http.StatusNoContent, f.leave(apitest.WSAdmin, inDev).Code)
	f.patch(apitest.Admin, inDev, apitest.WSMember, `{"role": "admin"}`).Object(t, http.StatusOK)
}

func TestRemove_answers202AtTheTimeout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late  func(*fixture)
		place string
		user  string
		code  int
	}{
		"not carried out":                {func(f *fixture) { f.store.decided = func(v1alpha1.MembershipChange) {} }, inOrg, apitest.Member, http.StatusAccepted},
		"still in kcp's RBAC":            {neverFollowed, inOrg, apitest.Member, http.StatusAccepted},
		"in kcp's RBAC of a Workspace":   {neverFollowed, inDev, apitest.WSMember, http.StatusAccepted},
		"in time":                        {func(*fixture) {}, inOrg, apitest.Member, http.StatusNoContent},
		"in time in a Workspace":         {func(*fixture) {}, inDev, apitest.WSMember, http.StatusNoContent},
		"not carried out in a Workspace": {func(f *fixture) { f.store.decided = func(v1alpha1.MembershipChange) {} }, inDev, apitest.WSMember, http.StatusAccepted},
	} {
		for way, end := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				c.late(f)
				f.impatient()
				answer := end(f, c.place, c.user, "")
				require.Equal(t, c.code, answer.Code, answer.Body)
				require.Equal(t, c.code == http.StatusAccepted, strings.Contains(answer.Body, `"kcpRefusedAt":null`), answer.Body)
				require.Len(t, f.store.writes, 1)
			})
		}
	}
}

// The store retries after a lost answer and finds the Membership gone. The hub recognizes
// its own removal.
func TestRemove_isFoundAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for way, end := range ways {
		for _, query := range []string{"", "?cascade=true"} {
			f := newFixture(t)
			f.store.lost = true
			require.Equal(t, http.StatusNoContent, end(f, inOrg, apitest.Member, query).Code, way)
			require.Equal(t, []string{"decide " + apitest.Acme}, f.store.writes)
			// A second request answers 404, because the first one succeeded.
			f.remove(apitest.Admin, inOrg, apitest.Member).Refused(t, http.StatusNotFound)
		}
	}
}

func TestRemove_repeatedIsTheSameRemoval(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pending := v1alpha1.MembershipChange{User: apitest.Member, UID: "uid of bob", Generation: 1}
	f.world.ChangeOrg(apitest.Acme, func(o *v1alpha1.Organization) { o.Spec.MembershipChanges = []v1alpha1.MembershipChange{pending} })
	f.store.carryOut(pending)
	// kcp still has the Membership when the handler reads it.
	f.store.held[apitest.Member] = apitest.Membership(apitest.Member, "", v1alpha1.RoleMember)
	f.store.caughtUp()
	require.Equal(t, http.StatusNoContent, f.remove(apitest.Admin, inOrg, apitest.Member).Code)
	require.Empty(t, f.store.writes)
	require.Empty(t, f.world.Index(apitest.Member))
}

func TestRemove_conflictsWithALaterChange(t *testing.T) {
	t.Parallel()
	for way, end := range ways {
		f := newFixture(t)
		f.store.decided = func(v1alpha1.MembershipChange) {
			m := apitest.Membership(apitest.Member, "", v1alpha1.RoleAdmin)
			m.Generation = 2
			f.store.show(m)
			f.store.caughtUp()
		}
		end(f, inOrg, apitest.Member, "").Refused(t, http.StatusConflict)
		require.Contains(t, f.store.held, apitest.Member, way)
	}
}

// A user added again during the removal has a new Membership, so the removal is complete.
func TestRemove_isDoneIfThePersonWasAddedAgain(t *testing.T) {
	t.Parallel()
	for place, user := range map[string]string{inOrg: apitest.Member, inDev: apitest.WSMember} {
		f := newFixture(t)
		again := func() {
			m := apitest.Membership(user, map[string]string{inDev: apitest.Dev}[place], v1alpha1.RoleMember)
			m.UID = "uid of the next one"
			f.store.show(m)
		}
		f.store.decided = func(v1alpha1.MembershipChange) { again(); f.store.caughtUp() }
		answer := f.remove(apitest.Admin, place, user)
		require.Equal(t, http.StatusNoContent, answer.Code, answer.Body)
	}
}

func TestRemove_isDoneIfTheOrgIsGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.decided = func(c v1alpha1.MembershipChange) {
		f.world.Later(func(w *apitest.World) { w.Leave(c.User, apitest.Acme, ""); w.DropOrg(apitest.Acme) })
	}
	require.Equal(t, http.StatusNoContent, f.leave(apitest.Member, inOrg).Code)
}
