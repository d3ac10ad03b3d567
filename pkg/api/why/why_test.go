package why_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/why"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/contract"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	at  = "/api/orgs/" + apitest.Acme + "/workspaces/" + apitest.Dev + "/why"
	bot = "eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee"
)

// scene is a handler with a gate that reads the world, and a kcp that allows what the roles of the hub have.
type scene struct {
	world *apitest.World
	bot   *v1alpha1.Bot
	asked []string
	kcp   error
	gate  error
	roles []*rbacv1.ClusterRole
}

func (s *scene) Bot(_, workspace, name string) (*v1alpha1.Bot, bool) {
	return s.bot, name == bot && workspace == apitest.Dev
}
func (s *scene) BindingsIn(string) []*kcpapisv1alpha2.APIBinding { return nil }
func (s *scene) HubRole(_, name string) (*rbacv1.ClusterRole, bool) {
	for _, r := range s.roles {
		if r.Name == name {
			return r, true
		}
	}
	return nil, false
}

func newScene(t *testing.T) (*scene, http.Handler) {
	t.Helper()
	s := &scene{world: apitest.NewWorld(), bot: &v1alpha1.Bot{}, roles: tenancy.ClusterRoles(nil)}
	s.bot.Name, s.bot.Spec.Role, s.bot.Status.ServiceAccountUID = bot, v1alpha1.RoleMember, "account"
	d := s.world.Deps(t, nil, "")
	gate := tenancy.Gate{
		Tree: d.Tree, Cluster: s.world.Cluster, Index: s.world.Index, Org: s.world.Org, Workspace: s.world.Workspace, User: s.world.ByName,
		Sudo: func(_, _, _ string) bool { return false },
	}
	h := &why.Handler{
		Deps: d, Caches: s,
		Enter: func(caller, cluster string) (tenancy.Entry, error) {
			if _, ok := tenancy.BotAccountOf(caller); ok {
				return tenancy.Entry{Role: s.bot.Spec.Role}, s.gate
			}
			if s.gate != nil {
				return tenancy.Entry{}, s.gate
			}
			return gate.Enter(caller, cluster)
		},
		Allows: func(_ context.Context, caller, cluster string, a tenancy.Action) (bool, error) {
			s.asked = append(s.asked, caller+" in "+cluster+": "+a.String())
			return a.Verb == "get", s.kcp
		},
		Entries: func(tenancy.Org) []*v1alpha1.CatalogEntry { return nil },
	}
	return s, apitest.Router(s.world, func(r chi.Router) { h.Mount(r) })
}

func ask(as, query string) apitest.Call {
	return apitest.Call{As: as, Method: http.MethodGet, Path: at + "?" + query, Org: apitest.Acme, Workspace: apitest.Dev}
}

func TestWhy_asksTheGateAndKCP(t *testing.T) {
	t.Parallel()
	s, h := newScene(t)
	a := ask(apitest.WSMember, "verb=get&resource=secrets").Do(h).Object(t, http.StatusOK)
	require.Equal(t, true, a["allowed"])
	require.Equal(t, []any{apitest.WSMember, "member", "", "secrets"}, []any{a["user"], a["role"], a["group"], a["resource"]})
	require.Equal(t, []any{map[string]any{"through": "Membership", "role": "member"}}, a["through"])
	require.Empty(t, a["missing"])
	require.Equal(t, []string{apitest.WSMember + " in devcluster: get secrets"}, s.asked)

	a = ask(apitest.WSMember, "verb=create&resource=roles").Do(h).Object(t, http.StatusOK)
	require.Equal(t, false, a["allowed"])
	require.Equal(t, "rbac.authorization.k8s.io", a["group"], "the group is found")
	missing := a["missing"].([]any)[0].(map[string]any)
	require.Equal(t, []any{"RoleTooLow", "admin"}, []any{missing["code"], missing["role"]})

	a = ask(apitest.WSMember, "verb=create&resource=roles&group=").Do(h).Object(t, http.StatusOK)
	require.Empty(t, a["group"])
	require.Equal(t, "ResourceNotServed", a["missing"].([]any)[0].(map[string]any)["code"])
}

func TestWhy_letsAdminsAskAboutOthers(t *testing.T) {
	t.Parallel()
	s, h := newScene(t)
	end := metav1.NewTime(apitest.Epoch().Add(time.Hour))
	held, _ := s.world.Membership("acmecluster", tenancy.MembershipName(apitest.WSMember, apitest.Dev))
	m := held.DeepCopy()
	m.Spec.ExpiresAt = &end
	s.world.PutMembership(apitest.Acme, m)
	a := ask(apitest.Admin, "verb=get&resource=secrets&user="+apitest.WSMember).Do(h).Object(t, http.StatusOK)
	require.Equal(t, []any{map[string]any{"through": "Membership", "role": "member", "expiresAt": "2026-03-01T13:00:00Z"}}, a["through"])
	a = ask(apitest.Admin, "verb=get&resource=secrets").Do(h).Object(t, http.StatusOK)
	require.Equal(t, []any{map[string]any{"through": "OrgAdmin", "role": "admin"}}, a["through"])
	a = ask(apitest.WSAdmin, "verb=get&resource=secrets&bot="+bot).Do(h).Object(t, http.StatusOK)
	require.Equal(t, []any{bot, true}, []any{a["bot"], a["allowed"]})
	require.Equal(t, []any{map[string]any{"through": "Bot", "role": "member"}}, a["through"])
	require.Equal(t, tenancy.BotKey("account")+" in devcluster: get secrets", s.asked[2])
	ask(apitest.WSMember, "verb=get&resource=secrets&user="+apitest.WSMember).Do(h).Object(t, http.StatusOK)
}

func TestWhy_refusesQuestionsAboutOthers(t *testing.T) {
	t.Parallel()
	s, h := newScene(t)
	for _, query := range []string{"&user=" + apitest.WSAdmin, "&user=nobody", "&bot=" + bot, "&bot=none"} {
		ask(apitest.WSMember, "verb=get&resource=secrets"+query).Do(h).RefusedCause(t, "RoleTooLow")
	}
	ask(apitest.Member, "verb=get&resource=secrets").Do(h).Refused(t, http.StatusForbidden)
	require.Empty(t, s.asked)
}

// An admin learns nothing about the accounts of people who are not in the Workspace.
func TestWhy_saysTheSameOfEverybodyOutside(t *testing.T) {
	t.Parallel()
	s, h := newScene(t)
	deleted := apitest.Person(apitest.Mixed)
	now := metav1.Now()
	deleted.Status.DeletionRequestedAt = &now
	s.world.PutUser(deleted)
	var said []any
	for _, user := range []string{"nobody", apitest.Foreigner, apitest.Member, apitest.Mixed} {
		a := ask(apitest.Admin, "verb=get&resource=secrets&user="+user).Do(h).Object(t, http.StatusOK)
		require.Equal(t, user, a["user"])
		delete(a, "user")
		said = append(said, a)
		require.Equal(t, said[0], said[len(said)-1], user)
		require.Equal(t, "NotAMember", a["missing"].([]any)[0].(map[string]any)["code"])
	}
	require.Empty(t, s.asked)
}

func TestWhy_saysWhatTheGateWaitsFor(t *testing.T) {
	t.Parallel()
	s, h := newScene(t)
	code := func(query string) any {
		a := ask(apitest.Admin, "verb=get&resource=secrets"+query).Do(h).Object(t, http.StatusOK)
		require.Equal(t, false, a["allowed"])
		return a["missing"].([]any)[0].(map[string]any)["code"]
	}
	s.gate = errs.New(errs.Unavailable, "the workspace is still being created")
	require.Equal(t, "WorkspaceNotReady", code(""))
	s.gate = tenancy.RoleTooLow("the role of this bot was lowered")
	require.Equal(t, "RoleTooLow", code("&bot="+bot))
	s.bot.Status.ServiceAccountUID = ""
	require.Equal(t, "WorkspaceNotReady", code("&bot="+bot))
	s.gate, s.kcp = nil, errors.New("secret detail")
	answer := ask(apitest.Admin, "verb=get&resource=secrets").Do(h)
	answer.Refused(t, http.StatusServiceUnavailable)
	require.NotContains(t, answer.Body, "secret detail")
}

func TestWhy_refusesBadQuestions(t *testing.T) {
	t.Parallel()
	_, h := newScene(t)
	for query, field := range map[string]string{
		"resource=secrets": "query:verb", "verb=get": "query:resource", "verb=*&resource=secrets": "query:verb",
		"verb=get&resource=secrets&name=%0a": "query:name", "verb=get&resource=secrets&user=x&bot=y": "query:bot", "verb=get&resource=a/b": "query:resource",
	} {
		ask(apitest.Admin, query).Do(h).RefusedField(t, field)
	}
	ask(apitest.Admin, "verb=get&resource=secrets&bot=none").Do(h).Refused(t, http.StatusNotFound)
}

func TestSchemas_equalTheTypes(t *testing.T) {
	t.Parallel()
	contract.RequireFields(t, map[string]any{"Why": rest.Why{}})
}
