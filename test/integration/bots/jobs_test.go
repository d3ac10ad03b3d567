package bots

import (
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// ci is a scene with a bot and identity providers of jobs: idp looks like GitHub's, and gitlab like a GitLab.
type ci struct {
	scene
	idp, gitlab *oidctest.Provider
	bot         string
	// audience is the external URL of the first hub.
	audience string
}

// trusting makes the hubs trust the issuers.
func trusting(t testing.TB, idps []*oidctest.Provider, change ...func(*server.Options)) func(*server.Options) {
	file := filepath.Join(t.TempDir(), "ci-ca.crt")
	var issuers []string
	var cas []byte
	for _, idp := range idps {
		issuers, cas = append(issuers, idp.URL()), append(cas, idp.CA()...)
	}
	write(t, file, cas)
	return func(o *server.Options) {
		o.CI.Issuers, o.CI.CAFile = issuers, file
		for _, f := range change {
			f(o)
		}
	}
}

func newCI(t testing.TB, change ...func(*server.Options)) ci {
	idp, gitlab := oidctest.New(t, oidctest.Options{Lifetime: 5 * time.Minute}), oidctest.New(t, oidctest.Options{Lifetime: 5 * time.Minute})
	hub := framework.StartHub(t, kcp, framework.NewRoot(), trusting(t, []*oidctest.Provider{idp, gitlab}, change...))
	c := ci{scene: newScene(t, hub), idp: idp, gitlab: gitlab, audience: "https://" + hub.Options.ListenAddress}
	c.bot = c.scene.bot(t, "member")
	return c
}

// job returns an ID token with the claims that GitHub publishes.
func (c ci) job(change oidctest.Claims) string {
	claims := oidctest.Claims{
		"jti": framework.NewRoot(), "sub": "repo:octo/app:environment:production", "aud": c.audience, "ref": "refs/heads/main", "ref_type": "branch", "sha": "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
		"repository": "octo/app", "repository_id": "74", "repository_owner": "octo", "repository_owner_id": "65", "repository_visibility": "private",
		"run_id": "30433642", "run_number": "10", "run_attempt": "2", "actor": "octocat", "actor_id": "12", "workflow": "deploy", "event_name": "push", "environment": "production",
		"job_workflow_ref": "octo/app/.github/workflows/deploy.yml@refs/heads/main", "runner_environment": "github-hosted",
		"preferred_username": nil, "name": nil, "email": nil, "email_verified": nil, "nbf": time.Now().Add(-time.Minute).Unix(),
	}
	maps.Copy(claims, change)
	return c.idp.Token(claims)
}

// trusts adds a rule about the job and returns its ID.
func (c ci) trusts(t testing.TB, claims map[string]string) string {
	t.Helper()
	body := map[string]any{"issuer": c.idp.URL(), "audience": c.audience, "claims": claims}
	return c.hub.Do(t, c.call("alice", http.MethodPost, "/serviceaccounts/"+c.bot+"/trust", body), http.StatusCreated).Text("id")
}

func mainOfApp() map[string]string {
	return map[string]string{"repository": "octo/app", "repository_id": "74", "ref": "refs/heads/main", "environment": "production"}
}

// exchange presents an ID token to a hub.
func (c ci) exchange(t testing.TB, hub *framework.Hub, bot, subjectToken string) framework.Answer {
	t.Helper()
	form := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {subjectToken},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:id_token"}, "resource": {"https://" + hub.Options.ListenAddress + "/bots/" + bot},
	}
	a, err := hub.Try(call{Method: http.MethodPost, Path: "/auth/token", Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Body: form.Encode()})
	require.NoError(t, err)
	return a
}

func TestJobs_getTokensOfTheBotThatTrustsThem(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.log")
	c := newCI(t, func(o *server.Options) { o.AuditLogFile = file })
	rule := c.trusts(t, mainOfApp())
	a := c.exchange(t, c.hub, c.bot, c.job(nil))
	require.Equal(t, http.StatusOK, a.Code, "%s", a.Raw)
	token := a.Text("access_token")
	c.works(t, c.hub, token)

	// It is listed as every other, with the end that the hub gives it.
	list := c.hub.Do(t, c.call("alice", http.MethodGet, "/serviceaccounts/"+c.bot+"/tokens", nil), http.StatusOK)
	require.Contains(t, string(list.Raw), "octo/app run 30433642")
	held := c.inKCP(t, c.bot).Spec.Tokens[0]
	require.Equal(t, rule, held.Trust)
	require.InDelta(t, (15 * time.Minute).Seconds(), time.Until(held.ExpiresAt.Time).Seconds(), 30)

	refused := []string{}
	for name, job := range map[string]string{
		"another repository":     c.job(oidctest.Claims{"repository": "octo/other", "repository_id": "75"}),
		"the renamed repository": c.job(oidctest.Claims{"repository": "octo/renamed"}),
		"a new one of its name":  c.job(oidctest.Claims{"repository_id": "75"}),
		"a fork's pull request":  c.job(oidctest.Claims{"event_name": "pull_request"}),
		"its privileged variant": c.job(oidctest.Claims{"event_name": "pull_request_target"}),
		"another audience":       c.job(oidctest.Claims{"aud": "https://github.com/octo"}),
		"another branch":         c.job(oidctest.Claims{"ref": "refs/heads/dev"}),
		"another environment":    c.job(oidctest.Claims{"environment": "review", "sub": "repo:octo/app:environment:review"}),
		"no environment":         c.job(oidctest.Claims{"environment": nil, "sub": "repo:octo/app:ref:refs/heads/main"}),
		"expired":                c.job(oidctest.Claims{"exp": time.Now().Add(-time.Second).Unix()}),
		"not yet valid":          c.job(oidctest.Claims{"nbf": time.Now().Add(5 * time.Minute).Unix()}),
	} {
		a := c.exchange(t, c.hub, c.bot, job)
		require.Equal(t, http.StatusBadRequest, a.Code, name)
		require.Equal(t, "invalid_grant", a.Text("error"), name)
		refused = append(refused, string(a.Raw))
	}
	unknown := c.exchange(t, c.hub, "cccccccc-1111-4111-8111-000000000001", c.job(nil))
	for _, raw := range refused {
		require.Equal(t, string(unknown.Raw), raw, "one answer")
	}
	c.judgesGitLab(t)
	c.runsPipeline(t)
	c.runsREADME(t)
	framework.Eventually(t, framework.Long, func() error {
		status := c.inKCP(t, c.bot).Status.Trust
		return framework.Check(len(status) == 2 && status[0].LastUsedAt != nil && status[0].LastRefusal != nil, "%v", status)
	})
	said := map[string]bool{}
	for _, e := range framework.AuditEvents(t, file) {
		if e.Stage == audit.StageOutcome && e.Action == "exchange token" {
			require.Equal(t, c.org, e.Org)
			said[e.Facts.Mismatch[rule]] = true
		}
	}
	for _, claim := range []string{"repository", "repository_id", "event_name", "aud", "ref", "environment"} {
		require.True(t, said[claim], claim)
	}
	raw := framework.AuditText(t, file)
	require.NotContains(t, string(raw), "eyJ", "no token is in the audit log")
	require.NotContains(t, c.hub.Log.String(), "eyJ", "nor in the log")
}

// Two hubs trust the issuers. Each part has a bot of its own.
func TestJobs_onTwoHubs(t *testing.T) {
	t.Parallel()
	c := newCI(t)
	other := framework.StartHub(t, kcp, c.hub.Options.RootWorkspace, trusting(t, []*oidctest.Provider{c.idp, c.gitlab}))
	part := func(name string, run func(t *testing.T, c ci)) {
		t.Run(name, func(t *testing.T) {
			own := c
			own.bot = c.scene.bot(t, "member")
			run(t, own)
		})
	}
	part("a token works once", func(t *testing.T, c ci) { c.worksOnce(t, other) })
	part("they end with their issuer", func(t *testing.T, c ci) { c.issuerEnds(t) })
	part("they end with their rule", func(t *testing.T, c ci) { c.ruleEnds(t, other) })
}

// worksOnce presents a token to two hubs many times.
func (c ci) worksOnce(t *testing.T, other *framework.Hub) {
	t.Helper()
	c.trusts(t, mainOfApp())
	framework.Eventually(t, framework.Long, func() error {
		a := c.exchange(t, other, c.bot, c.job(nil))
		return framework.Check(a.Code == http.StatusOK, "the other hub does not know the rule yet: %s", a.Raw)
	})
	job := c.job(nil)
	var given atomic.Int32
	var all sync.WaitGroup
	for i := range 50 {
		hub := c.hub
		if i%2 == 0 {
			hub = other
		}
		all.Go(func() {
			switch a := c.exchange(t, hub, c.bot, job); a.Code {
			case http.StatusOK:
				given.Add(1)
			case http.StatusBadRequest:
			default:
				t.Errorf("%d %s", a.Code, a.Raw)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, given.Load())
	second := c.scene.bot(t, "member")
	require.NotEqual(t, c.bot, second)
	c.bot = second
	c.trusts(t, mainOfApp())
	require.Equal(t, http.StatusBadRequest, c.exchange(t, c.hub, second, job).Code, "not for another bot either")
	require.Equal(t, http.StatusOK, c.exchange(t, c.hub, second, c.job(nil)).Code, "the control")
}

// ruleEnds ends the right of jobs in each way. Their streams end within a second of it.
func (c ci) ruleEnds(t *testing.T, other *framework.Hub) {
	t.Helper()
	logIn := func() string {
		a := c.exchange(t, c.hub, c.bot, c.job(nil))
		require.Equal(t, http.StatusOK, a.Code, "%s", a.Raw)
		c.works(t, other, a.Text("access_token"))
		return a.Text("access_token")
	}
	person := c.token(t, c.bot)
	c.works(t, c.hub, person.secret)
	for name, end := range map[string]func(rule string){
		"the rule is removed": func(rule string) {
			c.hub.Do(t, c.call("alice", http.MethodDelete, "/serviceaccounts/"+c.bot+"/trust/"+rule, nil), http.StatusNoContent)
		},
		"the token is revoked": func(string) {
			for _, held := range c.inKCP(t, c.bot).Spec.Tokens {
				if held.Trust != "" {
					c.hub.Do(t, c.call("alice", http.MethodDelete, "/serviceaccounts/"+c.bot+"/tokens/"+held.ID, nil), http.StatusNoContent)
				}
			}
		},
	} {
		rule := c.trusts(t, mainOfApp())
		secret := logIn()
		watch, elsewhere := c.watches(t, c.hub, secret), c.watches(t, other, secret)
		began := time.Now()
		end(rule)
		c.cut(t, watch, began)
		c.cut(t, elsewhere, began)
		c.refused(t, c.hub, secret, http.StatusUnauthorized, began)
		c.refused(t, other, secret, http.StatusUnauthorized, began)
		c.works(t, c.hub, person.secret)
		t.Log(name, time.Since(began))
		// A job gets a token by the first rule that lets it in.
		c.hub.Do(t, c.call("alice", http.MethodDelete, "/serviceaccounts/"+c.bot+"/trust/"+rule, nil), http.StatusNoContent, http.StatusNotFound)
	}
	c.trusts(t, mainOfApp())
	c.roleLowered(t, other, logIn())
	c.workspaceEnds(t, other, logIn())
}

// issuerEnds starts a hub without the issuer, which refuses what the issuer let in.
func (c ci) issuerEnds(t *testing.T) {
	t.Helper()
	c.trusts(t, mainOfApp())
	secret := c.exchange(t, c.hub, c.bot, c.job(nil)).Text("access_token")
	c.works(t, c.hub, secret)
	without := framework.StartHub(t, kcp, c.hub.Options.RootWorkspace)
	c.refused(t, without, secret, http.StatusUnauthorized, time.Now())
	a, err := without.Try(call{Method: http.MethodGet, Path: "/.well-known/oauth-authorization-server"})
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, a.Code)
}

// A thousand bad tokens do not keep a good one out, and cost the issuer nothing.
func TestJobs_passBesideAFlood(t *testing.T) {
	t.Parallel()
	c := newCI(t, func(o *server.Options) { o.Limits.LoginsPerPeer = 1 })
	c.trusts(t, mainOfApp())
	good := c.job(nil)
	bad := good[:strings.LastIndexByte(good, '.')+1] + strings.Repeat("A", 86)
	keys := c.idp.Requests(oidctest.KeysPath)
	const n = 1000
	flooder := *c.hub
	flooder.Client = c.hub.Uncompared()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range n / 8 {
				if a := c.exchange(t, &flooder, c.bot, bad); a.Code != http.StatusBadRequest && a.Code != http.StatusTooManyRequests {
					t.Errorf("%d %s", a.Code, a.Raw)
				}
			}
		})
	}
	require.Equal(t, http.StatusOK, c.exchange(t, c.hub, c.bot, good).Code)
	all.Wait()
	require.Equal(t, keys, c.idp.Requests(oidctest.KeysPath))
	require.Equal(t, http.StatusOK, c.exchange(t, c.hub, c.bot, c.job(nil)).Code)
}
