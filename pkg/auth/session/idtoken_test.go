package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/auth/session"
)

func TestIDToken_isRenewedForThePortal(t *testing.T) {
	t.Parallel()
	f := setup(t)
	cookie, _, err := f.LogIn(t.Context(), f.request("alice"))
	require.NoError(t, err)
	name := f.sessionOf(cookie).Name
	first, err := f.IDToken(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, 1, f.provider.asked(), "a login keeps no ID token for the portal")
	again, err := f.IDToken(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, 1, f.provider.asked())
	f.pass(56 * time.Minute)
	later, err := f.IDToken(t.Context(), name)
	require.NoError(t, err)
	require.NotEqual(t, first, later)
	f.requireNoneStored(first, later)

	require.NoError(t, f.Revoke(t.Context(), cookie))
	_, err = f.IDToken(t.Context(), name)
	requireCode(t, err, session.CodeInvalidGrant)
	_, err = f.IDToken(t.Context(), "no-such-session")
	requireCode(t, err, session.CodeInvalidGrant)
}
