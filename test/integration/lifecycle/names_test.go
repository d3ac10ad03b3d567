package lifecycle

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// named starts two hubs that know people by their static tokens. kcp does not have the tokens, and
// does not need to: sign-up forwards nothing. It makes no Organizations, which are not what these tests
// are about.
func named(t *testing.T, people ...string) (hubs []*framework.Hub, p platform) {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	var rows strings.Builder
	for _, name := range people {
		fmt.Fprintf(&rows, "%s,%s,uid-%s\n", framework.Token(name), name, name)
	}
	require.NoError(t, os.WriteFile(tokens, []byte(rows.String()), 0o600))
	root := framework.NewRoot()
	return framework.StartHubs(t, kcp, root, 2, func(o *server.Options) { o.TokenFile, o.PersonalOrgs = tokens, false }), newPlatform(t, root)
}

// Accounts that have, or take, one readable name sign up on two hubs.
func TestSignUp_givesEachAccountANameOfItsOwn(t *testing.T) {
	t.Parallel()
	names := tenancy.UserNames(auth.StaticIssuer, victim, victim, "")
	// Another username with the same readable name, and each further name as a username.
	attackers := append([]string{"Mary"}, names[1:]...)
	var crowd []string
	for bits := range 1 << 5 {
		name := []byte("polly")
		for i := range name {
			if bits&(1<<i) != 0 {
				name[i] -= 'a' - 'A'
			}
		}
		crowd = append(crowd, string(name))
	}
	hubs, p := named(t, slices.Concat(attackers, []string{victim, "nora"}, crowd)...)
	t.Run("two accounts take a person's names", func(t *testing.T) { p.takesNames(t, hubs, names, attackers) })
	t.Run("many have one readable name", func(t *testing.T) { p.haveOneName(t, hubs, crowd) })
}

// victim is a person whose names others take.
const victim = "mary"

// takesNames has two accounts take the readable name of a third person, and try to take the names that follow
// from the person's issuer and subject. The third person signs up. Nobody else has done so.
func (p platform) takesNames(t *testing.T, hubs []*framework.Hub, names, attackers []string) {
	t.Helper()
	for i, attacker := range attackers {
		got := hubs[i%2].Do(t, whoIs(attacker), http.StatusOK).Text("name")
		if i == 0 {
			require.Equal(t, victim, got, "the control: the readable name can be taken")
			continue
		}
		require.NotContains(t, names, got)
		require.Regexp(t, `-[0-9a-f]{8}$`, got)
	}
	answers, err := framework.AtOnce(hubs, []call{whoIs(victim), whoIs(victim), whoIs(victim), whoIs(victim)})
	require.NoError(t, err)
	for _, a := range answers {
		require.Equal(t, http.StatusOK, a.Code, "%s", a.Raw)
		require.Equal(t, names[1], a.Text("name"))
	}
	require.Equal(t, "nora", hubs[0].Do(t, whoIs("nora"), http.StatusOK).Text("name"), "the control")
	require.Len(t, p.AllUsers(t), len(attackers)+2)
}

// haveOneName has people with one readable name sign up at the same moment on two hubs: one User each.
func (p platform) haveOneName(t *testing.T, hubs []*framework.Hub, people []string) {
	t.Helper()
	before := p.AllUsers(t)
	var calls []call
	for range 4 {
		for _, name := range people {
			calls = append(calls, whoIs(name))
		}
	}
	answers, err := framework.AtOnce(hubs, calls)
	require.NoError(t, err)
	known, owners := map[string]string{}, map[string]string{}
	for i, a := range answers {
		if a.Code == http.StatusServiceUnavailable {
			// A busy kcp had no time for the token. Who they are then is no race any more, and has to be right.
			require.Equal(t, "1", a.Header.Get("Retry-After"))
			a = hubs[i%2].Do(t, calls[i], http.StatusOK)
		}
		require.Equal(t, http.StatusOK, a.Code, "%s: %s", calls[i].As, a.Raw)
		name := a.Text("name")
		if before, ok := known[calls[i].As]; ok {
			require.Equal(t, before, name)
		}
		known[calls[i].As], owners[name] = name, calls[i].As
	}
	require.Len(t, owners, len(people))
	users := p.AllUsers(t)
	maps.DeleteFunc(users, func(name string, _ v1alpha1.User) bool { _, ok := before[name]; return ok })
	require.Len(t, users, len(people))
	for name := range users {
		require.Equal(t, owners[name], users[name].Spec.Subject)
	}
}
