package auth_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// compared is a Comparison of people whose token is their username. kcp returns the username.
func compared(kcp *func(token string) (string, error), asked *int) (*auth.Comparison, *clocktesting.FakeClock) {
	next := fake(func(token string) (*auth.Identity, bool, error) {
		switch token {
		case "bot":
			return &auth.Identity{Kind: auth.Bot, Issuer: "kcp", Username: token}, true, nil
		case "unknown":
			return nil, false, nil
		case "static":
			return &auth.Identity{Kind: auth.Person, Issuer: auth.StaticIssuer, Username: token, Credential: token}, true, nil
		}
		return &auth.Identity{Kind: auth.Person, Issuer: "https://idp", Username: token, Credential: token}, true, nil
	})
	k := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	return auth.NewComparison(next, func(_ context.Context, token string) (string, []string, error) {
		*asked++
		username, err := (*kcp)(token)
		return username, []string{"system:authenticated"}, err
	}, func(*auth.Identity) bool { return true }, k), k
}

// staticKCP is a Comparison of a token file with another one that kcp has.
type staticKCP struct {
	*auth.Comparison
	hub  *auth.StaticTokens
	path string
	// users are the usernames and groups that kcp derives, by token.
	users map[string][]string
	asked int
}

func newStaticKCP(t *testing.T, rows string) *staticKCP {
	t.Helper()
	k := &staticKCP{path: filepath.Join(t.TempDir(), "tokens.csv"), users: map[string][]string{}}
	require.NoError(t, os.WriteFile(k.path, []byte(rows), 0o600))
	var err error
	k.hub, err = auth.LoadStaticTokens(k.path)
	require.NoError(t, err)
	k.Comparison = auth.NewComparison(k.hub, func(_ context.Context, token string) (string, []string, error) {
		k.asked++
		user, ok := k.users[token]
		if !ok {
			return "", nil, errs.New(errs.Unauthenticated, "no")
		}
		return user[0], append(user[1:], "system:authenticated"), nil
	}, k.hub.Has, clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	return k
}

// is requires the username that a token has, which is empty for a refused one.
func (k *staticKCP) is(t *testing.T, token, username string) {
	t.Helper()
	id, ok, err := k.Authenticate(t.Context(), token)
	if username == "" {
		require.True(t, errs.Is(err, errs.Forbidden), "%v", err)
		require.False(t, ok)
		return
	}
	require.NoError(t, err)
	require.Equal(t, username, id.Username)
}

// kcp has bob's token on another row, or gives it groups of its own. That alice matches proves nothing
// about bob.
func TestComparison_comparesEveryStaticToken(t *testing.T) {
	t.Parallel()
	k := newStaticKCP(t, "a,alice,1,dev\nb,bob,2\nc,carol,3,\"dev,ops\"\nd,dave,4\n")
	k.users = map[string][]string{"a": {"alice", "dev"}, "b": {"carol"}, "c": {"carol", "dev"}, "d": {"dave", "system:masters"}}
	for range 10 {
		k.is(t, "a", "alice")
		k.is(t, "b", "")
		k.is(t, "c", "carol")
		k.is(t, "d", "")
	}
	require.Equal(t, 4, k.asked, "once for each")
	err := k.Err()
	require.ErrorContains(t, err, `"carol" whom the hub knows as "bob"`)
	require.ErrorContains(t, err, `"system:masters"`)
	require.ErrorContains(t, err, "--token-auth-file")
	require.NotContains(t, err.Error(), "alice")
}

func TestComparison_comparesAStaticTokenAgainAfterARotation(t *testing.T) {
	t.Parallel()
	k := newStaticKCP(t, "a,alice,1\nb,bob,2\n")
	k.users = map[string][]string{"a": {"alice"}, "b": {"carol"}}
	k.is(t, "a", "alice")
	k.is(t, "b", "")
	require.Error(t, k.Err())
	// The hub and kcp get another file, in which the tokens change hands; kcp keeps the old row of a.
	require.NoError(t, os.WriteFile(k.path, []byte("a,bob,2\nc,carol,3\n"), 0o600))
	require.NoError(t, k.hub.Reload())
	require.NoError(t, k.Err(), "the file does not have the token any more")
	k.users["c"] = []string{"carol"}
	k.is(t, "a", "")
	k.is(t, "c", "carol")
	require.ErrorContains(t, k.Err(), `"alice" whom the hub knows as "bob"`)
	k.users["a"] = []string{"bob"}
	require.NoError(t, k.hub.Reload())
	asked := k.asked
	for range 10 {
		k.is(t, "c", "carol")
	}
	require.Equal(t, asked+1, k.asked)
}

func TestComparison_asksKCPOncePerIssuer(t *testing.T) {
	t.Parallel()
	kcp, asked := func(token string) (string, error) { return token, nil }, 0
	c, _ := compared(&kcp, &asked)
	for _, token := range []string{"bot", "unknown"} {
		_, _, err := c.Authenticate(t.Context(), token)
		require.NoError(t, err)
	}
	require.Zero(t, asked, "bots are known to kcp alone")
	for _, token := range []string{"alice", "alice", "bob"} {
		id, ok, err := c.Authenticate(t.Context(), token)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, token, id.Username)
	}
	require.Equal(t, 1, asked)
	require.NoError(t, c.Err())
}

func TestComparison_refusesAnotherUsername(t *testing.T) {
	t.Parallel()
	kcp, asked := func(token string) (string, error) { return "https://idp#" + token, nil }, 0
	c, k := compared(&kcp, &asked)
	for range 10 {
		_, ok, err := c.Authenticate(t.Context(), "alice")
		require.False(t, ok)
		require.True(t, errs.Is(err, errs.Forbidden))
		require.NotContains(t, err.Error(), "https://idp#alice")
	}
	require.Equal(t, 1, asked)
	require.ErrorContains(t, c.Err(), "--authentication-config")
	require.ErrorContains(t, c.Err(), `"https://idp#alice"`)
	kcp = func(token string) (string, error) { return token, nil }
	k.Step(10 * time.Second)
	_, ok, err := c.Authenticate(t.Context(), "alice")
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, c.Err())
}

func TestComparison_isUnavailableUntilKCPHasAnswered(t *testing.T) {
	t.Parallel()
	kcp, asked := func(string) (string, error) { return "", errors.New("kcp is down") }, 0
	c, k := compared(&kcp, &asked)
	_, ok, err := c.Authenticate(t.Context(), "alice")
	require.False(t, ok)
	require.True(t, errs.Is(err, errs.Unavailable))
	require.NoError(t, c.Err(), "nothing is known to be wrong")
	kcp = func(string) (string, error) { return "", errs.New(errs.Unauthenticated, "no") }
	asked = 0
	for range 10 {
		_, _, err = c.Authenticate(t.Context(), "alice")
		require.True(t, errs.Is(err, errs.Unavailable), "kcp may not have reached the issuer yet")
	}
	require.Equal(t, 1, asked)
	require.ErrorContains(t, c.Err(), "does not accept")
	k.Step(10 * time.Second)
	kcp = func(token string) (string, error) { return token, nil }
	_, ok, err = c.Authenticate(t.Context(), "alice")
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, c.Err())
}

func TestComparison_admitsAStaticUserWhomKCPDoesNotKnow(t *testing.T) {
	t.Parallel()
	kcp, asked := func(string) (string, error) { return "", errs.New(errs.Unauthenticated, "no") }, 0
	c, k := compared(&kcp, &asked)
	for range 10 {
		id, ok, err := c.Authenticate(t.Context(), "static")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "static", id.Username)
	}
	require.Equal(t, 1, asked)
	require.ErrorContains(t, c.Err(), "--token-auth-file")
	kcp = func(string) (string, error) { return "somebody-else", nil }
	k.Step(10 * time.Second)
	_, _, err := c.Authenticate(t.Context(), "static")
	require.True(t, errs.Is(err, errs.Forbidden), "the control: another username is refused")
}
