package bots_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const (
	github    = "https://token.actions.githubusercontent.com"
	trustOfCI = at + "/" + ci + "/trust"
	ruleBody  = `{"issuer": "` + github + `", "claims": {"repository_id": "42", "ref": "refs/heads/main"}}`
)

// trust gives the Bot ci rules.
func (w *world) trust(ids ...string) {
	b := w.held[ci].DeepCopy()
	for _, id := range ids {
		b.Spec.Trust = append(b.Spec.Trust, v1alpha1.BotTrust{
			ID: id, Issuer: github, CreatedBy: apitest.Admin, CreatedAt: apitest.Epoch(), Claims: map[string]v1alpha1.TrustedValue{"repository_id": "42"},
		})
	}
	w.held[ci] = b
}

func TestTrust_isAddedReadAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.do(apitest.Call{Method: http.MethodPost, Path: trustOfCI, Body: ruleBody})
	require.Equal(t, map[string]any{
		"id": next, "issuer": github, "audience": apitest.HubURL, "claims": map[string]any{"repository_id": "42", "ref": "refs/heads/main"},
		"createdBy": apitest.WSAdmin, "createdAt": "2026-03-01T12:00:00Z",
	}, made.Object(t, http.StatusCreated))
	require.Equal(t, trustOfCI+"/"+next, made.Header.Get("Location"))
	require.Equal(t, []string{next}, w.do(apitest.Call{Method: http.MethodGet, Path: trustOfCI}).Items(t, "id"))

	b := w.held[ci].DeepCopy()
	b.Spec.Tokens = []v1alpha1.BotToken{
		{ID: "person's", SecretUID: "s", CreatedAt: apitest.Epoch(), ExpiresAt: apitest.Epoch()},
		{ID: "job's", SecretUID: "s2", CreatedAt: apitest.Epoch(), ExpiresAt: apitest.Epoch(), Trust: next},
	}
	tenancy.RecordRefusal(b, map[string]string{next: "ref"}, apitest.Epoch().Time)
	w.held[ci] = b
	read := w.do(apitest.Call{Method: http.MethodGet, Path: trustOfCI + "/" + next}).Object(t, http.StatusOK)
	require.Equal(t, "2026-03-01T12:00:00Z", read["lastUsedAt"])
	require.Equal(t, map[string]any{"at": "2026-03-01T12:00:00Z", "claim": "ref"}, read["lastRefusal"])

	require.Equal(t, http.StatusNoContent, w.do(apitest.Call{Method: http.MethodDelete, Path: trustOfCI + "/" + next}).Code)
	require.Equal(t, []string{"person's"}, w.tokens(), "what the rule let in ends with it")
	require.NotEmpty(t, w.rechecked, "and its streams")
	w.do(apitest.Call{Method: http.MethodGet, Path: trustOfCI + "/" + next}).Refused(t, http.StatusNotFound)
	w.do(apitest.Call{Method: http.MethodDelete, Path: trustOfCI + "/" + next}).Refused(t, http.StatusNotFound)
}

func TestTrust_isAddedOnceForOneKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := apitest.Call{Method: http.MethodPost, Path: trustOfCI, Body: ruleBody, Header: http.Header{"Idempotency-Key": {"k"}}}
	first := w.do(c).Object(t, http.StatusCreated)
	require.Equal(t, first["id"], w.do(c).Object(t, http.StatusCreated)["id"])
	require.Len(t, w.held[ci].Spec.Trust, 1)
}

func TestTrust_refusesRulesThatGuess(t *testing.T) {
	t.Parallel()
	for field, body := range map[string]string{
		"issuer":               `{"issuer": "https://evil.example.com", "claims": {"sub": "x"}}`,
		"claims":               `{"issuer": "` + github + `", "claims": {"environment": "prod"}}`,
		"claims.repository_id": `{"issuer": "` + github + `", "claims": {"repository": "octo/app"}}`,
		"claims.project_id":    `{"issuer": "` + github + `", "claims": {"project_path": "g/app"}}`,
	} {
		w := newWorld(t)
		status := w.do(apitest.Call{Method: http.MethodPost, Path: trustOfCI, Body: body}).Refused(t, http.StatusUnprocessableEntity)
		require.Equal(t, field, status.Details.Causes[0].Field)
		require.Empty(t, w.did)
	}
}

func TestTrust_theTwentyFirstRuleIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range tenancy.MaxBotTrust {
		w.trust("rule" + string(rune('a'+i)))
	}
	w.do(apitest.Call{Method: http.MethodPost, Path: trustOfCI, Body: ruleBody}).RefusedCause(t, tenancy.CauseQuota)
}

// A rule tells strangers how to get in.
func TestTrust_isForAdminsOfTheWorkspaceAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []apitest.Call{
		{Method: http.MethodGet, Path: trustOfCI}, {Method: http.MethodGet, Path: trustOfCI + "/rule"},
		{Method: http.MethodPost, Path: trustOfCI, Body: ruleBody}, {Method: http.MethodDelete, Path: trustOfCI + "/rule"},
	} {
		w := newWorld(t)
		w.trust("rule")
		c.As = apitest.WSMember
		w.do(c).Refused(t, http.StatusForbidden)
		require.Empty(t, w.did)
		c.As = apitest.WSAdmin
		require.Less(t, w.do(c).Code, http.StatusMultipleChoices, "the control")
	}
}

func TestTrust_ofABotElsewhereIsNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []apitest.Call{
		{Method: http.MethodGet, Path: at + "/" + prod + "/trust"}, {Method: http.MethodPost, Path: at + "/" + prod + "/trust", Body: ruleBody},
		{Method: http.MethodDelete, Path: at + "/" + prod + "/trust/rule"},
	} {
		w.do(c).Refused(t, http.StatusNotFound)
	}
}

func TestTrust_ofARemovedAdminIsNotAdded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.author = func() bool { return true }
	w.do(apitest.Call{Method: http.MethodPost, Path: trustOfCI, Body: ruleBody}).Refused(t, http.StatusForbidden)
	require.Empty(t, w.held[ci].Spec.Trust)
}
