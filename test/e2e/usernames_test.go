package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/oidctest"
	"github.com/faroshq/kedge-hub/test/framework"
)

// An email address that nobody can read makes no User, and is nobody in the embedded kcp, which has
// the same rule.
func TestUsernames_thatNobodyCanReadMakeNobody(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t, oidctest.Options{})
	dir := t.TempDir()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(ca, issuer.CA(), 0o600))
	h := startHub(t, dir, freePort(t), "--oidc-issuer-url", issuer.URL(), "--oidc-client-id", oidctest.ClientID,
		"--oidc-ca-file", ca, "--oidc-username-claim", "email", "--admin-user", "heidi")
	me := func(email string) framework.Call {
		token := issuer.Token(oidctest.Claims{"sub": "person " + email, "email": email, "preferred_username": "mallory"})
		return framework.Call{Method: http.MethodGet, Path: "/api/users/me", Token: token}
	}
	// The control: a person with a readable address works, in kcp too.
	rightful := me("alice@example.com")
	framework.Eventually(t, framework.Long, func() error {
		a, err := h.Try(rightful)
		if err == nil {
			err = framework.Equal(http.StatusOK, a.Code)
		}
		return err
	})
	created := func(c framework.Call) framework.Answer {
		c.Method, c.Token, c.Body = http.MethodPost, rightful.Token, `{"displayName":"ACME"}`
		return h.Do(t, c, http.StatusCreated)
	}
	org := created(framework.Call{Path: "/api/orgs"}).Text("uuid")
	cluster := created(framework.Call{Path: "/api/orgs/" + org + "/workspaces", Org: org}).Text("clusterID")
	path := "/clusters/" + cluster + "/api/v1/namespaces"
	framework.Eventually(t, framework.Long, func() error {
		a, err := h.Try(framework.Call{Method: http.MethodGet, Path: path, Token: rightful.Token})
		if err == nil {
			err = framework.Equal(http.StatusOK, a.Code)
		}
		return err
	})
	for _, email := range []string{" ", "\u00a0", "\u200b", "alice@example.com ", "\ufeffalice@example.com", "alice@example.com\u200b", "al\x00ice@example.com"} {
		for _, c := range []framework.Call{me(email), {Method: http.MethodGet, Path: path, Token: me(email).Token}} {
			a, err := h.Try(c)
			require.NoError(t, err)
			require.Equal(t, http.StatusForbidden, a.Code, "%q: %s", email, a.Raw)
			require.Contains(t, string(a.Raw), "username", "%q", email)
		}
	}
	require.Equal(t, "mallory", h.Do(t, rightful, http.StatusOK).Text("name"))
	users := h.Do(t, framework.Call{As: "heidi", Method: http.MethodGet, Path: "/api/admin/users"}, http.StatusOK)
	require.Len(t, users.JSON["items"], 2, "the person with the readable address, and heidi: %s", users.Raw)
}
