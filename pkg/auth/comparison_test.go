package auth_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// compared is a Comparison of people whose token is their username.
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
	return auth.NewComparison(next, func(_ context.Context, token string) (string, error) {
		*asked++
		return (*kcp)(token)
	}, k), k
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
