package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNextSteps_sayHowToLogIn(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	require.NoError(t, os.WriteFile(tokens, []byte("t,alice,alice\n"), 0o600))
	const first, nobody = "kedge orgs create", "Nobody can log in"
	for name, c := range map[string]struct {
		change  func(o *Options)
		says    []string
		silence []string
	}{
		"nothing": {func(*Options) {}, []string{nobody, "--oidc-issuer-url", "--token-file"}, []string{first}},
		"a token file": {func(o *Options) { o.TokenFile = tokens }, []string{first, "--token-file FILE", "/ui/"},
			[]string{nobody, "--registration"}},
		"an identity provider": {func(o *Options) {
			o.OIDC.IssuerURL, o.OIDC.ClientID, o.Portal = "https://login.example.com", "kedge", false
		}, []string{first, "logs in with https://login.example.com"}, []string{nobody, "FILE", "/ui/"}},
		"approval without an admin": {func(o *Options) { o.TokenFile, o.Registration = tokens, "approval" }, []string{first, "wait for a platform admin", "--admin-user"}, nil},
		"closed without an admin":   {func(o *Options) { o.TokenFile, o.Registration = tokens, "closed" }, []string{first, "with an invitation", "--admin-user"}, nil},
		"closed with an admin": {func(o *Options) { o.TokenFile, o.Registration, o.AdminUsers = tokens, "closed", []string{"alice"} },
			[]string{first}, []string{"--admin-user"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := New()
			c.change(o)
			config, err := o.Complete()
			require.NoError(t, err)
			var out strings.Builder
			config.PrintNextSteps(&out)
			for _, text := range c.says {
				require.Contains(t, out.String(), text)
			}
			for _, text := range c.silence {
				require.NotContains(t, out.String(), text)
			}
		})
	}
}
