package portal_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/portal"
)

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

func router(t *testing.T) http.Handler {
	t.Helper()
	h, err := portal.New(portal.Options{})
	require.NoError(t, err)
	r := chi.NewRouter()
	r.Use(middleware.GetHead)
	h.Mount(r)
	return r
}

// ask sends a request; header are pairs.
func ask(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "https://hub.example.com"+path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// names are the embedded files.
func names(t *testing.T) (all []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS("static"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, name)
		}
		return err
	}))
	return all
}

func TestFiles_haveTheirHeaders(t *testing.T) {
	t.Parallel()
	h := router(t)
	kinds := map[string]string{"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
	for _, name := range append(names(t), "") {
		w := ask(h, http.MethodGet, "/ui/"+name)
		require.Equal(t, http.StatusOK, w.Code, name)
		want := http.Header{
			"Content-Security-Policy": {policy}, "Strict-Transport-Security": {"max-age=31536000"}, "X-Content-Type-Options": {"nosniff"},
			"Referrer-Policy": {"no-referrer"}, "Cross-Origin-Opener-Policy": {"same-origin"}, "Cross-Origin-Resource-Policy": {"same-origin"},
			"Cache-Control": {"no-cache"}, "Vary": {"Accept-Encoding"}, "Etag": w.Header()["Etag"], "Content-Length": w.Header()["Content-Length"],
			"Content-Type": {kinds[name[strings.LastIndexByte(name, '.')+1:]]},
		}
		if name == "" {
			want.Set("Content-Type", kinds["html"])
		}
		require.Equal(t, want, w.Header(), name)
		head := ask(h, http.MethodHead, "/ui/"+name)
		require.Equal(t, w.Code, head.Code)
		require.Equal(t, w.Header(), head.Header(), name)
	}
}

func TestFiles_areZippedAndRevalidated(t *testing.T) {
	t.Parallel()
	h := router(t)
	plain := ask(h, http.MethodGet, "/ui/app.js")
	for accepted, zipped := range map[string]bool{
		"gzip": true, "br, gzip;q=0.5": true, "GZIP": true, "": false, "br": false, "gzip;q=0": false, "gzip; q=0.0": false, "x-gzip-not": false,
	} {
		w := ask(h, http.MethodGet, "/ui/app.js", "Accept-Encoding", accepted)
		body := w.Body.Bytes()
		require.Equal(t, zipped, w.Header().Get("Content-Encoding") == "gzip", accepted)
		require.Equal(t, zipped, w.Header().Get("ETag") != plain.Header().Get("ETag"), accepted)
		if zipped {
			reader, err := gzip.NewReader(bytes.NewReader(body))
			require.NoError(t, err)
			body, err = io.ReadAll(reader)
			require.NoError(t, err)
		}
		require.Equal(t, plain.Body.String(), string(body), accepted)
		etag := w.Header().Get("ETag")
		for header, code := range map[string]int{etag: http.StatusNotModified, "W/" + etag: http.StatusNotModified, `"x", ` + etag: http.StatusNotModified, `"x"`: http.StatusOK, "": http.StatusOK} {
			again := ask(h, http.MethodGet, "/ui/app.js", "Accept-Encoding", accepted, "If-None-Match", header)
			require.Equal(t, code, again.Code, header)
			require.Equal(t, policy, again.Header().Get("Content-Security-Policy"))
			require.Equal(t, code == http.StatusNotModified, again.Body.Len() == 0)
		}
	}
	require.NotEqual(t, plain.Header().Get("ETag"), ask(h, http.MethodGet, "/ui/app.css").Header().Get("ETag"))
}

func TestPages_areTheDocument(t *testing.T) {
	t.Parallel()
	h := router(t)
	document := ask(h, http.MethodGet, "/ui/").Body.String()
	for _, path := range []string{"/ui/me", "/ui/orgs/0b1c/workspaces/2d3e/members", "/ui/orgs/", "/ui/%3Cb%3E", "/ui/a%2Fb"} {
		w := ask(h, http.MethodGet, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Equal(t, document, w.Body.String(), path)
	}
	for _, path := range []string{"/ui/nothing.js", "/ui/lib/", "/ui/lib"} {
		w := ask(h, http.MethodGet, path)
		require.Equal(t, strings.HasSuffix(path, ".js"), w.Code == http.StatusNotFound, path)
	}
}

func TestPaths_doNotLeaveTheFiles(t *testing.T) {
	t.Parallel()
	h := router(t)
	for _, path := range []string{
		"/ui/../portal.go", "/ui/%2e%2e/portal.go", "/ui/..%2fportal.go", "/ui/lib/../../portal.go", "/ui/..", "/ui/static/index.html",
		"/ui//etc/hosts.txt", "/ui/%00.js", `/ui/..%5cportal.go`, "/ui/portal.go",
	} {
		w := ask(h, http.MethodGet, path)
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.NotContains(t, w.Body.String(), "package portal", path)
	}
	require.Equal(t, http.StatusMethodNotAllowed, ask(h, http.MethodPost, "/ui/").Code)
}

func TestRoot_leadsBrowsersToThePortal(t *testing.T) {
	t.Parallel()
	h := router(t)
	for path, accepted := range map[string]string{"/": "text/html,application/xhtml+xml,*/*;q=0.8", "/ui": ""} {
		w := ask(h, http.MethodGet, path, "Accept", accepted)
		require.Equal(t, http.StatusSeeOther, w.Code)
		require.Equal(t, "/ui/", w.Header().Get("Location"))
	}
	for _, accepted := range []string{"", "application/json", "*/*"} {
		require.Equal(t, http.StatusNotFound, ask(h, http.MethodGet, "/", "Accept", accepted).Code, accepted)
	}
}

// What the browser loads in all.
const maxZipped = 150 << 10

func TestFiles_areSmall(t *testing.T) {
	t.Parallel()
	h := router(t)
	all := 0
	for _, name := range names(t) {
		all += ask(h, http.MethodGet, "/ui/"+name, "Accept-Encoding", "gzip").Body.Len()
		raw, err := os.ReadFile("static/" + name)
		require.NoError(t, err)
		require.LessOrEqual(t, bytes.Count(raw, []byte("\n")), 300, name)
	}
	require.LessOrEqual(t, all, maxZipped)
}

// The Content-Security-Policy refuses what this finds, in the browser of a person.
func TestFiles_haveNothingThatThePolicyRefuses(t *testing.T) {
	t.Parallel()
	refused := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createPolicy|https?://[^w]|style="| on[a-z]+="|<style|<script>`)
	for _, name := range names(t) {
		raw, err := os.ReadFile("static/" + name)
		require.NoError(t, err)
		require.Empty(t, refused.FindAllString(string(raw), -1), name)
	}
	require.Regexp(t, refused, `<p onclick="x">`, "the positive control")
}

// A module that imports a file that is not there fails in the browser only.
func TestModules_importFilesThatExist(t *testing.T) {
	t.Parallel()
	imported := regexp.MustCompile(`(?:from|import) ?\(?'(\.[^']+)'`)
	exists := map[string]bool{}
	for _, name := range names(t) {
		exists[name] = true
	}
	found := 0
	for name := range exists {
		raw, err := os.ReadFile("static/" + name)
		require.NoError(t, err)
		if !strings.HasSuffix(name, ".js") {
			continue
		}
		for _, match := range imported.FindAllStringSubmatch(strings.ReplaceAll(string(raw), "import('../app.js')", ""), -1) {
			target := match[1]
			dir := name[:strings.LastIndexByte(name, '/')+1]
			if rest, up := strings.CutPrefix(target, "../"); up {
				target = rest
			} else {
				target = dir + strings.TrimPrefix(target, "./")
			}
			require.True(t, exists[target], "%s imports %s", name, match[1])
			found++
		}
	}
	require.NotZero(t, found)
}
