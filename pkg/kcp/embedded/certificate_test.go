package embedded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"
)

func TestRenewCertificate_atTwoThirdsOfItsLife(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, renewCertificate(dir, time.Now()), "a first start has none")
	crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	require.NoError(t, err)
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		content []byte
		at      time.Time
		kept    bool
	}{
		"a new one":               {crt, time.Now(), true},
		"after 243 days":          {crt, time.Now().Add(243 * day), true},
		"after 244 days":          {crt, time.Now().Add(244 * day), false},
		"an expired one":          {crt, time.Now().Add(400 * day), false},
		"one that cannot be read": {[]byte("broken"), time.Now(), false},
	} {
		for file, content := range map[string][]byte{"apiserver.crt": c.content, "apiserver.key": key} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), content, 0o600))
		}
		require.NoError(t, renewCertificate(dir, c.at), name)
		for _, file := range []string{"apiserver.crt", "apiserver.key"} {
			_, err := os.Stat(filepath.Join(dir, file))
			require.Equal(t, c.kept, err == nil, "%s: %s", name, file)
		}
	}
}

func TestRenewCertificate_removesOneWithoutTheOther(t *testing.T) {
	t.Parallel()
	crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	require.NoError(t, err)
	_, other, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	require.NoError(t, err)
	for name, files := range map[string]map[string][]byte{
		"no key":                {"apiserver.crt": crt},
		"no certificate":        {"apiserver.key": key},
		"the key of another":    {"apiserver.crt": crt, "apiserver.key": other},
		"a key that was cut":    {"apiserver.crt": crt, "apiserver.key": key[:len(key)/2]},
		"two files, both empty": {"apiserver.crt": nil, "apiserver.key": nil},
	} {
		dir := t.TempDir()
		for file, content := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), content, 0o600))
		}
		require.NoError(t, renewCertificate(dir, time.Now()), name)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, name)
	}
}
