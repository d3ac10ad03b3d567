package embedded

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
)

func TestAuthentication_isWrittenForKCPAlone(t *testing.T) {
	t.Parallel()
	s := &Server{options: Options{Dir: t.TempDir(), JWT: []apiserverv1.JWTAuthenticator{{Issuer: apiserverv1.Issuer{URL: "https://first"}}}}}
	require.NoError(t, s.keepAuthentication())
	s.options.JWT[0].Issuer.URL = "https://second"
	require.NoError(t, s.SetIssuers(s.options.JWT))
	path := filepath.Join(s.options.Dir, authenticationFile)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var written apiserverv1.AuthenticationConfiguration
	require.NoError(t, json.Unmarshal(raw, &written))
	require.Equal(t, "apiserver.config.k8s.io/v1", written.APIVersion)
	require.Equal(t, "https://second", written.JWT[0].Issuer.URL)
	left, err := os.ReadDir(s.options.Dir)
	require.NoError(t, err)
	require.Len(t, left, 1)

	s.options.JWT = nil
	require.NoError(t, s.keepAuthentication())
	require.NoFileExists(t, path, "a start without an issuer")
	require.NoError(t, s.keepAuthentication())
}
