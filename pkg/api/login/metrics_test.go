package login_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestMetrics_countEveryLoginOnceByItsResult(t *testing.T) {
	t.Parallel()
	h := newHubWith(t, nil, staticTokens)
	h.browser(t).post("/auth/token-login", url.Values{"token": {"token-of-alice"}}).location(t)
	h.browser(t).post("/auth/token-login", url.Values{"token": {"another"}}).page(t, http.StatusForbidden)
	require.NoError(t, testutil.GatherAndCompare(h.metrics, strings.NewReader(logins(map[string]int{"portal ok": 1, "portal refused": 1}))))

	h = newHub(t)
	h.browser(t).authorized("alice")
	b := h.browser(t)
	b.logIn(b.get("/auth/login", nil), "bob").page(t, http.StatusOK)
	b.post("/auth/logout", nil)
	h.browser(t).logIn(b.get("/auth/authorize", authorization()), "nobody").page(t, http.StatusBadRequest)
	b.logIn(b.get("/auth/authorize", authorization()), "pending").location(t)
	poll := h.start(t, "server-1")
	b.post("/auth/device/verify", b.confirming("alice")).page(t, http.StatusOK)
	h.browser(t).post("/auth/token", poll)
	h.start(t, "server-2")
	denied := b.confirming("alice")
	denied.Set("decision", "deny")
	b.post("/auth/device/verify", denied).page(t, http.StatusOK)
	begun := b.get("/auth/login", nil)
	h.provider.fails = unavailable("the identity provider is down")
	b.logIn(begun, "alice").page(t, http.StatusServiceUnavailable)
	require.NoError(t, testutil.GatherAndCompare(h.metrics, strings.NewReader(logins(map[string]int{
		"cli ok": 1, "portal ok": 1, "cli refused": 1, "device ok": 1, "device refused": 1, "portal error": 1,
	}))))
}

// logins is the metric with these counts, by client and result.
func logins(counts map[string]int) string {
	b := &strings.Builder{}
	b.WriteString("# HELP kedge_logins_total Logins that ended, by client and by result: ok, refused or error.\n# TYPE kedge_logins_total counter\n")
	for _, client := range []string{"cli", "device", "portal"} {
		for _, result := range []string{"error", "ok", "refused"} {
			fmt.Fprintf(b, "kedge_logins_total{client=%q,result=%q} %d\n", client, result, counts[client+" "+result])
		}
	}
	return b.String()
}
