package bots

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// counted maps the codes of answers to their number.
func counted(answers []framework.Answer) map[int]int {
	codes := map[int]int{}
	for _, a := range answers {
		codes[a.Code]++
	}
	return codes
}

func TestBots_limitsHoldOnTwoHubs(t *testing.T) {
	t.Parallel()
	hubs := kcp.Shared(t, 2)
	s := newScene(t, hubs[0])
	bot := s.bot(t, "member")
	for range tenancy.MaxBots - 4 - 1 {
		b := tenancy.NewBot(uuid.NewString(), s.ws, "Filler", v1alpha1.RoleMember, "alice", "")
		_, err := s.Bots(s.OrgPath(s.org)).Create(t.Context(), b, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for _, hub := range hubs {
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(s.call("alice", http.MethodGet, "/serviceaccounts?limit=500", nil))
			if err != nil {
				return err
			}
			items, _ := a.JSON["items"].([]any)
			return framework.Equal(tenancy.MaxBots-4, len(items))
		})
	}
	var calls []call
	for i := range 12 {
		c := s.call("alice", http.MethodPost, "/serviceaccounts", fmt.Sprintf(`{"displayName": "Bot %d", "role": "member"}`, i))
		c.Header = http.Header{"Prefer": {"respond-async"}}
		calls = append(calls, c)
	}
	answers, err := framework.AtOnce(hubs, calls)
	require.NoError(t, err)
	require.Equal(t, map[int]int{http.StatusAccepted: 4, http.StatusForbidden: 8}, counted(answers))

	calls = nil
	// All that is at once changes one Bot, and each is judged in kcp while the others wait.
	token := s.call("alice", http.MethodPost, "/serviceaccounts/"+bot+"/tokens", `{}`)
	for i := range tenancy.MaxBotTokens - 4 {
		hubs[i%2].Do(t, token, http.StatusCreated)
	}
	for range 8 {
		calls = append(calls, token)
	}
	answers, err = framework.AtOnce(hubs, calls)
	require.NoError(t, err)
	for _, a := range answers {
		require.Contains(t, []int{http.StatusCreated, http.StatusForbidden}, a.Code, "%s", a.Raw)
	}
	require.Equal(t, map[int]int{http.StatusCreated: 4, http.StatusForbidden: 4}, counted(answers))
	for _, a := range answers {
		if a.Code == http.StatusForbidden {
			require.Equal(t, []string{tenancy.CauseQuota}, framework.CausesOf(t, a))
		}
	}
	require.Len(t, s.inKCP(t, bot).Spec.Tokens, tenancy.MaxBotTokens)
}

func TestBots_aTokenIsShownOnce(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	s := newScene(t, hub)
	key := http.Header{"Idempotency-Key": {"once"}}
	c := s.call("alice", http.MethodPost, "/serviceaccounts", `{"displayName": "CI", "role": "member"}`)
	c.Header = key
	bot := hub.Do(t, c, http.StatusCreated).Text("uuid")
	require.Equal(t, bot, hub.Do(t, c, http.StatusCreated).Text("uuid"))
	c = s.call("alice", http.MethodPost, "/serviceaccounts/"+bot+"/tokens", `{"expirationSeconds": 600}`)
	c.Header = key
	issued := hub.Do(t, c, http.StatusCreated)
	again := hub.Do(t, c, http.StatusConflict)
	require.Contains(t, again.Text("message"), issued.Text("id"))
	require.NotContains(t, string(again.Raw), issued.Text("token"))
	for _, seconds := range []string{"599", "31622401"} {
		hub.Do(t, s.call("alice", http.MethodPost, "/serviceaccounts/"+bot+"/tokens", `{"expirationSeconds": `+seconds+`}`), http.StatusUnprocessableEntity)
	}
	list := hub.Do(t, s.call("bob", http.MethodGet, "/serviceaccounts/"+bot+"/tokens", nil), http.StatusOK)
	require.NotContains(t, string(list.Raw), issued.Text("token"))
	require.NotContains(t, hub.Log.String(), issued.Text("token"))
}

// A CI job needs nothing but the kubeconfig that the hub gives out with the token.
func TestBots_aJobAppliesAManifest(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	s := newScene(t, hub)
	bot := s.bot(t, "member")
	c := s.call("alice", http.MethodPost, "/serviceaccounts/"+bot+"/tokens", `{}`)
	c.Header = http.Header{"Accept": {"application/yaml"}}
	kubeconfig := t.TempDir() + "/kubeconfig"
	write(t, kubeconfig, hub.Do(t, c, http.StatusCreated).Raw)
	_, errOut, err := framework.Kubectl(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: deployed}\n", "--kubeconfig", kubeconfig, "apply", "-f", "-")
	require.NoError(t, err, "the token works at once: %s", errOut)
	out, errOut, err := framework.Kubectl(t, "", "--kubeconfig", kubeconfig, "get", "configmap", "deployed", "-o", "name")
	require.NoError(t, err, errOut)
	require.Equal(t, "configmap/deployed\n", out)
}
