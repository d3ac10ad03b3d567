package session_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
