package login_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api/login"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	ciBot    = "cccccccc-1111-4111-8111-000000000001"
	otherBot = "cccccccc-1111-4111-8111-000000000002"
)

// ci verifies the tokens "job-of-{subject}", whose keys are known unless the subject is new, and gives
// them tokens of ciBot.
type ci struct{ verified []string }

func (*ci) Genuine(token string) (string, bool) {
	subject, ok := strings.CutPrefix(token, "job-of-")
	return subject, ok && subject != "new"
}

func (c *ci) Verify(_ context.Context, token string) (*auth.Workload, error) {
	c.verified = append(c.verified, token)
	subject, ok := strings.CutPrefix(token, "job-of-")
	switch {
	case subject == "down":
		return nil, unavailable("the issuer is down")
	case !ok:
		return nil, errs.New(errs.Unauthenticated, "the signature is not valid")
	}
	return &auth.Workload{Issuer: "https://ci.example.com", ID: subject, Name: subject, Claims: map[string]string{"sub": subject}}, nil
}

func (c *ci) issue(_ context.Context, bot string, job tenancy.Workload, name string) (string, time.Time, error) {
	switch {
	case bot != ciBot || job.ID == "stranger":
		return "", time.Time{}, tenancy.ErrNotTrusted
	case job.ID == "busy":
		return "", time.Time{}, unavailable("kcp is down")
	}
	return "token-for-" + name, now.Add(time.Hour), nil
}

func newHubForJobs(t testing.TB, idp login.Provider) (*hub, *ci) {
	jobs := &ci{}
	return newHubThat(t, idp, nil, func(h *login.Handler) { h.Jobs, h.IssueJobToken = jobs, jobs.issue }), jobs
}

func exchangeOf(subjectToken string) url.Values {
	return url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {subjectToken},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"}, "resource": {hubURL + "/bots/" + ciBot},
	}
}

func TestExchange_answersWithATokenOfTheBot(t *testing.T) {
	t.Parallel()
	for name, idp := range map[string]login.Provider{"beside people": &provider{}, "for jobs alone": nil} {
		h, _ := newHubForJobs(t, idp)
		for _, kind := range []string{"jwt", "id_token"} {
			form := exchangeOf("job-of-app")
			form.Set("subject_token_type", "urn:ietf:params:oauth:token-type:"+kind)
			a := h.browser(t).post("/auth/token", form)
			require.Equal(t, http.StatusOK, a.code, "%s: %s", name, a.body)
			require.JSONEq(t, `{"access_token": "token-for-app", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer", "expires_in": 3600}`, a.body)
		}
		require.Equal(t, []string{"job app", "job app"}, h.limits.sessions)
		require.Zero(t, h.limits.strangers)
	}
}

func TestExchange_refusesEveryTokenAlike(t *testing.T) {
	t.Parallel()
	h, _ := newHubForJobs(t, &provider{})
	elsewhere := exchangeOf("job-of-app")
	elsewhere.Set("resource", hubURL+"/bots/"+otherBot)
	var bodies []string
	for name, form := range map[string]url.Values{"a bad token": exchangeOf("forged"), "a job that is not trusted": exchangeOf("job-of-stranger"), "an unknown bot": elsewhere} {
		a := h.browser(t).post("/auth/token", form)
		a.oauthError(t, http.StatusBadRequest, "invalid_grant")
		bodies = append(bodies, a.body)
		require.Equal(t, bodies[0], a.body, name)
	}
	require.NotContains(t, bodies[0], "signature")
}

func TestExchange_refusesAMalformedRequest(t *testing.T) {
	t.Parallel()
	for field, value := range map[string]string{
		"subject_token": "", "subject_token_type": "urn:ietf:params:oauth:token-type:saml2", "requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token",
		"resource": "https://evil.example.com/bots/" + ciBot, "actor_token": "x",
	} {
		h, jobs := newHubForJobs(t, nil)
		form := exchangeOf("job-of-app")
		form.Set(field, value)
		require.Contains(t, h.browser(t).post("/auth/token", form).oauthError(t, http.StatusBadRequest, "invalid_request"), field)
		require.Empty(t, jobs.verified)
	}
	h, _ := newHubForJobs(t, nil)
	for _, resource := range []string{"", hubURL + "/bots/", hubURL + "/bots/../x", hubURL + "/bots/" + strings.ToUpper(ciBot), ciBot} {
		form := exchangeOf("job-of-app")
		form.Set("resource", resource)
		h.browser(t).post("/auth/token", form).oauthError(t, http.StatusBadRequest, "invalid_request")
	}
}

func TestExchange_isUnavailableWhileNothingCanBeChecked(t *testing.T) {
	t.Parallel()
	h, _ := newHubForJobs(t, nil)
	for _, subject := range []string{"down", "busy"} {
		a := h.browser(t).post("/auth/token", exchangeOf("job-of-"+subject))
		a.oauthError(t, http.StatusServiceUnavailable, "temporarily_unavailable")
		require.Equal(t, "7", a.header.Get("Retry-After"))
	}
}

// A flood of bad tokens from a network uses up what strangers of that network have. A genuine token has
// the limit of its subject.
func TestExchange_ofAGenuineJobPassesBesideAFlood(t *testing.T) {
	t.Parallel()
	h, jobs := newHubForJobs(t, nil)
	h.limits.fail.stranger = errs.New(errs.TooManyRequests, "too many")
	h.browser(t).post("/auth/token", exchangeOf("forged")).oauthError(t, http.StatusTooManyRequests, "temporarily_unavailable")
	h.browser(t).post("/auth/token", exchangeOf("job-of-new")).oauthError(t, http.StatusTooManyRequests, "temporarily_unavailable")
	require.Empty(t, jobs.verified, "nothing is fetched for strangers over the limit")
	require.Equal(t, http.StatusOK, h.browser(t).post("/auth/token", exchangeOf("job-of-app")).code)
}

func TestExchange_isNamedWhereItIsServed(t *testing.T) {
	t.Parallel()
	const grant = "urn:ietf:params:oauth:grant-type:token-exchange"
	metadata := func(h *hub) (m map[string]any) {
		a := h.browser(t).get("/.well-known/oauth-authorization-server", nil)
		require.Equal(t, http.StatusOK, a.code, a.body)
		require.NoError(t, json.Unmarshal([]byte(a.body), &m))
		return m
	}
	both, _ := newHubForJobs(t, &provider{})
	require.Contains(t, metadata(both)["grant_types_supported"], grant)
	require.Contains(t, metadata(both)["grant_types_supported"], "refresh_token")
	alone, _ := newHubForJobs(t, nil)
	require.Equal(t, []any{grant}, metadata(alone)["grant_types_supported"])
	require.NotContains(t, metadata(alone), "authorization_endpoint")
	alone.browser(t).post("/auth/token", redemption("x")).oauthError(t, http.StatusBadRequest, "unsupported_grant_type")
	require.NotContains(t, metadata(newHub(t))["grant_types_supported"], grant)
	newHub(t).browser(t).post("/auth/token", exchangeOf("job-of-app")).oauthError(t, http.StatusBadRequest, "invalid_request")
}
