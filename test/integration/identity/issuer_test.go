package identity

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// metric returns the sum of a metric of a hub over its labels.
func metric(t *testing.T, hub *framework.Hub, name string) (sum float64) {
	t.Helper()
	a, err := (&framework.Client{URL: hub.Metrics, HTTP: http.DefaultClient}).Try(call{Method: http.MethodGet})
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(string(a.Raw), -1)
	require.NotEmpty(t, found, name)
	for _, line := range found {
		n, err := strconv.ParseFloat(line[1], 64)
		require.NoError(t, err)
		sum += n
	}
	return sum
}

// unknownKey returns tokens that name keys that nobody has, with the claims of a good one.
func unknownKey(t *testing.T, good string, n int) []string {
	t.Helper()
	parts := strings.Split(good, ".")
	out := make([]string, n)
	for i := range out {
		out[i] = encoded(t, map[string]any{"alg": "RS256", "kid": fmt.Sprintf("unknown-%d", i)}) + "." + parts[1] + "." + parts[2]
	}
	return out
}

// refused waits until a token whose key was withdrawn is 401. It is 503 until the hub has
// asked the issuer for the key.
func refused(t *testing.T, hub *framework.Hub, token string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		a := hub.Do(t, whoIs(token), http.StatusUnauthorized, http.StatusServiceUnavailable)
		return framework.Equal(http.StatusUnauthorized, a.Code)
	})
}

// A hub starts while its issuer is down, says so, and serves static users. Tokens cannot be
// checked, which is 503. It recovers by itself. Later it goes on with the keys that it has
// while the issuer is down, and takes new keys without a restart.
func TestIssuer_isDownAtStartAndLater(t *testing.T) {
	t.Parallel()
	before := mortal.IDToken(t, framework.HubClient, "carol")
	mortal.Kill()
	hub := framework.StartHub(t, kcp, framework.NewRoot(), framework.WithDex(t, mortal))
	framework.SignUp(t, hub, "alice")
	a := hub.Do(t, whoIs(before), http.StatusServiceUnavailable)
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	require.Zero(t, metric(t, hub, "kedge_oidc_issuer_up"))
	details, err := framework.Readiness(hub.Metrics)
	require.NoError(t, err)
	require.Contains(t, string(details.Raw), mortal.Issuer)

	require.NoError(t, mortal.Start())
	first := mortal.IDToken(t, framework.HubClient, "carol")
	ready(t, hub, first)
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(metric(t, hub, "kedge_oidc_issuer_up") == 1, "the issuer is not up")
	})
	refused(t, hub, before)

	unused := mortal.IDToken(t, framework.HubClient, "carol")
	mortal.Kill()
	hub.Do(t, whoIs(unused), http.StatusOK)
	fetches := metric(t, hub, "kedge_oidc_key_fetches_total")
	calls := []call{}
	for _, token := range unknownKey(t, first, 1000) {
		calls = append(calls, whoIs(token))
	}
	answers, err := framework.AtOnce([]*framework.Hub{hub}, calls)
	require.NoError(t, err)
	codes := map[int]int{}
	for _, a := range answers {
		codes[a.Code]++
	}
	require.Equal(t, map[int]int{http.StatusServiceUnavailable: 1000}, codes, "the keys cannot be fetched")
	require.LessOrEqual(t, metric(t, hub, "kedge_oidc_key_fetches_total")-fetches, 2.0)
	hub.Do(t, whoIs(first), http.StatusOK)

	require.NoError(t, mortal.Start())
	ready(t, hub, mortal.IDToken(t, framework.HubClient, "carol"))
	refused(t, hub, first)
}
