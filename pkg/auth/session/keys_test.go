package session_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth/session"
)

// Other replicas read a changed file minutes later.
func TestKeyring_sealsWithANewKeyWhenAllReplicasHaveIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		older, newer, newest := newKey(t), newKey(t), newKey(t)
		f := &fixture{t: t}
		old := f.keyring(older)
		sealsWithOld := func(k *session.Keyring) bool {
			t.Helper()
			sealed, err := k.Seal("a", nil)
			require.NoError(t, err)
			_, err = old.Open("a", sealed)
			require.Equal(t, err == nil, old.Verify("a", "m", k.MAC("a", "m")))
			require.True(t, k.Current(sealed))
			return err == nil
		}
		late, inFront, added := f.keyring(older), f.keyring(older), f.keyring(older)
		require.NoError(t, inFront.Replace([][]byte{newer, older}))
		require.NoError(t, added.Replace([][]byte{older, newer}))
		require.True(t, sealsWithOld(inFront))
		sealed, err := f.keyring(newer).Seal("a", nil)
		require.NoError(t, err)
		for _, k := range []*session.Keyring{inFront, added} {
			_, err = k.Open("a", sealed)
			require.NoError(t, err, "a new key opens at once")
		}
		<-time.After(10*time.Minute - time.Second)
		require.True(t, sealsWithOld(inFront))
		require.NoError(t, inFront.Replace([][]byte{newer, older}), "the same content again")
		<-time.After(time.Second)
		require.False(t, sealsWithOld(inFront))
		require.True(t, sealsWithOld(added))
		require.NoError(t, added.Replace([][]byte{newer, older}))
		require.False(t, sealsWithOld(added), "in front in a second step, a key seals at once")

		require.False(t, sealsWithOld(f.keyring(newer, older)), "a replica that starts takes its file as it is")
		require.NoError(t, late.Replace([][]byte{newest, newer}))
		require.False(t, sealsWithOld(late), "a key that was removed seals nothing any more")
	})
}

// What names a key that is not there can be in order at another replica; what was altered is in order nowhere.
func TestKeyring_tellsAnUnknownKeyFromAnAlteredText(t *testing.T) {
	t.Parallel()
	f := &fixture{t: t}
	own := f.keyring(newKey(t))
	sealed, err := own.Seal("a", nil)
	require.NoError(t, err)
	_, err = f.keyring(newKey(t), newKey(t)).Open("a", sealed)
	require.ErrorIs(t, err, session.ErrUnknownKey)
	_, err = own.Open("b", sealed)
	require.Error(t, err)
	require.NotErrorIs(t, err, session.ErrUnknownKey)
	for _, short := range [][]byte{nil, sealed[:4], sealed[:len(sealed)-1]} {
		_, err = own.Open("a", short)
		require.Error(t, err)
		require.NotErrorIs(t, err, session.ErrUnknownKey)
	}
	for i := range sealed {
		bad := append([]byte{}, sealed...)
		bad[i] ^= 1
		_, err := own.Open("a", bad)
		require.Error(t, err)
		require.Equal(t, i < 4, strings.Contains(err.Error(), session.ErrUnknownKey.Error()), "byte %d", i)
	}
}

// Another replica has a newer key in front, and another session of the person was refreshed there.
func TestRefresh_keepsTheSessionOfAGrantOfAnotherKey(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first, second := f.login("alice"), f.login("alice")
	added := newKey(t)
	rotated := f.replica(added, f.keys[0])
	f.pass(56 * time.Minute)
	_, err := rotated.Refresh(t.Context(), first.Secret)
	require.NoError(t, err)
	asked := f.provider.asked()

	_, err = f.Refresh(t.Context(), second.Secret)
	requireUnavailable(t, err)
	require.ErrorIs(t, err, session.ErrUnknownKey)
	require.Equal(t, asked, f.provider.asked())
	require.Nil(t, f.sessionOf(second.Secret).Spec.EndedAt)
	require.Equal(t, second.Generation, f.sessionOf(second.Secret).Spec.Generation, "no secret was handed out")
	require.NoError(t, f.Keys.Replace([][]byte{f.keys[0], added}))
	next, err := f.Refresh(t.Context(), second.Secret)
	require.NoError(t, err)
	require.NotEqual(t, second.IDToken, next.IDToken)

	// The name of a key is in the clear: one that was written over a grant prolongs nothing.
	grant := f.grant("alice")
	grant.Sealed[0] ^= 1
	require.NoError(t, f.Grants.SaveGrant(t.Context(), grant))
	used := f.sessionOf(next.Secret).Spec.LastUsedAt
	f.pass(56 * time.Minute)
	_, err = f.Refresh(t.Context(), next.Secret)
	requireUnavailable(t, err)
	require.Equal(t, used, f.sessionOf(next.Secret).Spec.LastUsedAt)
	f.pass(idle)
	_, err = f.Refresh(t.Context(), next.Secret)
	requireCode(t, err, session.CodeInvalidGrant)
}

// The same for a Session whose provider gave no refresh token: its ID token is all that it has.
func TestRefresh_keepsTheSessionOfAnIDTokenOfAnotherKey(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.loginWithoutRefresh("alice")
	held := f.sessionOf(tokens.Secret)
	held.Spec.IDToken[0] ^= 1
	f.Put("users", held)
	_, err := f.Refresh(t.Context(), tokens.Secret)
	requireUnavailable(t, err)
	require.Nil(t, f.sessionOf(tokens.Secret).Spec.EndedAt)
}

// A secret of a key that is not there yet ends nothing here, and the person is told so.
func TestRevoke_doesNotSayThatASessionEndedThatGoesOn(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	cookie, _, err := f.LogIn(t.Context(), f.request("alice"))
	require.NoError(t, err)
	replica := f.replica(newKey(t))
	require.NoError(t, replica.Revoke(t.Context(), tokens.Secret), "without a cache")
	replica.Cached = func(name string) (*v1alpha1.Session, bool) {
		s := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return s, f.Read("users", s)
	}
	f.ForgetRequests()
	for _, secret := range []string{tokens.Secret, cookie} {
		err := replica.Revoke(t.Context(), secret)
		requireUnavailable(t, err)
		require.ErrorContains(t, err, "the session has not ended")
		_, err = replica.Refresh(t.Context(), secret)
		requireCode(t, err, session.CodeInvalidGrant)
	}
	require.Empty(t, f.Requests(), "a secret that no key verifies reads nothing from kcp")
	for _, secret := range []string{tokens.Secret, cookie} {
		require.Nil(t, f.sessionOf(secret).Spec.EndedAt)
		require.NoError(t, f.Revoke(t.Context(), secret))
		require.NoError(t, replica.Revoke(t.Context(), secret), "it has ended")
	}
}

// Strangers learn nothing and cause no errors of the server, whatever they invent.
func TestRevoke_answersForgedSecretsAlike(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tokens := f.login("alice")
	name, _, _ := strings.Cut(tokens.Secret, ".")
	_, rest, _ := strings.Cut(tokens.Secret, ".")
	f.Cached = func(asked string) (*v1alpha1.Session, bool) {
		require.NotEmpty(t, asked)
		s := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: asked}}
		return s, asked == name && f.Read("users", s)
	}
	f.ForgetRequests()
	for _, forged := range []string{
		"", ".", "..", name, name + ".", name + ".1", name + ".x." + rest, "019ab000-0000-7000-8000-000000000000." + rest,
		name + "." + strings.Repeat("1", 300) + "." + rest,
	} {
		require.NoError(t, f.Revoke(t.Context(), forged), forged)
	}
	require.Empty(t, f.Requests())
	require.Nil(t, f.sessionOf(tokens.Secret).Spec.EndedAt)
}
