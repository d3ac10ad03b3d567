package bots_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

const tokensOfCI = at + "/" + ci + "/tokens"

func TestIssue_answersWithTheTokenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{"name": "runner", "expirationSeconds": 3600}`})
	require.Equal(t, map[string]any{
		"id": next, "name": "runner", "token": "hush-" + next,
		"createdAt": "2026-03-01T12:00:00Z", "expirationTimestamp": "2026-03-01T13:00:00Z",
	}, a.Object(t, http.StatusCreated))
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	require.Equal(t, []string{"amend", "issue", "amend"}, w.did)
	require.Equal(t, "secret-of-"+next, w.held[ci].Spec.Tokens[0].SecretUID)

	a = w.do(apitest.Call{Method: http.MethodGet, Path: tokensOfCI})
	require.Equal(t, []string{next}, a.Items(t, "id"))
	require.NotContains(t, a.Body, "hush")
	require.NotContains(t, a.Body, "secret-of")
	a = w.do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`, Header: http.Header{"Idempotency-Key": {"k"}}})
	require.Equal(t, "2027-03-01T12:00:00Z", a.Object(t, http.StatusCreated)["expirationTimestamp"], "a year by default")
}

// The controller has not written the status yet.
func TestIssue_isReadBackRightAfterTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	read := apitest.Call{Method: http.MethodGet, Path: at + "/" + ci}
	require.Nil(t, w.do(read).Object(t, http.StatusOK)["lastTokenIssuedAt"])
	require.Nil(t, w.do(read).Object(t, http.StatusOK)["nextTokenExpiresAt"])
	issued := w.do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`}).Object(t, http.StatusCreated)
	require.Equal(t, issued["createdAt"], w.do(read).Object(t, http.StatusOK)["lastTokenIssuedAt"])
	require.Equal(t, issued["expirationTimestamp"], w.do(read).Object(t, http.StatusOK)["nextTokenExpiresAt"])
	require.Equal(t, []string{issued["expirationTimestamp"].(string)}, w.do(apitest.Call{Method: http.MethodGet, Path: at}).Items(t, "nextTokenExpiresAt"))
}

func TestIssue_answersWithAKubeconfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`, Header: http.Header{"Accept": {"text/plain, application/yaml;q=0.9"}}})
	require.Equal(t, http.StatusCreated, a.Code, a.Body)
	require.Equal(t, "application/yaml", a.Header.Get("Content-Type"))
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	var config clientcmdv1.Config
	require.NoError(t, yaml.UnmarshalStrict([]byte(a.Body), &config))
	require.Equal(t, apitest.HubURL+"/clusters/devcluster", config.Clusters[0].Cluster.Server)
	require.Equal(t, "hush-"+next, config.AuthInfos[0].AuthInfo.Token)
	require.Equal(t, "default", config.Contexts[0].Context.Namespace)
}

func TestIssue_neverReplaysAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`, Header: http.Header{"Idempotency-Key": {"k"}}}
	id, _ := w.do(c).Object(t, http.StatusCreated)["id"].(string)
	a := w.do(c)
	status := a.Refused(t, http.StatusConflict)
	require.Contains(t, status.Message, id)
	require.Equal(t, id, status.Details.Causes[0].Message)
	require.NotContains(t, a.Body, "hush")
	require.Len(t, w.tokens(), 1)
}

func TestIssue_goesOnAfterALostAnswerOfKcp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loses = true
	a := w.do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`})
	require.Equal(t, "hush-"+next, a.Object(t, http.StatusCreated)["token"])
	require.Len(t, w.tokens(), 1)

	// Another request can have the key, so nobody knows which of the two wrote the token.
	w.loses = true
	c := apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`, Header: http.Header{"Idempotency-Key": {"k"}}}
	status := w.do(c).Refused(t, http.StatusConflict)
	require.Contains(t, status.Message, "use another key")
	require.Contains(t, status.Message, "has given out none")
	c.Header = http.Header{"Idempotency-Key": {"another"}}
	require.Equal(t, http.StatusCreated, w.do(c).Code)
}

func TestIssue_refusesATTLOutOfRange(t *testing.T) {
	t.Parallel()
	for _, seconds := range []string{"599", "0", "-5", "31622401", "9007199254740993"} {
		w := newWorld(t)
		status := w.do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{"expirationSeconds": ` + seconds + `}`}).Refused(t, http.StatusUnprocessableEntity)
		require.Equal(t, "expirationSeconds", status.Details.Causes[0].Field)
		require.Empty(t, w.did)
	}
	for body, field := range map[string]string{`{"expirationSeconds": "600"}`: "expirationSeconds", `{"name": "a\u0007b"}`: "name", `{"token": "x"}`: "token"} {
		newWorld(t).do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: body}).RefusedField(t, field)
	}
	for _, seconds := range []string{"600", "31622400"} {
		require.Equal(t, http.StatusCreated, newWorld(t).do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{"expirationSeconds": ` + seconds + `}`}).Code, "the control")
	}
}

func TestIssue_stopsAtTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 20 {
		w.give(fmt.Sprint(i))
	}
	w.do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`}).RefusedCause(t, tenancy.CauseQuota)
	require.Equal(t, http.StatusNoContent, w.do(apitest.Call{Method: http.MethodDelete, Path: tokensOfCI + "/7"}).Code)
	require.Equal(t, http.StatusCreated, w.do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`}).Code, "the control")
}

// Whatever fails, no token is given out, and nothing is left of it where kcp takes writes.
func TestIssue_takesBackWhatFailedHalfWay(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ {
		w, calls := newWorld(t), 0
		w.failing = func(string) error {
			if calls++; calls == n {
				return errs.New(errs.Unavailable, "down")
			}
			return nil
		}
		a := w.do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`})
		a.Refused(t, http.StatusServiceUnavailable)
		require.NotContains(t, a.Body, "hush")
		require.Empty(t, w.tokens(), "step %d", n)
		if n > 1 {
			require.Contains(t, w.did, "discard "+next)
		}
	}
}

func TestIssue_losesAgainstARevocation(t *testing.T) {
	t.Parallel()
	for what, revoke := range map[string]func(*world){
		"of the token":   func(w *world) { w.held[ci] = w.held[ci].DeepCopy(); w.held[ci].Spec.Tokens = nil },
		"of all tokens":  func(w *world) { w.held[ci] = w.held[ci].DeepCopy(); w.held[ci].Spec.Generation++ },
		"of the account": func(w *world) { w.held[ci] = w.held[ci].DeepCopy(); w.held[ci].Status.ServiceAccountUID = "newer" },
	} {
		w := newWorld(t)
		w.failing = func(step string) error {
			if step == "issue" {
				revoke(w)
			}
			return nil
		}
		a := w.do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`})
		a.Refused(t, http.StatusConflict)
		require.NotContains(t, a.Body, "hush", what)
		require.Contains(t, w.did, "discard "+next, what)
		require.Empty(t, w.tokens(), what)
	}
}

func TestRevoke_endsOneToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.give("a", "b")
	require.Equal(t, http.StatusNoContent, w.do(apitest.Call{Method: http.MethodDelete, Path: tokensOfCI + "/a"}).Code)
	require.Equal(t, []string{"b"}, w.tokens())
	require.Equal(t, []string{"account-0"}, w.rechecked)
	w.do(apitest.Call{Method: http.MethodDelete, Path: tokensOfCI + "/a"}).Refused(t, http.StatusNotFound)
}

func TestRevokeAll_replacesTheAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.give("a", "b")
	require.Equal(t, http.StatusNoContent, w.do(apitest.Call{Method: http.MethodDelete, Path: tokensOfCI}).Code)
	require.Empty(t, w.tokens())
	require.EqualValues(t, 1, w.held[ci].Spec.Generation)
	require.Equal(t, []string{"account-0"}, w.rechecked, "the streams are those of the old account")
	require.Equal(t, http.StatusCreated, w.do(apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`}).Code, "the answer waits for the new account")
}

func TestListTokens_leavesOutWhatWorksForNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.give("living", "expired", "being issued")
	b := w.held[ci]
	b.Spec.Tokens[1].ExpiresAt = apitest.Epoch()
	b.Spec.Tokens[2].SecretUID = ""
	a := w.do(apitest.Call{Method: http.MethodGet, Path: tokensOfCI})
	require.Equal(t, []string{"living"}, a.Items(t, "id"))
	require.Equal(t, "\"42\"", a.Header.Get("ETag"))
	require.Len(t, strings.Split(strings.TrimSpace(a.Body), "\n"), 1)
	require.Equal(t, v1alpha1.RoleMember, b.Spec.Role)
}
