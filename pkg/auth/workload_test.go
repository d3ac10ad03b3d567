package auth_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
)

// jobs is a provider of jobs, the hub's verifier of its tokens, and the clock of both.
type jobs struct {
	*oidctest.Provider
	*auth.Workloads
	clock *clocktesting.FakeClock
}

func newJobs(t *testing.T) jobs {
	k := clocktesting.NewFakeClock(time.Date(2026, time.March, 2, 8, 30, 0, 0, time.UTC))
	p := oidctest.New(t, oidctest.Options{Clock: k})
	// GitHub's discovery document has no endpoints for people.
	p.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != oidctest.DiscoveryPath {
			return false
		}
		_, _ = w.Write([]byte(`{"issuer":"` + p.URL() + `","jwks_uri":"` + p.URL() + oidctest.KeysPath +
			`","subject_types_supported":["public","pairwise"],"response_types_supported":["id_token"],"id_token_signing_alg_values_supported":["ES256"]}`))
		return true
	})
	w, err := auth.NewWorkloads(auth.WorkloadsConfig{Issuers: []string{p.URL()}, CA: p.CA(), Clock: k, Metrics: prometheus.NewRegistry()})
	require.NoError(t, err)
	j := jobs{p, w, k}
	ctx := t.Context()
	go w.Run(ctx, p.URL())
	require.Eventually(t, func() bool { return w.Err() == nil }, 5*time.Second, time.Millisecond)
	return j
}

func (j jobs) token(change oidctest.Claims) string {
	claims := oidctest.Claims{"sub": "repo:octo/app:ref:refs/heads/main", "aud": "https://hub.example.com", "jti": "one", "repository": "octo/app", "repository_id": "42", "run_id": "7"}
	for name, value := range change {
		claims[name] = value
	}
	return j.Token(claims)
}

func TestWorkloads_verifyTheTokenOfAJob(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	token := j.token(oidctest.Claims{"ref_protected": true, "count": 3, "list": []string{"x"}})
	w, err := j.Verify(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, j.URL(), w.Issuer)
	require.Equal(t, []string{"https://hub.example.com"}, w.Audience)
	require.Equal(t, "42", w.Claims["repository_id"])
	require.Equal(t, "true", w.Claims["ref_protected"])
	require.Equal(t, "3", w.Claims["count"])
	require.NotContains(t, w.Claims, "list")
	require.Equal(t, "octo/app run 7", w.Name)
	require.Equal(t, j.clock.Now().Add(time.Hour), w.ExpiresAt.UTC())
	subject, ok := j.Genuine(token)
	require.True(t, ok)
	require.NotContains(t, subject, "octo")
}

func TestWorkloads_tellTokensByTheirJTI(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	id := func(change oidctest.Claims) string {
		w, err := j.Verify(t.Context(), j.token(change))
		require.NoError(t, err)
		return w.ID
	}
	one := id(nil)
	require.Equal(t, one, id(oidctest.Claims{"aud": "https://other.example.com"}), "one jti is one token")
	require.NotEqual(t, one, id(oidctest.Claims{"jti": "two"}))
	without := id(oidctest.Claims{"jti": nil})
	require.Equal(t, without, id(oidctest.Claims{"jti": nil}), "its hash")
	require.NotEqual(t, without, id(oidctest.Claims{"jti": nil, "run_id": "8"}))
	// ECDSA has another signature each time; the hash is that of what is signed.
	first, second := j.token(oidctest.Claims{"jti": nil}), j.token(oidctest.Claims{"jti": nil})
	require.NotEqual(t, first, second)
}

func TestWorkloads_refuseEveryOtherToken(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	other := oidctest.New(t, oidctest.Options{Clock: j.clock})
	now := j.clock.Now()
	good := j.token(nil)
	keys := j.Requests(oidctest.KeysPath)
	for name, token := range map[string]string{
		"not a JWT":           "x",
		"of another issuer":   other.Token(oidctest.Claims{"jti": "x"}),
		"signed by another":   other.Token(oidctest.Claims{"iss": j.URL(), "sub": "x"}),
		"expired":             j.token(oidctest.Claims{"exp": now.Unix()}),
		"without exp":         j.token(oidctest.Claims{"exp": nil}),
		"without iat":         j.token(oidctest.Claims{"iat": nil}),
		"not yet valid":       j.token(oidctest.Claims{"nbf": now.Add(5 * time.Minute).Unix()}),
		"of the future":       j.token(oidctest.Claims{"iat": now.Add(5 * time.Minute).Unix()}),
		"without sub":         j.token(oidctest.Claims{"sub": nil}),
		"a changed signature": good[:len(good)-6] + "AAAAAA",
		"too long":            j.token(oidctest.Claims{"pad": strings.Repeat("x", 20_000)}),
	} {
		_, err := j.Verify(t.Context(), token)
		require.True(t, errs.Is(err, errs.Unauthenticated), "%s: %v", name, err)
		_, ok := j.Genuine(token)
		require.False(t, ok, name)
	}
	require.Equal(t, keys, j.Requests(oidctest.KeysPath), "no forged token costs a request")
	_, err := j.Verify(t.Context(), good)
	require.NoError(t, err)
}

func TestWorkloads_followTheRotationOfKeys(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	before := j.token(nil)
	j.clock.Step(time.Minute)
	j.Rotate()
	token := j.token(nil)
	_, ok := j.Genuine(token)
	require.False(t, ok, "the key is not known yet, and it makes no request")
	_, err := j.Verify(t.Context(), token)
	require.NoError(t, err)
	_, err = j.Verify(t.Context(), before)
	require.Error(t, err, "the key was withdrawn")
}

func TestWorkloads_knowKeysWhileTheIssuerIsDown(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	known := j.token(nil)
	j.clock.Step(time.Minute)
	j.SetDown(true)
	_, err := j.Verify(t.Context(), known)
	require.NoError(t, err)
	j.Rotate()
	_, err = j.Verify(t.Context(), j.token(nil))
	require.True(t, errs.Is(err, errs.Unavailable), "it cannot be checked at the moment: %v", err)
}
