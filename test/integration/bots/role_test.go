package bots

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

const accounts = "/api/v1/namespaces/default/serviceaccounts"

// makesAccounts is the code for a bot that makes a ServiceAccount, which only admins may.
func (s scene) makesAccounts(t testing.TB, hub *framework.Hub, secret string) int {
	t.Helper()
	return s.as(t, hub, secret, http.MethodPost, accounts, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"generateName":"made-"}}`).Code
}

// Eve makes a bot that REST calls a member, binds it to more, and is removed.
func TestBot_ofARemovedAdminHasNoMoreThanItsRole(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	s := newScene(t, hub)
	framework.SignUp(t, hub, "erin")
	hub.Do(t, s.call("alice", http.MethodPost, "/members", framework.Adding("erin", "admin")), http.StatusCreated)
	made := hub.Do(t, s.call("erin", http.MethodPost, "/serviceaccounts", `{"displayName":"CI","role":"member"}`), http.StatusCreated)
	bot := made.Text("uuid")
	secret := hub.Do(t, s.call("erin", http.MethodPost, "/serviceaccounts/"+bot+"/tokens", `{}`), http.StatusCreated).Text("token")
	s.works(t, hub, secret)
	s.enforced(t)

	kubectl := func(args string) error {
		_, errOut, err := hub.Kubectl(t, "erin", s.cluster, strings.Fields(args)...)
		if err != nil {
			return fmt.Errorf("%s: %w: %s", args, err, errOut)
		}
		return nil
	}
	for _, args := range []string{
		"create serviceaccount mine",
		"create clusterrolebinding mine --clusterrole=kedge:workspace:admin --serviceaccount=default:mine",
		"create clusterrolebinding others --clusterrole=kedge:workspace:admin --group=system:serviceaccounts:ci",
		"create namespace ci",
		"create serviceaccount " + bot + " --namespace ci",
		"create rolebinding mine --clusterrole=kedge:workspace:admin --serviceaccount=ci:" + bot,
	} {
		require.NoError(t, kubectl(args), "the control")
	}
	for _, args := range []string{
		"create clusterrolebinding x --clusterrole=kedge:workspace:admin --serviceaccount=default:" + bot,
		"create rolebinding x --clusterrole=kedge:workspace:admin --serviceaccount=default:" + bot,
		"create clusterrolebinding x --clusterrole=kedge:workspace:admin --group=system:serviceaccounts:default",
		"create clusterrolebinding x --clusterrole=kedge:workspace:admin --group=system:serviceaccounts",
		"set subject clusterrolebinding mine --serviceaccount=default:" + bot,
		"set subject rolebinding mine --group=system:serviceaccounts:default",
	} {
		require.ErrorContains(t, kubectl(args), "this binding includes bots")
	}
	hub.Do(t, s.call("alice", http.MethodDelete, "/members/erin", nil), http.StatusNoContent)
	s.works(t, hub, secret)
	require.Equal(t, http.StatusForbidden, s.makesAccounts(t, hub, secret))
}

// A binding that is older than the policy gives a bot more than its role. Once the role is
// lowered, no hub takes its tokens until the binding is gone.
func TestBot_isRefusedWhileKcpAllowsMoreThanItsRole(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	brief := func(o *server.Options) { o.FollowTimeout = 8 * time.Second }
	hub, other := framework.StartHub(t, kcp, root, brief), framework.StartHub(t, kcp, root, brief)
	s := newScene(t, hub)
	bot, control := s.bot(t, "admin"), s.bot(t, "admin")
	secret, controls := s.token(t, bot).secret, s.token(t, control).secret
	for _, h := range []*framework.Hub{hub, other} {
		s.works(t, h, secret)
		s.works(t, h, controls)
	}
	s.enforced(t)
	_, errOut, err := kcp.Kubectl(t, "", s.cluster, "create", "clusterrolebinding", "older", "--clusterrole="+tenancy.ClusterRoleAdmin, "--serviceaccount=default:"+bot)
	require.NoError(t, err, errOut)
	patch := func(bot string) (framework.Answer, time.Time) {
		began := time.Now()
		return hub.Do(t, s.call("alice", http.MethodPatch, "/serviceaccounts/"+bot, `{"role":"member"}`), http.StatusOK, http.StatusAccepted), began
	}
	a, _ := patch(control)
	require.Equal(t, http.StatusOK, a.Code, "kcp follows, and the answer waits for it: %s", a.Raw)
	s.works(t, hub, controls)
	require.Equal(t, http.StatusForbidden, s.makesAccounts(t, hub, controls))

	ended := s.watches(t, other, secret)
	a, began := patch(bot)
	require.Equal(t, http.StatusAccepted, a.Code, "%s", a.Raw)
	s.cut(t, ended, began)
	for _, h := range []*framework.Hub{hub, other} {
		s.refused(t, h, secret, http.StatusForbidden, began)
		require.Contains(t, s.as(t, h, secret, http.MethodGet, configMaps, nil).Text("message"), v1alpha1.ConditionRoleEnforced)
	}
	seen := hub.Do(t, s.call("alice", http.MethodGet, "/serviceaccounts/"+bot, nil), http.StatusOK)
	require.Contains(t, string(seen.Raw), "ClusterRoleBinding older")
	require.NotEqual(t, "Ready", seen.Text("phase"))

	// An admin takes the binding away, as the condition says.
	_, errOut, err = hub.Kubectl(t, "alice", s.cluster, "delete", "clusterrolebinding", "older")
	require.NoError(t, err, errOut)
	for _, h := range []*framework.Hub{hub, other} {
		s.works(t, h, secret)
		require.Equal(t, http.StatusForbidden, s.makesAccounts(t, h, secret))
	}
	hub.Do(t, s.call("alice", http.MethodPatch, "/serviceaccounts/"+bot, `{"role":"admin"}`), http.StatusOK)
	require.NotEqual(t, http.StatusUnauthorized, s.as(t, other, secret, http.MethodGet, configMaps, nil).Code, "a higher role refuses nothing")
	framework.Eventually(t, framework.Long, func() error {
		code := s.makesAccounts(t, other, secret)
		return framework.Check(code == http.StatusCreated, "%d", code)
	})
}

// Alice knows the name that her next bot will have, and somebody made an account of it, with a
// binding and a token of its own.
func TestBot_takesOverNoAccountOfSomebody(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	s := newScene(t, hub)
	s.enforced(t)
	alice, err := s.Users(s.UsersPath()).Get(t.Context(), "alice", metav1.GetOptions{})
	require.NoError(t, err)
	const key = "my-bot"
	name := tenancy.KeyedUUID(string(alice.UID), s.ws+"/serviceaccounts", key)
	_, errOut, err := hub.Kubectl(t, "alice", s.cluster, "create", "serviceaccount", name)
	require.Error(t, err)
	require.Contains(t, errOut, "belong to bots")
	_, errOut, err = kcp.Kubectl(t, "", s.cluster, "create", "serviceaccount", name)
	require.NoError(t, err, errOut)

	create := s.call("alice", http.MethodPost, "/serviceaccounts", `{"displayName":"CI","role":"member"}`)
	create.Header = http.Header{"Idempotency-Key": {key}, "Prefer": {"respond-async"}}
	a := hub.Do(t, create, http.StatusAccepted)
	require.Equal(t, name, a.Text("uuid"))
	framework.Eventually(t, framework.Long, func() error {
		conditions := s.inKCP(t, name).Status.Conditions
		said := slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
			return c.Type == v1alpha1.ConditionAccountReady && strings.Contains(c.Message, "kubectl delete serviceaccount "+name)
		})
		return framework.Check(said, "%v", conditions)
	})
	require.Empty(t, s.inKCP(t, name).Status.ServiceAccountUID)
	hub.Do(t, s.call("alice", http.MethodPost, "/serviceaccounts/"+name+"/tokens", `{}`), http.StatusConflict)

	_, errOut, err = hub.Kubectl(t, "alice", s.cluster, "delete", "serviceaccount", name)
	require.NoError(t, err, errOut)
	// The hub gives a token when its own cache has the account.
	framework.Eventually(t, framework.Long, func() error {
		seen := hub.Do(t, s.call("alice", http.MethodGet, "/serviceaccounts/"+name, nil), http.StatusOK)
		return framework.Check(seen.Text("phase") == "Ready", "%s", seen.Raw)
	})
	s.works(t, hub, s.token(t, name).secret)
}
