package session_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestRedeem_handsOutTheTokenOfTheLogin(t *testing.T) {
	t.Parallel()
	f := setup(t)
	l := f.request("alice")
	l.Description = " alice's\x00 laptop\u202e " + strings.Repeat("é", 200)
	code, err := f.Authorize(t.Context(), l)
	require.NoError(t, err)
	held := f.sessionOf(code)
	require.Equal(t, "alice's laptop "+strings.Repeat("é", 113), held.Spec.Description)
	require.Equal(t, uuid.Version(7), uuid.MustParse(held.Name).Version())
	require.Equal(t, f.clock.Now().Add(time.Minute).Unix(), held.Spec.Code.ExpiresAt.Unix())

	// Another replica redeems.
	tokens, err := f.replica(f.keys...).Redeem(t.Context(), code, verifier, redirectURI)
	require.NoError(t, err)
	require.Equal(t, "alice", tokens.User)
	require.Equal(t, l.Grant.IDToken, tokens.IDToken)
	require.Equal(t, l.Grant.Identity.ExpiresAt, tokens.ExpiresAt.UTC())
	held = f.sessionOf(tokens.Secret)
	require.Nil(t, held.Spec.Code)
	require.Equal(t, v1alpha1.SessionCLI, held.Spec.Client)
	require.Equal(t, "alice", held.Spec.UserRef.Name)
	require.Equal(t, []string{"kedge:dev"}, held.Spec.Groups)
	require.Equal(t, l.Grant.Identity.Credential, held.Spec.Tokens[0].Hash)
	require.Equal(t, f.clock.Now().Add(maxAge).Unix(), held.Spec.ExpiresAt.Unix())
	require.Zero(t, f.provider.asked())

	f.requireNoneStored(code, tokens.Secret, tokens.IDToken, l.Grant.RefreshToken, verifier)
}

func TestRedeem_endsTheSessionOfAReplayedCode(t *testing.T) {
	t.Parallel()
	f := setup(t)
	code, err := f.Authorize(t.Context(), f.request("alice"))
	require.NoError(t, err)
	tokens, err := f.Redeem(t.Context(), code, verifier, redirectURI)
	require.NoError(t, err)
	_, err = f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)

	_, err = f.replica(f.keys...).Redeem(t.Context(), code, verifier, redirectURI)
	requireCode(t, err, session.CodeInvalidGrant)
	require.NotNil(t, f.sessionOf(code).Spec.EndedAt)
	require.Empty(t, f.sessionOf(code).Spec.IDToken)
	_, err = f.Refresh(t.Context(), tokens.Secret)
	requireCode(t, err, session.CodeInvalidGrant)
}

func TestRedeem_refusesAStolenCode(t *testing.T) {
	t.Parallel()
	f := setup(t)
	code, err := f.Authorize(t.Context(), f.request("alice"))
	require.NoError(t, err)
	for name, refusal := range map[string]struct{ verifier, redirectURI string }{
		"without a verifier":       {"", redirectURI},
		"with another verifier":    {verifier + "x", redirectURI},
		"from another port":        {verifier, "http://127.0.0.1:4712/callback"},
		"without the redirect_uri": {verifier, ""},
	} {
		_, err := f.Redeem(t.Context(), code, refusal.verifier, refusal.redirectURI)
		requireCode(t, err, session.CodeInvalidGrant)
		require.Nil(t, f.sessionOf(code).Spec.EndedAt, name)
	}
	_, err = f.Redeem(t.Context(), code, verifier, redirectURI)
	require.NoError(t, err)
}

func TestRedeem_refusesAnExpiredCode(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for after, ok := range map[time.Duration]bool{59 * time.Second: true, time.Minute: false} {
		code, err := f.Authorize(t.Context(), f.request("alice"))
		require.NoError(t, err)
		f.pass(after)
		_, err = f.Redeem(t.Context(), code, verifier, redirectURI)
		if ok {
			require.NoError(t, err)
		} else {
			requireCode(t, err, session.CodeInvalidGrant)
		}
	}
}

func TestService_readsNothingForForgedSecrets(t *testing.T) {
	t.Parallel()
	f := setup(t)
	code, err := f.Authorize(t.Context(), f.request("alice"))
	require.NoError(t, err)
	tokens, err := f.Redeem(t.Context(), code, verifier, redirectURI)
	require.NoError(t, err)
	cookie, _, err := f.LogIn(t.Context(), f.request("alice"))
	require.NoError(t, err)
	other := setup(t)
	foreign := other.login("alice").Secret
	name, _, _ := strings.Cut(tokens.Secret, ".")
	mac := tokens.Secret[strings.LastIndexByte(tokens.Secret, '.')+1:]
	f.ForgetRequests()
	for _, forged := range []string{
		"", ".", "..", name, name + ".1", name + ".1.", name + ".2." + mac, name + ".01." + mac, tokens.Secret + "A", tokens.Secret + "=", tokens.Secret + "\n",
		tokens.Secret[:len(tokens.Secret)-1], foreign, cookie, code, strings.Repeat("a", 1<<20), name + "." + strings.Repeat("9", 200) + "." + mac,
	} {
		_, err := f.Refresh(t.Context(), forged)
		requireCode(t, err, session.CodeInvalidGrant)
		_, err = f.PollDevice(t.Context(), forged)
		requireCode(t, err, session.CodeInvalidGrant)
		if forged != code {
			_, err = f.Redeem(t.Context(), forged, verifier, redirectURI)
			requireCode(t, err, session.CodeInvalidGrant)
		}
		if forged != cookie {
			require.NoError(t, f.Revoke(t.Context(), forged))
			_, ok := f.Keys.PortalSession(forged)
			require.False(t, ok)
		}
	}
	require.Empty(t, f.Requests())
	_, err = f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
}

func TestLogIn_returnsACookie(t *testing.T) {
	t.Parallel()
	f := setup(t)
	l := f.request("alice")
	cookie, expires, err := f.LogIn(t.Context(), l)
	require.NoError(t, err)
	require.Equal(t, f.clock.Now().Add(maxAge).Unix(), expires.Unix())
	name, ok := f.Keys.PortalSession(cookie)
	require.True(t, ok)
	held := f.sessionOf(cookie)
	require.Equal(t, held.Name, name)
	require.Equal(t, v1alpha1.SessionPortal, held.Spec.Client)
	require.Empty(t, held.Spec.IDToken)
	require.Len(t, held.Spec.Tokens, 1, "its expiry ends the groups of the login")
	again, _, err := f.LogIn(t.Context(), f.request("alice"))
	require.NoError(t, err)
	require.NotEqual(t, held.Name, f.sessionOf(again).Name, "a new login has a new session")
	f.requireNoneStored(cookie, l.Grant.IDToken, l.Grant.RefreshToken)

	require.NoError(t, f.Revoke(t.Context(), cookie))
	require.NotNil(t, f.sessionOf(cookie).Spec.EndedAt)
	require.Nil(t, f.sessionOf(again).Spec.EndedAt)
}

func TestRedeem_survivesALostAnswer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	code, err := f.Authorize(t.Context(), f.request("alice"))
	require.NoError(t, err)
	lost := false
	f.FailAfter(func(r kcpfake.Request) error {
		if r.Verb != "patch" || lost {
			return nil
		}
		lost = true
		return apierrors.NewInternalError(errLost)
	})
	tokens, err := f.Redeem(t.Context(), code, verifier, redirectURI)
	require.NoError(t, err)
	require.True(t, lost)
	_, err = f.Refresh(t.Context(), tokens.Secret)
	require.NoError(t, err)
}

func TestService_isUnavailableWithoutKCP(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	code, err := f.Authorize(t.Context(), f.request("alice"))
	require.NoError(t, err)
	device, err := f.StartDevice(t.Context(), session.DeviceRequest{})
	require.NoError(t, err)
	l := f.request("alice")
	f.FailBefore(func(kcpfake.Request) error {
		return apierrors.NewForbidden(v1alpha1.SchemeGroupVersion.WithResource("sessions").GroupResource(), "", errLost)
	})
	_, err = f.Authorize(t.Context(), l)
	requireUnavailable(t, err)
	_, _, err = f.LogIn(t.Context(), l)
	requireUnavailable(t, err)
	_, err = f.Redeem(t.Context(), code, verifier, redirectURI)
	requireUnavailable(t, err)
	_, err = f.Refresh(t.Context(), tokens.Secret)
	requireUnavailable(t, err)
	_, err = f.StartDevice(t.Context(), session.DeviceRequest{})
	requireUnavailable(t, err)
	_, err = f.PollDevice(t.Context(), device.DeviceCode)
	requireUnavailable(t, err)
	requireUnavailable(t, f.ConfirmDevice(t.Context(), device.UserCode, l))
	requireUnavailable(t, f.Revoke(t.Context(), tokens.Secret))
	requireUnavailable(t, f.End(t.Context(), "alice", "x"))
	requireUnavailable(t, f.EndAll(t.Context(), "alice"))
	requireUnavailable(t, f.Touch(t.Context(), "x"))
	f.FailBefore(nil)
	_, err = f.Redeem(t.Context(), code, verifier, redirectURI)
	require.NoError(t, err)
}

func TestKeyring_opensOnlyWhatItSealed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	older, newer := newKey(t), newKey(t)
	old, rotated, dropped := f.keyring(older), f.keyring(newer, older), f.keyring(newer)
	sealed, err := old.Seal("a", []byte("plain"))
	require.NoError(t, err)
	again, err := old.Seal("a", []byte("plain"))
	require.NoError(t, err)
	require.NotEqual(t, sealed, again)
	mac := old.MAC("a", "message")
	for _, keys := range []*session.Keyring{old, rotated} {
		plain, err := keys.Open("a", sealed)
		require.NoError(t, err)
		require.Equal(t, "plain", string(plain))
		_, err = keys.Open("b", sealed)
		require.Error(t, err)
		require.True(t, keys.Verify("a", "message", mac))
		require.False(t, keys.Verify("b", "message", mac))
		require.False(t, keys.Verify("a", "Message", mac))
	}
	_, err = dropped.Open("a", sealed)
	require.Error(t, err)
	require.False(t, dropped.Verify("a", "message", mac))
	for i := range sealed {
		bad := append([]byte{}, sealed...)
		bad[i] ^= 1
		_, err := old.Open("a", bad)
		require.Error(t, err)
		_, err = old.Open("a", sealed[:i])
		require.Error(t, err)
	}
}

func TestParseKeys_namesTheLineAndNotTheKey(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString(newKey(t))
	keys, err := session.ParseKeys([]byte("\n" + key + "\r\n" + base64.StdEncoding.EncodeToString(newKey(t))))
	require.NoError(t, err)
	require.Len(t, keys, 2)
	for _, bad := range []string{"", "\n\n", "hush", key + "\nhush\n", key[:40], key + key, key + " # comment"} {
		_, err := session.ParseKeys([]byte(bad))
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "hush")
		require.NotContains(t, err.Error(), key)
	}
	_, err = session.NewKeyring([][]byte{[]byte("short")}, nil)
	require.Error(t, err)
	_, err = session.NewKeyring(nil, nil)
	require.Error(t, err)
}

func TestAuthorize_completesALoginOnceOnAllReplicas(t *testing.T) {
	t.Parallel()
	f := setup(t)
	l := f.request("alice")
	l.Once, l.BeganAt = "the state of a login in progress", f.clock.Now()
	code, err := f.Authorize(t.Context(), l)
	require.NoError(t, err)
	for _, replica := range []*session.Service{f.Service, f.replica(f.keys...)} {
		_, err := replica.Authorize(t.Context(), l)
		requireCode(t, err, session.CodeAccessDenied)
	}
	_, err = f.Redeem(t.Context(), code, verifier, redirectURI)
	require.NoError(t, err)
	_, err = f.Authorize(t.Context(), l)
	requireCode(t, err, session.CodeAccessDenied)

	l.Once = "the state of another login"
	other, err := f.Authorize(t.Context(), l)
	require.NoError(t, err)
	require.NotEqual(t, f.sessionOf(code).Name, f.sessionOf(other).Name)
	require.Equal(t, uuid.Version(7), uuid.MustParse(f.sessionOf(other).Name).Version())
}

// A flood of forged secrets must not reach the limits of genuine ones.
func TestKeyring_tellsGenuineSecretsFromForgedOnes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	code, err := f.Authorize(t.Context(), f.request("alice"))
	require.NoError(t, err)
	tokens, err := f.Redeem(t.Context(), code, verifier, redirectURI)
	require.NoError(t, err)
	cookie, _, err := f.LogIn(t.Context(), f.request("alice"))
	require.NoError(t, err)
	device, err := f.StartDevice(t.Context(), session.DeviceRequest{})
	require.NoError(t, err)
	foreign := f.replica(newKey(t))
	theirs, err := foreign.Authorize(t.Context(), f.request("bob"))
	require.NoError(t, err)
	names := map[string]bool{}
	for _, presented := range []string{tokens.Secret, cookie, device.DeviceCode} {
		name, ok := f.Keys.Genuine(presented)
		require.True(t, ok)
		names[name] = true
		_, ok = f.Keys.Genuine(presented[:len(presented)-2] + "xx")
		require.False(t, ok)
		_, ok = f.Keys.Genuine("0" + presented[1:])
		require.False(t, ok && presented[0] != '0')
	}
	require.Len(t, names, 3)
	name, ok := f.Keys.Genuine(code)
	require.True(t, ok)
	require.True(t, names[name], "the code and the secret are of one session")
	for _, forged := range []string{theirs, "", ".", "a.b", "a.1.b", strings.Repeat("a.", 1_000), device.UserCode} {
		_, ok := f.Keys.Genuine(forged)
		require.False(t, ok, forged)
	}
}
