package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEtcd_hasKeysWhoseHandshakesAreCheap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := newEtcdIn(t, dir)
	require.NoError(t, k.put(t, "key", 1), "a client with the new certificates is let in")
	for _, name := range []string{"ca", "peer", "client"} {
		at := filepath.Join(dir, etcdDir, secretsDir, name)
		pair, err := tls.LoadX509KeyPair(certOf(at), keyOf(at))
		require.NoError(t, err, name)
		require.Equal(t, elliptic.P256(), pair.PrivateKey.(*ecdsa.PrivateKey).Curve, name)
	}
}
