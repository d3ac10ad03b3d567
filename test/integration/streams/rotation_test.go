package streams

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// The operator replaces the token file and the serving certificate while watches are open.
func TestRotation_keepsWatchesOfCredentialsThatStay(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	write := func(lines ...string) {
		next := tokens + ".next"
		require.NoError(t, os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		require.NoError(t, os.Rename(next, tokens))
	}
	line := func(token, user string) string { return fmt.Sprintf("%s,%s,uid-%s,dev", token, user, user) }
	alice, bob := line(framework.Token("alice"), "alice"), line(framework.Token("bob"), "bob")
	write(alice, bob)
	var serving string
	hub := framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) {
		serving = filepath.Join(o.DataDir, "tls")
		_, err := certs.Ensure(serving, []string{"127.0.0.1"}, time.Now())
		require.NoError(t, err)
		o.TokenFile = tokens
		o.TLSCertFile, o.TLSKeyFile, o.TLSCAFile = filepath.Join(serving, "tls.crt"), filepath.Join(serving, "tls.key"), filepath.Join(serving, "ca.crt")
	})
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	cluster := made.Text("clusterID")
	framework.SignUp(t, hub, "bob")
	hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "admin")), http.StatusCreated)
	hub.Enters(t, "bob", cluster)
	path := "/clusters/" + cluster + "/api/v1/namespaces/default/configmaps"
	events, ended := make(chan string, 10), make(chan struct{})
	watch := func(user string, each func(string), end func()) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, hub.URL+path+"?watch=true", http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+framework.Token(user))
		response, err := hub.HTTP.Do(request)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		go func() {
			defer end()
			defer func() { _ = response.Body.Close() }()
			for lines := bufio.NewScanner(response.Body); lines.Scan(); {
				each(lines.Text())
			}
		}()
	}
	watch("alice", func(event string) { events <- event }, func() { close(events) })
	watch("bob", func(string) {}, func() { close(ended) })

	// A file that cannot be used changes nothing.
	write("broken")
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(strings.Contains(hub.Log.String(), "goes on with its older content"), "no word of it: %s", hub.Log)
	})
	hub.Do(t, call{As: "bob", Path: "/api/users/me", Method: http.MethodGet}, http.StatusOK)

	// bob's token leaves the file and carol's comes.
	write(alice, line(framework.Token("carol"), "carol"))
	select {
	case <-ended:
	case <-time.After(framework.Long):
		require.Fail(t, "the watch of a removed token stays open")
	}
	hub.Do(t, call{As: "bob", Path: "/api/users/me", Method: http.MethodGet}, http.StatusUnauthorized)
	hub.Do(t, call{As: "carol", Path: "/api/users/me", Method: http.MethodGet}, http.StatusOK)

	next := t.TempDir()
	other, err := certs.Ensure(next, []string{"127.0.0.1"}, time.Now())
	require.NoError(t, err)
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		content, err := os.ReadFile(filepath.Join(next, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(serving, name), content, 0o600))
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(other.CAPEM)
	framework.Eventually(t, framework.Long, func() error {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(hub.URL, "https://"), &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
		return errors.Join(err, closed(conn))
	})
	hub.Do(t, call{
		As: "alice", Method: http.MethodPost, Path: path,
		Body: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": "after-the-rotation"}},
	}, http.StatusCreated)
	framework.Eventually(t, framework.Long, func() error {
		select {
		case event, open := <-events:
			require.True(t, open, "the watch of a token that stays ended")
			return framework.Check(strings.Contains(event, "after-the-rotation"), "another event")
		default:
			return errors.New("no event")
		}
	})
}

func closed(conn *tls.Conn) error {
	if conn == nil {
		return nil
	}
	return conn.Close()
}
