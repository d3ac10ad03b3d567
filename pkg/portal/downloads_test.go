package portal_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/pkg/portal"
)

const archive = "kedge-linux-amd64.tar.gz"

// offering returns a portal with a directory of programs, and the directory.
func offering(t *testing.T) (http.Handler, string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		archive: "program", "kedge-windows-arm64.zip": "other", "kedge-notes.txt": "notes", "secret.key": "hush", ".kedge": "hush",
		"kedge-linux-amd64.tar.gz.sha256": "not ours", "kedge.yaml": "not ours",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "kedge-dir"), 0o700))
	h, err := portal.New(portal.Options{DownloadsDir: dir, ExternalURL: "https://hub.example.com", CA: func() []byte { return []byte("a CA") }})
	require.NoError(t, err)
	r := chi.NewRouter()
	r.Use(middleware.GetHead)
	h.Mount(r)
	return r, dir
}

func hashOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}

func TestDownloads_comeWithTheirHashes(t *testing.T) {
	t.Parallel()
	h, _ := offering(t)
	w := ask(h, http.MethodGet, "/ui/downloads/"+archive)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "program", w.Body.String())
	for name, want := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Content-Type": "application/octet-stream",
		"Content-Disposition": `attachment; filename="` + archive + `"`, "ETag": `"` + hashOf("program") + `"`, "Content-Length": "7",
	} {
		require.Equal(t, want, w.Header().Get(name), name)
	}
	part := ask(h, http.MethodGet, "/ui/downloads/"+archive, "Range", "bytes=3-")
	require.Equal(t, http.StatusPartialContent, part.Code)
	require.Equal(t, "gram", part.Body.String())
	require.Equal(t, http.StatusNotModified, ask(h, http.MethodGet, "/ui/downloads/"+archive, "If-None-Match", w.Header().Get("ETag")).Code)
	line := hashOf("program") + "  " + archive + "\n"
	require.Equal(t, line, ask(h, http.MethodGet, "/ui/downloads/"+archive+".sha256").Body.String())
	require.Contains(t, ask(h, http.MethodGet, "/ui/downloads/SHA256SUMS").Body.String(), line)
	page := ask(h, http.MethodGet, "/ui/downloads/")
	require.Equal(t, "text/html; charset=utf-8", page.Header().Get("Content-Type"))
	require.Contains(t, page.Body.String(), hashOf("program"))
	require.NotContains(t, page.Body.String(), "secret")

	var index map[string]any
	require.NoError(t, json.Unmarshal(ask(h, http.MethodGet, "/ui/downloads/index.json").Body.Bytes(), &index))
	require.Equal(t, map[string]any{"ca": true, "files": []any{
		map[string]any{"name": archive, "size": 7.0, "sha256": hashOf("program"), "os": "linux", "arch": "amd64"},
		map[string]any{"name": "kedge-notes.txt", "size": 5.0, "sha256": hashOf("notes")},
		map[string]any{"name": "kedge-windows-arm64.zip", "size": 5.0, "sha256": hashOf("other"), "os": "windows", "arch": "arm64"},
	}}, index)
}

func TestDownloads_offerNothingElse(t *testing.T) {
	t.Parallel()
	h, _ := offering(t)
	for _, path := range []string{
		"secret.key", ".kedge", "kedge-dir", "../downloads_test.go", "%2e%2e/secret.key", "kedge-dir/../secret.key", "/etc/passwd",
		"..%2fsecret.key", "KEDGE-linux-amd64.tar.gz", archive + "/", archive + "%00",
	} {
		w := ask(h, http.MethodGet, "/ui/downloads/"+path)
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.NotContains(t, w.Body.String(), "hush")
	}
	require.Equal(t, http.StatusMethodNotAllowed, ask(h, http.MethodPut, "/ui/downloads/"+archive).Code)
}

// The hash that people compare is that of the start.
func TestDownloads_thatChangeAreNotServed(t *testing.T) {
	t.Parallel()
	h, dir := offering(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, archive), []byte("another"), 0o600))
	require.NoError(t, os.Chtimes(filepath.Join(dir, archive), time.Time{}, time.Now().Add(time.Hour)))
	require.Equal(t, http.StatusInternalServerError, ask(h, http.MethodGet, "/ui/downloads/"+archive).Code)
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("program"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, archive)))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, archive)))
	require.NotEqual(t, http.StatusOK, ask(h, http.MethodGet, "/ui/downloads/"+archive).Code, "outside of the directory")
}

func TestDownloads_areAPluginOfKrew(t *testing.T) {
	t.Parallel()
	h, _ := offering(t)
	var plugin struct {
		Kind string
		Spec struct {
			Version   string
			Platforms []struct{ URI, SHA256, Bin string }
		}
	}
	require.NoError(t, yaml.Unmarshal(ask(h, http.MethodGet, "/ui/downloads/kedge.yaml").Body.Bytes(), &plugin))
	require.Equal(t, "Plugin", plugin.Kind)
	require.Regexp(t, `^v\d+\.\d+\.\d+`, plugin.Spec.Version)
	require.Equal(t, []struct{ URI, SHA256, Bin string }{
		{"https://hub.example.com/ui/downloads/" + archive, hashOf("program"), "kedge"},
		{"https://hub.example.com/ui/downloads/kedge-windows-arm64.zip", hashOf("other"), "kedge.exe"},
	}, plugin.Spec.Platforms)
	require.Equal(t, http.StatusNotFound, ask(router(t), http.MethodGet, "/ui/downloads/kedge.yaml").Code, "without programs")
}

func TestCA_isServedWhereItIsTheHubsOwn(t *testing.T) {
	t.Parallel()
	h, _ := offering(t)
	w := ask(h, http.MethodGet, "/ui/ca.crt")
	require.Equal(t, "a CA", w.Body.String())
	require.Equal(t, "application/x-pem-file", w.Header().Get("Content-Type"))
	other := router(t)
	require.Equal(t, http.StatusNotFound, ask(other, http.MethodGet, "/ui/ca.crt").Code)
	require.JSONEq(t, `{"ca":false,"files":[]}`, ask(other, http.MethodGet, "/ui/downloads/index.json").Body.String())
}

func TestDownloads_needADirectory(t *testing.T) {
	t.Parallel()
	_, err := portal.New(portal.Options{DownloadsDir: filepath.Join(t.TempDir(), "none")})
	require.ErrorContains(t, err, "--downloads-dir")
}
