package cli_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/cli"
)

func TestCredential_asksTheHubWhatKubectlAsks(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	code, _, errOut := b.run(t, "credential", "--server", b.URL)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "KUBERNETES_EXEC_INFO")
	for _, bad := range []string{"no JSON", `{"kind":"Status"}`, `{"kind":"ExecCredential","spec":7}`} {
		b.env["KUBERNETES_EXEC_INFO"] = bad
		code, _, errOut = b.run(t, "credential", "--server", b.URL)
		require.Equal(t, 1, code)
		require.Contains(t, errOut, "is not an ExecCredential", bad)
	}
	// As kubectl encodes it.
	b.env["KUBERNETES_EXEC_INFO"] = `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"x","certificate-authority-data":"` +
		base64.StdEncoding.EncodeToString(b.ca()) + `","config":null},"interactive":false}}`
	code, _, errOut = b.run(t, "credential", "--server", b.URL)
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "kedge login --server "+b.URL)
	require.Equal(t, 1, strings.Count(errOut, "\n"), "one line, for kubectl to show")

	b.login(t)
	b.mux.HandleFunc("POST /api/credentials", func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.JSONEq(t, b.env["KUBERNETES_EXEC_INFO"], string(raw))
		_, _ = io.WriteString(w, `{"kind":"ExecCredential","status":{"token":"`+secret+`"}}`)
	})
	code, out, errOut := b.run(t, "credential", "--server", b.URL)
	require.Zero(t, code, errOut)
	require.Contains(t, out, secret)
}

// kubectl asks for a credential as kubectl does, with fields of the cluster changed. It answers
// with the token of the caller.
func (b *bed) kubectl(t *testing.T, change map[string]any) (code int, out, errOut string) {
	t.Helper()
	cluster := map[string]any{"server": b.URL + "/clusters/x", "certificate-authority-data": b.ca(), "config": nil}
	for field, value := range change {
		cluster[field] = value
	}
	raw, err := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "spec": map[string]any{"cluster": cluster}})
	require.NoError(t, err)
	environment := b.environment()
	getenv := environment.Getenv
	environment.Getenv = func(name string) string {
		if name == "KUBERNETES_EXEC_INFO" {
			return string(raw)
		}
		return getenv(name)
	}
	var stdout, stderr bytes.Buffer
	code = cli.Main(t.Context(), []string{"credential", "--server", b.URL}, cli.Streams{Out: &stdout, Err: &stderr}, environment)
	return code, stdout.String(), stderr.String()
}

// withCredentials logs in with a browser, and the hub answers credentials.
func (b *bed) withCredentials(t *testing.T) *issuer {
	t.Helper()
	return b.withCredentialsOf(t, b.withIssuer(t))
}

func (b *bed) withCredentialsOf(t *testing.T, i *issuer) *issuer {
	t.Helper()
	b.oauthLogin(t)
	b.mux.HandleFunc("POST /api/credentials", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	})
	b.answer("GET /api/users/me/sessions", http.StatusOK, `{"items":[]}`)
	b.browser = func(string) { assert.Fail(t, "no browser is opened") }
	return i
}

func TestCredential_isRefreshedWhenLittleIsLeft(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	now := clocktesting.NewFakeClock(time.Now())
	b.clock = now
	i := b.withCredentials(t)
	for _, c := range []struct {
		pass time.Duration
		want string
	}{{0, "id-1"}, {57 * time.Minute, "id-1"}, {61 * time.Second, "id-2"}, {0, "id-2"}, {48 * time.Hour, "id-3"}} {
		now.Step(c.pass)
		code, out, errOut := b.kubectl(t, nil)
		require.Zero(t, code, errOut)
		require.Equal(t, c.want, out)
	}
	require.Equal(t, 2, i.refreshs)
	now.Step(time.Hour)
	code, _, errOut := b.run(t, "whoami", "-o", "name")
	require.Zero(t, code, errOut)
	require.Equal(t, 3, i.refreshs, "other commands refresh, too")
}

func TestCredential_twentyInParallelMakeOneRefresh(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	now := clocktesting.NewFakeClock(time.Now())
	b.clock = now
	i := b.withCredentials(t)
	for round := 1; round <= 2; round++ {
		now.Step(59 * time.Minute)
		var all sync.WaitGroup
		start := make(chan struct{})
		for range 20 {
			all.Go(func() {
				<-start
				code, out, errOut := b.kubectl(t, nil)
				assert.Zero(t, code, errOut)
				assert.Equal(t, "id-"+strconv.Itoa(round+1), out)
			})
		}
		close(start)
		all.Wait()
		require.Equal(t, round, i.refreshs)
	}
}

func TestCredential_ofAShortTokenIsRefreshedAtHalfItsLifetime(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	now := clocktesting.NewFakeClock(time.Now())
	b.clock = now
	i := b.withIssuer(t)
	i.lifetime = time.Minute
	b.withCredentialsOf(t, i)
	for _, c := range []struct {
		pass time.Duration
		want string
	}{{29 * time.Second, "id-1"}, {2 * time.Second, "id-2"}, {29 * time.Second, "id-2"}} {
		now.Step(c.pass)
		_, out, _ := b.kubectl(t, nil)
		require.Equal(t, c.want, out)
	}
	require.Equal(t, 1, i.refreshs)
}

func TestCredential_afterARefusedRefreshDoesNotAskFor30s(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	now := clocktesting.NewFakeClock(time.Now())
	b.clock = now
	i := b.withCredentials(t)
	now.Step(59 * time.Minute)
	i.status, i.refuse, i.description = http.StatusBadRequest, "invalid_grant", "the session has ended; log in again: kedge login"
	asked := i.asked
	for _, pass := range []time.Duration{0, 29 * time.Second, 2 * time.Second} {
		now.Step(pass)
		code, out, errOut := b.kubectl(t, nil)
		require.Equal(t, 1, code)
		require.Empty(t, out, "the token that is left is refused, too")
		require.Equal(t, "kedge: the login to "+b.URL+" has ended: the session has ended; to log in again, run: kedge login --server "+b.URL+"\n", errOut)
	}
	require.Equal(t, asked+2, i.asked)
	code, _, errOut := b.run(t, "orgs")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "has ended")
	require.Equal(t, asked+2, i.asked, "other commands do not ask either")

	i.status, i.refuse = 0, ""
	b.browser = b.follow(t)
	b.oauthLogin(t)
	code, out, errOut := b.kubectl(t, nil)
	require.Zero(t, code, errOut)
	require.Equal(t, "id-2", out)
}

func TestCredential_usesTheTokenWhileNobodyCanRefreshIt(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusNotFound} {
		b := newBed(t)
		now := clocktesting.NewFakeClock(time.Now())
		b.clock = now
		i := b.withCredentials(t)
		i.description = "the identity provider does not answer"
		if status == http.StatusNotFound {
			i.missing = true
		}
		i.status = status
		now.Step(59 * time.Minute)
		code, out, errOut := b.kubectl(t, nil)
		require.Zero(t, code, errOut)
		require.Equal(t, "id-1", out)
		now.Step(time.Minute)
		code, out, errOut = b.kubectl(t, nil)
		require.Equal(t, 1, code)
		require.Empty(t, out)
		require.Equal(t, 1, strings.Count(errOut, "\n"), errOut)
		i.status, i.missing = 0, false
		code, out, errOut = b.kubectl(t, nil)
		require.Zero(t, code, errOut)
		require.Equal(t, "id-2", out)
	}
}

func TestCredential_ofAHubThatIsAwayIsOneLine(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.withCredentials(t)
	b.Close()
	code, out, errOut := b.kubectl(t, nil)
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.True(t, strings.HasPrefix(errOut, "kedge: the hub at "+b.URL+" cannot be reached"), errOut)
	require.Equal(t, 1, strings.Count(errOut, "\n"))
}

func TestCredential_isNotForAClusterThatKubectlDoesNotVerify(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.withCredentials(t)
	foreign, err := os.ReadFile("testdata/foreign.crt")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change map[string]any
		says   string
	}{
		"insecure":           {map[string]any{"insecure-skip-tls-verify": true}, "has insecure-skip-tls-verify"},
		"insecure and no CA": {map[string]any{"insecure-skip-tls-verify": true, "certificate-authority-data": nil}, "has insecure-skip-tls-verify"},
		"a proxy":            {map[string]any{"proxy-url": "http://evil.example.com"}, "has a proxy-url"},
		"another name":       {map[string]any{"tls-server-name": "evil.example.com"}, "has a tls-server-name that is not the hub's"},
		"the system's CAs":   {map[string]any{"certificate-authority-data": nil}, "has no CA, but the login has one"},
		"a foreign CA":       {map[string]any{"certificate-authority-data": foreign}, "has a CA that the login does not trust"},
		"a second CA":        {map[string]any{"certificate-authority-data": append(b.ca(), foreign...)}, "has a CA that the login does not trust"},
		"no certificate":     {map[string]any{"certificate-authority-data": []byte("x")}, "has a CA that the login does not trust"},
	} {
		code, out, errOut := b.kubectl(t, c.change)
		require.Equal(t, 1, code, name)
		require.Empty(t, out, name)
		require.Contains(t, errOut, "kedge: the cluster in the kubeconfig "+c.says+", so kubectl gets no token", name)
		require.Equal(t, 1, strings.Count(errOut, "\n"))
	}
	require.Zero(t, b.hits["POST /api/credentials"])
	for name, change := range map[string]map[string]any{
		"as it is": nil, "the hub's name": {"tls-server-name": "127.0.0.1"}, "the CA twice": {"certificate-authority-data": append(b.ca(), b.ca()...)},
	} {
		code, out, errOut := b.kubectl(t, change)
		require.Zero(t, code, name+errOut)
		require.Equal(t, "id-1", out)
	}
}
