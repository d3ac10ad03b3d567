package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/test/readme"
)

// jobHub is a hub that gives tokens of the bot botUUID to the ID token "job".
type jobHub struct {
	*httptest.Server
	// away is the number of requests for a token that are answered with 503.
	away atomic.Int32
	// asked are the forms of the requests for a token.
	asked []string
	// missing is true for a hub that allows no issuer of jobs.
	missing bool
	// rotations are the bodies of the requests to rotate the token.
	rotations []string
}

func newJobHub(t *testing.T, b *bed) *jobHub {
	h := &jobHub{}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		assert.NoError(t, json.NewEncoder(w).Encode(body))
	}
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		if h.missing {
			answer(w, http.StatusNotFound, map[string]string{"message": "none"})
			return
		}
		answer(w, http.StatusOK, map[string]any{"issuer": h.URL, "token_endpoint": h.URL + "/auth/token"})
	})
	mux.HandleFunc("POST /auth/token", func(w http.ResponseWriter, r *http.Request) {
		assert.NoError(t, r.ParseForm())
		assert.Equal(t, "urn:ietf:params:oauth:grant-type:token-exchange", r.PostForm.Get("grant_type"))
		assert.False(t, r.PostForm.Has("client_id"))
		h.asked = append(h.asked, r.PostForm.Get("subject_token")+" for "+strings.TrimPrefix(r.PostForm.Get("resource"), h.URL))
		switch {
		case h.away.Add(-1) >= 0:
			answer(w, http.StatusServiceUnavailable, map[string]string{"error": "temporarily_unavailable"})
		case r.PostForm.Get("subject_token") != "job":
			answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "this job gets no token of this bot"})
		default:
			answer(w, http.StatusOK, map[string]any{"access_token": secret, "token_type": "Bearer", "expires_in": 900})
		}
	})
	ends := b.clock.Now().Add(15 * time.Minute).UTC().Truncate(time.Second)
	mux.HandleFunc("GET /api/users/me", func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer "+secret, r.Header.Get("Authorization"))
		answer(w, http.StatusOK, map[string]any{"kind": "Bot", "uuid": botUUID, "org": orgUUID, "workspace": wsUUID, "role": "member", "expiresAt": ends, "token": tokenID, "job": true})
	})
	mux.HandleFunc("POST "+botPath+"/tokens/"+tokenID+"/rotate", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		h.rotations = append(h.rotations, string(body))
		answer(w, http.StatusCreated, json.RawMessage(anIssued))
	})
	mux.HandleFunc("GET "+wsPath+"/kubeconfig", func(w http.ResponseWriter, _ *http.Request) {
		raw, err := yaml.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Config", "clusters": []any{map[string]any{"name": "x", "cluster": map[string]any{"server": h.URL + "/clusters/x"}}},
			"contexts": []any{map[string]any{"name": "x", "context": map[string]any{"cluster": "x", "user": "x"}}},
			"users":    []any{map[string]any{"name": "x", "user": map[string]any{}}},
		})
		assert.NoError(t, err)
		_, _ = w.Write(raw)
	})
	h.Server = httptest.NewTLSServer(mux)
	t.Cleanup(h.Close)
	require.NoError(t, os.WriteFile(b.file("job-ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}), 0o600))
	return h
}

// gitHub is GitHub's runner: it answers the ID token of the job for an audience.
func (b *bed) gitHub(t *testing.T, audience string) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer runner", r.Header.Get("Authorization"))
		assert.Equal(t, "2.0", r.URL.Query().Get("api-version"))
		assert.Equal(t, audience, r.URL.Query().Get("audience"))
		_, _ = w.Write([]byte(`{"count": 1, "value": "job"}`))
	}))
	t.Cleanup(server.Close)
	b.outside = server.Client()
	b.env["ACTIONS_ID_TOKEN_REQUEST_URL"] = server.URL + "/token?api-version=2.0"
	b.env["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] = "runner"
}

// The test runs the README's lines for pipelines, as their runners do.
func TestREADME_linesForPipelinesWork(t *testing.T) {
	t.Parallel()
	github, gitlab := readme.Pipelines(t)
	for name, c := range map[string]struct {
		lines []string
		token func(*testing.T, *bed, *jobHub)
	}{
		"GitHub Actions": {github.Script, func(t *testing.T, b *bed, h *jobHub) { b.gitHub(t, h.URL) }},
		"GitLab CI":      {gitlab.Script, func(_ *testing.T, b *bed, _ *jobHub) { b.env[gitlab.Variable] = "job" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			h := newJobHub(t, b)
			c.token(t, b, h)
			var kubeconfig string
			for _, line := range c.lines[:2] {
				line, _, _ = strings.Cut(line, " >")
				line = strings.NewReplacer(`"$HUB"`, h.URL+" --ca-file "+b.file("job-ca.crt"), `"$BOT"`, botUUID, "kedge ", "").Replace(line)
				code, out, errOut := b.run(t, strings.Fields(line)...)
				require.Zero(t, code, errOut)
				kubeconfig = out
			}
			require.Equal(t, []string{"job for /bots/" + botUUID}, h.asked)
			require.NotContains(t, kubeconfig, secret)
			require.Contains(t, kubeconfig, h.URL+"/clusters/x")
			require.Contains(t, kubeconfig, "command: kedge", "the hub does not say how a bot logs in")
			require.Contains(t, c.lines[2], "kubectl --kubeconfig kubeconfig")
			code, out, errOut := b.run(t, "whoami")
			require.Zero(t, code, errOut)
			require.Contains(t, out, botUUID)
			require.Contains(t, out, wsUUID)
		})
	}
}

// jobLogin logs in with the ID token of GitLab.
func (b *bed) jobLogin(t *testing.T, h *jobHub, token string, more ...string) (code int, out, errOut string) {
	t.Helper()
	b.env["KEDGE_ID_TOKEN"] = token
	return b.run(t, append([]string{"login", "--ci", "--server", h.URL, "--ca-file", b.file("job-ca.crt"), "--bot", botUUID}, more...)...)
}

func TestLogin_ofAJobSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	h := newJobHub(t, b)
	code, _, errOut := b.jobLogin(t, h, "")
	require.Equal(t, 1, code)
	for _, said := range []string{"id-token: write", "KEDGE_ID_TOKEN", "--subject-token-file"} {
		require.Contains(t, errOut, said)
	}
	code, _, errOut = b.jobLogin(t, h, "stranger")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "this job gets no token of this bot")
	require.NotContains(t, errOut, "stranger")
	code, _, errOut = b.run(t, "login", "--ci", "--server", h.URL)
	require.Equal(t, 2, code)
	require.Contains(t, errOut, "--bot")
	code, _, _ = b.run(t, "login", "--server", h.URL, "--bot", botUUID)
	require.Equal(t, 2, code)
	h.missing = true
	_, _, errOut = b.jobLogin(t, h, "job")
	require.Contains(t, errOut, "--ci-issuer")
	_, err := os.Stat(b.file(".config/kedge/config.json"))
	require.ErrorIs(t, err, os.ErrNotExist, "no profile is written")
}

func TestLogin_ofAJobTakesAFile(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	h := newJobHub(t, b)
	require.NoError(t, os.WriteFile(b.file("id-token"), []byte("job\n"), 0o600))
	code, out, errOut := b.jobLogin(t, h, "", "--subject-token-file", b.file("id-token"))
	require.Zero(t, code, errOut)
	require.Contains(t, out, "as the bot "+botUUID)
	require.Contains(t, out, wsUUID)
}

func TestLogin_ofAJobWaitsForAHubThatIsAway(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	h := newJobHub(t, b)
	h.away.Store(1)
	code, _, errOut := b.jobLogin(t, h, "job")
	require.Zero(t, code, errOut)
	require.Len(t, h.asked, 2)
}

// kubectl gets the token of a bot from kedge, for the hub of the login alone.
func TestCredential_ofABotIsForItsHubAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	h := newJobHub(t, b)
	code, _, errOut := b.jobLogin(t, h, "job")
	require.Zero(t, code, errOut)
	ca, err := os.ReadFile(b.file("job-ca.crt"))
	require.NoError(t, err)
	question := func(server string) string {
		return `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"server":"` + server + `","certificate-authority-data":"` +
			base64.StdEncoding.EncodeToString(ca) + `"},"interactive":false}}`
	}
	b.env["KUBERNETES_EXEC_INFO"] = question(h.URL + "/clusters/x")
	code, out, errOut := b.run(t, "credential")
	require.Zero(t, code, errOut)
	require.Contains(t, out, `"token":"`+secret+`"`)
	require.Contains(t, out, "expirationTimestamp")
	for _, server := range []string{"https://evil.example.com/clusters/x", h.URL + ".evil.example.com/clusters/x", h.URL} {
		b.env["KUBERNETES_EXEC_INFO"] = question(server)
		code, out, _ = b.run(t, "credential")
		require.Equal(t, 1, code, server)
		require.NotContains(t, out, secret)
	}
}

func TestBots_areToldWhichCommandsAreForPeople(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	h := newJobHub(t, b)
	code, _, errOut := b.jobLogin(t, h, "job")
	require.Zero(t, code, errOut)
	for _, args := range []string{"orgs list", "workspaces create X", "bots list", "sessions list", "members list"} {
		code, _, errOut = b.run(t, strings.Fields(args)...)
		require.Equal(t, 1, code, args)
		require.Contains(t, errOut, "is for people", args)
	}
	code, _, errOut = b.run(t, "logout")
	require.Zero(t, code, errOut)
}
