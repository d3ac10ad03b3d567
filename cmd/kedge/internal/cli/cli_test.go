package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/cli"
	"github.com/faroshq/kedge-hub/test/contract"
)

const (
	orgUUID = "231a151a-434e-4623-ad6e-69406abb9387"
	wsUUID  = "9acbf567-a188-4c75-9c40-3c3bec1a775f"
	secret  = "very-secret-token"
)

// bed is a hub and a person's home.
type bed struct {
	*httptest.Server
	mux  *http.ServeMux
	dir  string
	env  map[string]string
	lock sync.Mutex
	hits map[string]int
	// me is what the hub says of the person.
	me string
	// issuer is the OAuth server, if the hub has one.
	issuer *issuer
	clock  clock.Clock
	// browser is called with the URL that kedge opens.
	browser func(url string)
	// program is called with the program that kedge runs.
	program func(p cli.Program) (int, error)
	// outside is the client for servers that are no hub.
	outside *http.Client
}

func newBed(t *testing.T) *bed {
	t.Helper()
	document, err := contract.Load()
	require.NoError(t, err)
	b := &bed{mux: http.NewServeMux(), dir: t.TempDir(), hits: map[string]int{}, clock: clock.RealClock{}, me: `{"name":"alice","displayName":"Alice","email":"a@example.com"}`}
	b.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.issuer.serves(w, r) {
			return
		}
		b.lock.Lock()
		b.hits[r.Method+" "+r.URL.Path]++
		b.lock.Unlock()
		if bearer := r.Header.Get("Authorization"); bearer != "Bearer "+secret && !b.issuer.accepts(bearer) {
			refuse(w, http.StatusUnauthorized, "the token is not known here")
			return
		}
		if err := document.CheckQuery(r); err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		b.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(b.Close)
	b.mux.HandleFunc("GET /api/users/me", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, b.me) })
	b.mux.HandleFunc("GET /api/users/me/{list}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("list") != "memberships" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"items":[]}`)
	})
	require.NoError(t, os.WriteFile(b.file("ca.crt"), b.ca(), 0o600))
	require.NoError(t, os.WriteFile(b.file("token"), []byte(secret+"\n"), 0o600))
	b.env = map[string]string{"HOME": b.dir}
	return b
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "message": message, "code": code})
}

func (b *bed) environment() cli.Environment {
	return cli.Environment{
		Outside: b.outside, Getenv: func(name string) string { return b.env[name] }, Hostname: func() (string, error) { return "laptop", nil },
		Clock: b.clock, OS: "linux",
		Start: func(_ string, args ...string) error {
			if b.browser == nil {
				return errors.New("there is no browser")
			}
			go b.browser(args[len(args)-1])
			return nil
		},
		Run: func(_ context.Context, p cli.Program) (int, error) { return b.program(p) },
	}
}

func (b *bed) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw})
}

func (b *bed) file(name string) string { return filepath.Join(b.dir, name) }

func (b *bed) answer(route string, code int, body string) {
	b.mux.HandleFunc(route, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})
}

func (b *bed) run(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	return b.runWith(t, cli.Streams{In: strings.NewReader(secret)}, args...)
}

// runAt runs a command at a terminal where somebody types.
func (b *bed) runAt(t *testing.T, typed string, args ...string) (code int, out, errOut string) {
	t.Helper()
	return b.runWith(t, cli.Streams{In: strings.NewReader(typed), Terminal: true}, args...)
}

func (b *bed) runWith(t *testing.T, streams cli.Streams, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	streams.Out, streams.Err = &stdout, &stderr
	code = cli.Main(t.Context(), args, streams, b.environment())
	require.NotContains(t, stderr.String(), secret)
	return code, stdout.String(), stderr.String()
}

func (b *bed) login(t *testing.T) {
	t.Helper()
	code, out, errOut := b.run(t, "login", "--server", b.URL+"/", "--ca-file", b.file("ca.crt"), "--token-file", b.file("token"))
	require.Zero(t, code, errOut)
	require.Contains(t, out, "as alice")
}

func TestLoginKeepsWhatTheHubAcceptedReadableByItsOwnerAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	path := b.file(".config/kedge/config.json")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	code, out, _ := b.run(t, "whoami")
	require.Zero(t, code)
	require.Contains(t, out, "Alice")
	require.NotContains(t, out, secret)
	code, out, _ = b.run(t, "whoami", "-o", "yaml")
	require.Zero(t, code)
	require.Contains(t, out, "displayName: Alice")
	code, _, _ = b.run(t, "logout")
	require.Zero(t, code)
	code, _, errOut := b.run(t, "whoami")
	require.Equal(t, 1, code)
	require.Contains(t, errOut, "kedge login --server")
}

func TestLoginTakesTheTokenFromAFileStandardInputOrTheEnvironment(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	args := []string{"login", "--server", b.URL, "--ca-file", b.file("ca.crt")}
	code, _, errOut := b.run(t, append(args, "--token-file", "-")...)
	require.Zero(t, code, errOut)
	code, _, errOut = b.run(t, args...)
	require.Equal(t, 1, code)
	require.Equal(t, "kedge: the hub has no identity provider; log in with a static token: kedge login --server "+b.URL+" --token-file FILE\n", errOut)
	b.env["KEDGE_TOKEN"] = secret
	code, _, errOut = b.run(t, args...)
	require.Zero(t, code, errOut)
}

func TestLoginRefusals(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no server":    {[]string{"login", "--token-file", b.file("token")}, 2, "--server"},
		"plain HTTP":   {[]string{"login", "--server", "http://x", "--token-file", b.file("token")}, 2, "https"},
		"unknown CA":   {[]string{"login", "--server", b.URL, "--token-file", b.file("token")}, 1, "--ca-file"},
		"a wrong CA":   {[]string{"login", "--server", b.URL, "--ca-file", b.file("token"), "--token-file", b.file("token")}, 1, "PEM"},
		"unknown flag": {[]string{"login", "--token", secret[:4]}, 2, "--help"},
		"a bad token":  {[]string{"login", "--server", b.URL, "--ca-file", b.file("ca.crt"), "--token-file", b.file("ca.crt")}, 1, ""},
	} {
		code, _, errOut := b.run(t, c.args...)
		require.Equal(t, c.code, code, "%s: %s", name, errOut)
		require.Contains(t, errOut, c.says, name)
	}
	_, err := os.Stat(b.file(".config/kedge/config.json"))
	require.ErrorIs(t, err, os.ErrNotExist, "nothing is kept of a login that failed")
}

func TestCreateWaitsUntilItIsReadyAndChoosesIt(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.answer("POST /api/orgs", http.StatusAccepted, `{"uuid":"`+orgUUID+`","displayName":"ACME","phase":"Progressing"}`)
	asked := 0
	b.mux.HandleFunc("GET /api/orgs/"+orgUUID, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, orgUUID, r.Header.Get("X-Kedge-Org"))
		if asked++; asked == 1 {
			refuse(w, http.StatusForbidden, "you have no membership there")
			return
		}
		_, _ = io.WriteString(w, `{"uuid":"`+orgUUID+`","displayName":"ACME","phase":"Ready"}`)
	})
	code, out, errOut := b.run(t, "orgs", "create", "ACME", "-o", "name")
	require.Zero(t, code, errOut)
	require.Equal(t, orgUUID+"\n", out)
	require.Contains(t, errOut, "still being made")

	b.mux.HandleFunc("POST /api/orgs/"+orgUUID+"/workspaces", func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, orgUUID, r.Header.Get("X-Kedge-Org"))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"uuid":"`+wsUUID+`","displayName":"w","phase":"Ready"}`)
	})
	code, _, errOut = b.run(t, "workspaces", "create", "w")
	require.Zero(t, code, errOut)
	b.mux.HandleFunc("GET /api/orgs/"+orgUUID+"/workspaces/"+wsUUID+"/kubeconfig", func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, wsUUID, r.Header.Get("X-Kedge-Workspace"))
		_, _ = io.WriteString(w, b.kubeconfig(wsUUID))
	})
	b.answer("GET /api/orgs/"+orgUUID+"/workspaces/"+wsUUID, http.StatusOK, `{"uuid":"`+wsUUID+`","displayName":"w"}`)
	code, out, errOut = b.run(t, "kubeconfig")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "current-context: ACME/w\n")
	code, _, _ = b.run(t, "kubeconfig", "--file", b.file("kubeconfig"))
	require.Zero(t, code)
	info, err := os.Stat(b.file("kubeconfig"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestListsReadEveryPageAndUseFindsByNameOrUUID(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.mux.HandleFunc("GET /api/orgs", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continue") == "" {
			_, _ = io.WriteString(w, `{"items":[{"uuid":"1","displayName":"A"},{"uuid":"2","displayName":"Twice"}],"continue":"next"}`)
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"uuid":"3","displayName":"Twice"}],"continue":""}`)
	})
	code, out, _ := b.run(t, "orgs", "-o", "name")
	require.Zero(t, code)
	require.Equal(t, "1\n2\n3\n", out)
	for arg, good := range map[string]bool{"A": true, "3": true, "Twice": false, "none": false} {
		code, _, errOut := b.run(t, "orgs", "use", arg)
		require.Equal(t, good, code == 0, "%s: %s", arg, errOut)
	}
	code, _, errOut := b.run(t, "orgs", "use")
	require.Equal(t, 2, code, errOut)
}

func TestErrorsOfTheHubArePrintedInOneLine(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	b.mux.HandleFunc("POST /api/orgs", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "you have created 10 of at most 10 organizations")
	})
	code, out, errOut := b.run(t, "orgs", "create", "x")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errOut, "kedge: you have created 10 of at most 10 organizations\n")
}

func TestAReadIsTriedAgainAndAWriteIsNot(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.login(t)
	tries := 0
	b.mux.HandleFunc("GET /api/orgs", func(w http.ResponseWriter, _ *http.Request) {
		if tries++; tries < 2 {
			refuse(w, http.StatusServiceUnavailable, "starting")
			return
		}
		_, _ = io.WriteString(w, `{"items":[],"continue":""}`)
	})
	b.mux.HandleFunc("POST /api/orgs", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusServiceUnavailable, "starting")
	})
	code, _, errOut := b.run(t, "orgs")
	require.Zero(t, code, errOut)
	code, _, _ = b.run(t, "orgs", "create", "x")
	require.Equal(t, 1, code)
	require.Equal(t, 1, b.hits["POST /api/orgs"])
}

func TestHelpOfEveryCommandShowsAnExample(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, group := range []string{
		"members", "members list", "members add", "members set-role", "members remove",
		"workspaces members", "workspaces members list", "workspaces members add", "workspaces members set-role", "workspaces members remove",
		"profiles", "profiles use",
		"orgs", "orgs list", "orgs get", "orgs rename", "orgs settings", "orgs create", "orgs use", "orgs leave", "orgs delete", "orgs undelete",
		"workspaces", "workspaces list", "workspaces get", "workspaces rename", "workspaces create", "workspaces use", "workspaces leave", "workspaces delete", "workspaces undelete",
		"users", "users search", "sessions", "sessions list", "sessions end", "logout", "login", "kubeconfig", "whoami", "me", "me delete", "me undelete",
		"catalog", "catalog list", "catalog get", "catalog publish", "catalog delete",
		"providers", "providers list", "providers get", "providers enable", "providers disable",
		"sudo", "admin", "admin users", "admin users list", "admin users get", "admin users memberships", "admin users delete", "admin users undelete",
		"admin approve", "admin reject", "admin quota", "admin quota user", "admin quota org", "admin orgs", "admin orgs list", "admin orgs delete",
		"admin deletions", "admin sessions", "admin sessions end",
		"bots", "bots list", "bots get", "bots create", "bots set-role", "bots delete", "bots tokens", "bots tokens create", "bots tokens list", "bots tokens revoke",
	} {
		code, out, errOut := b.run(t, append(strings.Fields(group), "--help")...)
		require.Zero(t, code, errOut)
		_, examples, found := strings.Cut(out, "Examples:\n")
		require.True(t, found, group)
		require.Contains(t, examples, "  kedge "+group, group)
	}
}
