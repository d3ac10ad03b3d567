package identity

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// The other tests rely on this: Dex shows a login form over HTTPS, takes a person's password
// and redirects with a code and the state, and its ID tokens name issuer, client and person.
func TestDex_logsPeopleIn(t *testing.T) {
	t.Parallel()
	port := dex.HubPort(t)
	callback := fmt.Sprintf("https://127.0.0.1:%d/auth/callback", port)
	start := dex.Issuer + "/auth?" + url.Values{
		"client_id": {framework.HubClient}, "redirect_uri": {callback}, "response_type": {"code"},
		"scope": {"openid email profile offline_access"}, "state": {"the-state"},
	}.Encode()
	b := framework.NewBrowser(t, dex.CAFile)
	b.HTTP.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), callback) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	p := dex.LogIn(t, b, start, "alice")
	require.NotNil(t, p.Location, "%d %s", p.Code, p.Body)
	require.Equal(t, "the-state", p.Location.Query().Get("state"))
	require.NotEmpty(t, p.Location.Query().Get("code"))

	before := dex.TokenRequests(t)
	for _, person := range framework.DexPeople() {
		for _, client := range []string{framework.HubClient, framework.OtherClient} {
			c := claims(t, dex.IDToken(t, client, person))
			require.Equal(t, dex.Issuer, c["iss"])
			require.Equal(t, client, c["aud"])
			require.Equal(t, person+"@example.com", c["email"])
			require.Equal(t, true, c["email_verified"])
			require.NotEmpty(t, c["sub"])
		}
	}
	require.GreaterOrEqual(t, dex.TokenRequests(t), before+2*len(framework.DexPeople()))
}

// A browser types a wrong password, is told so, and logs in with the right one.
func TestDex_logsABrowserIn(t *testing.T) {
	t.Parallel()
	c := framework.StartChromium(t, dex.CertFile())
	address := fmt.Sprintf("127.0.0.1:%d", dex.HubPort(t))
	callback := "https://" + address + "/auth/callback"
	// It stands in for a hub.
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	hub := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: framework.Long}
	t.Cleanup(func() { _ = hub.Close() })
	go func() { _ = hub.ServeTLS(listener, dex.CertFile(), dex.KeyFile()) }()
	start := dex.Issuer + "/auth?" + url.Values{
		"client_id": {framework.HubClient}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid"}, "state": {"the-state"},
	}.Encode()
	c.Open(t, start)
	c.Fill(t, "#login", "alice@example.com")
	c.Fill(t, "#password", "wrong")
	c.Click(t, "#submit-login")
	require.Contains(t, c.Text(t, "#login-error"), "Invalid")
	c.Open(t, start)
	dex.LogInWith(t, c, "alice")
	require.Contains(t, c.At(t, callback), "state=the-state")
}
