package auth_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/auth"
)

func load(t *testing.T, content string) (*auth.StaticTokens, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.csv")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return auth.LoadStaticTokens(path)
}

func TestStaticTokens_readAsKubeAPIServerDoes(t *testing.T) {
	t.Parallel()
	tokens, err := load(t, "secret-a,alice,1,\"dev,ops\"\nsecret-b,bob@example.com,2\n\nsecret-a2,alice,1\n")
	require.NoError(t, err)
	id, ok, err := tokens.Authenticate(t.Context(), "secret-a")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, &auth.Identity{
		Kind: auth.Person, Issuer: auth.StaticIssuer, Subject: "alice", Username: "alice",
		PreferredUsername: "alice", DisplayName: "alice", Groups: []string{"dev", "ops"}, GroupsKnown: true,
		Credential: "8766b9cb08e6040b704f1e3ee1e186efccf2635b1d2634d6525333007e6aeae1",
	}, id)
	id, ok, _ = tokens.Authenticate(t.Context(), "secret-b")
	require.True(t, ok)
	require.Equal(t, "bob@example.com", id.Email)
	require.Empty(t, id.VerifiedEmail, "no identity provider has verified it")
	for _, bad := range []string{"", "secret", "secret-A", "secret-a ", "alice"} {
		_, ok, err := tokens.Authenticate(t.Context(), bad)
		require.NoError(t, err)
		require.False(t, ok, bad)
	}
}

func TestStaticTokens_refuseIdentitiesOfKCP(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"a system user":       "hush,system:admin,1\n",
		"a sudo user":         "hush,kedge:workspace:x:sudo,1\n",
		"system:masters":      "hush,alice,1,\"system:masters\"\n",
		"a kcp group":         "hush,alice,1,\"dev, system:kcp:admin\"\n",
		"a sudo group":        "hush,alice,1,\"kedge:workspace:x:sudo\"\n",
		"no token":            ",alice,1\n",
		"no user":             "hush,,1\n",
		"two columns":         "hush,alice\n",
		"one token twice":     "hush,alice,1\nhush,bob,2\n",
		"one user, two uids":  "hush,alice,1\nhush2,alice,2\n",
		"a quote that is off": "hush,\"alice,1\n",
	} {
		_, err := load(t, line)
		require.Error(t, err, name)
		require.Contains(t, err.Error(), "line", name)
		require.NotContains(t, err.Error(), "hush", "%s: no token in an error", name)
	}
	_, err := auth.LoadStaticTokens(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestStaticTokens_refuseTheNamesOfTheHub lets a person pass the policies that exempt the hub
// by name, were they accepted.
func TestStaticTokens_refuseTheNamesOfTheHub(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.csv")
	for _, name := range []string{"hub-operator", "closer", "kcp-admin", "shard-admin", "user"} {
		require.NoError(t, os.WriteFile(path, []byte("hush-a,alice,1\nhush-b,"+name+",2\n"), 0o600))
		_, err := auth.LoadStaticTokens(path, "hub-operator", "closer")
		require.ErrorContains(t, err, "line 2", name)
		require.ErrorContains(t, err, name)
		require.NotContains(t, err.Error(), "hush")
	}
	require.NoError(t, os.WriteFile(path, []byte("hush-a,hub-operator2,1\nhush-b,users,2\n"), 0o600))
	_, err := auth.LoadStaticTokens(path, "hub-operator", "closer")
	require.NoError(t, err)
}

type fake func(token string) (*auth.Identity, bool, error)

func (f fake) Authenticate(_ context.Context, token string) (*auth.Identity, bool, error) {
	return f(token)
}

func TestUnion_returnsTheFirstIdentity(t *testing.T) {
	t.Parallel()
	no := fake(func(string) (*auth.Identity, bool, error) { return nil, false, nil })
	broken := fake(func(string) (*auth.Identity, bool, error) { return nil, false, errors.New("issuer is down") })
	yes := fake(func(string) (*auth.Identity, bool, error) { return &auth.Identity{Subject: "s"}, true, nil })
	id, ok, err := auth.Union{no, broken, yes}.Authenticate(t.Context(), "x")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "s", id.Subject)
	_, ok, err = auth.Union{no, broken}.Authenticate(t.Context(), "x")
	require.Error(t, err, "a token that could not be verified is not reported as unknown")
	require.False(t, ok)
	_, ok, err = auth.Union{}.Authenticate(t.Context(), "x")
	require.NoError(t, err)
	require.False(t, ok)
}

// A session of a browser lives as long as its token is in the file, and has another credential.
func TestStaticTokens_knowTheirSessions(t *testing.T) {
	t.Parallel()
	tokens, err := load(t, "t1,alice,a,\"dev\"\nt2,alice,a\n")
	require.NoError(t, err)
	first, ok, err := tokens.Authenticate(t.Context(), "t1")
	require.NoError(t, err)
	require.True(t, ok)
	credential := auth.SessionCredential(first)
	require.NotEqual(t, first.Credential, credential)
	found, ok := tokens.OfSession(credential)
	require.True(t, ok)
	require.Same(t, first, found)
	token, ok := tokens.TokenOfSession(credential)
	require.True(t, ok)
	require.Equal(t, "t1", token)
	for _, other := range []string{first.Credential, "", "t1"} {
		_, ok = tokens.OfSession(other)
		require.False(t, ok)
	}
	rotated, err := load(t, "t2,alice,a\n")
	require.NoError(t, err)
	_, ok = rotated.OfSession(credential)
	require.False(t, ok)
	_, ok = rotated.TokenOfSession(credential)
	require.False(t, ok)
}

func TestStaticTokens_followTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.csv")
	write := func(content string) { require.NoError(t, os.WriteFile(path, []byte(content), 0o600)) }
	write("hush-a,alice,1,dev\nhush-b,bob,2\n")
	tokens, err := auth.LoadStaticTokens(path, "hub-operator")
	require.NoError(t, err)
	of := func(token string) *auth.Identity {
		id, _, err := tokens.Authenticate(t.Context(), token)
		require.NoError(t, err)
		forKCP, ok, err := tokens.AuthenticateToken(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, id != nil, ok, "kcp knows the same tokens")
		if ok {
			require.Equal(t, id.Username, forKCP.User.GetName())
			require.Equal(t, id.Groups, forKCP.User.GetGroups())
			require.NotEmpty(t, forKCP.User.GetUID())
		}
		return id
	}
	alice, bob := of("hush-a"), of("hush-b")
	require.True(t, tokens.Has(alice))
	require.True(t, tokens.Has(&auth.Identity{Issuer: "https://idp.example"}), "people of other issuers")
	require.True(t, tokens.Has(&auth.Identity{Issuer: auth.StaticIssuer}), "cookies, which OfSession knows")

	write("hush-a,alice,1,ops\nhush-b,bob,2\nhush-c,carol,3\n")
	require.NoError(t, tokens.Reload())
	require.False(t, tokens.Has(alice), "her groups are others")
	require.True(t, tokens.Has(bob))
	require.True(t, tokens.Has(of("hush-a")))
	require.NotNil(t, of("hush-c"))

	for _, broken := range []string{"hush-c,carol", "hush-c,hub-operator,3"} {
		write(broken)
		err := tokens.Reload()
		require.ErrorContains(t, err, "line 1")
		require.NotContains(t, err.Error(), "hush")
		require.True(t, tokens.Has(bob), "the content before stays")
	}
	write("hush-a,alice,1,ops\n")
	require.NoError(t, tokens.Reload())
	require.False(t, tokens.Has(bob))
	require.Nil(t, of("hush-b"))
}
