package portal

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// prefix is the path below which the portal is.
const prefix = "/ui/"

// document is the file that answers the path of every page.
const document = "index.html"

// contentSecurityPolicy is the policy of all answers.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"

//go:embed static
var embedded embed.FS

// file is a static file as it is served.
type file struct {
	plain, zipped []byte
	etag, kind    string
}

// Handler serves the portal.
type Handler struct {
	files     map[string]file
	ca        func() []byte
	downloads *downloads
}

// New returns a Handler with the embedded files.
func New(o Options) (*Handler, error) {
	h := &Handler{files: map[string]file{}, ca: o.CA}
	err := fs.WalkDir(embedded, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		plain, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		kind, err := typeOf(name)
		if err != nil {
			return err
		}
		zipped, err := zip(plain)
		if err != nil {
			return err
		}
		hash := sha256.Sum256(plain)
		h.files[strings.TrimPrefix(name, "static/")] = file{
			plain: plain, zipped: zipped, kind: kind, etag: base64.RawURLEncoding.EncodeToString(hash[:16]),
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("portal: %w", err)
	}
	if h.downloads, err = newDownloads(o); err != nil {
		return nil, fmt.Errorf("--downloads-dir: %w", err)
	}
	return h, nil
}

// typeOf is the media type of a file. It does not depend on the tables of the machine.
func typeOf(name string) (string, error) {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8", nil
	case ".js":
		return "text/javascript; charset=utf-8", nil
	case ".css":
		return "text/css; charset=utf-8", nil
	case ".svg":
		return "image/svg+xml", nil
	}
	return "", fmt.Errorf("%s has no known media type", name)
}

func zip(plain []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Mount adds the routes at the root of the hub.
func (h *Handler) Mount(r chi.Router) {
	r.Get("/", httpapi.Handle(h.root))
	r.Get("/ui", httpapi.Handle(h.root))
	r.Get(caPath, httpapi.Handle(h.serveCA))
	r.Get(downloadsPath+"*", httpapi.Handle(h.serveDownload))
	r.Get(prefix+"*", httpapi.Handle(h.serve))
}

// root leads browsers to the portal. Other clients get the answer of a path that is nothing.
func (h *Handler) root(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Vary", "Accept")
	if r.URL.Path == "/" && !strings.Contains(r.Header.Get("Accept"), "text/html") {
		httpapi.NotFound(w, r)
		return nil
	}
	w.Header().Set("Location", prefix)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// serve answers with a file, or with the document if the path is that of a page. The path of a
// page has no dot: what looks like a file and is none must not be a document.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	name := strings.TrimPrefix(r.URL.Path, prefix)
	f, ok := h.files[name]
	if !ok {
		if strings.Contains(name, ".") {
			httpapi.NotFound(w, r)
			return nil
		}
		f = h.files[document]
	}
	header := w.Header()
	secure(header)
	header.Set("Vary", "Accept-Encoding")
	body, etag := f.plain, f.etag
	zipped := acceptsGzip(r.Header.Get("Accept-Encoding"))
	if zipped {
		body, etag = f.zipped, f.etag+"-gzip"
	}
	header.Set("ETag", `"`+etag+`"`)
	if matches(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if zipped {
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Type", f.kind)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
	return nil
}

// secure sets the headers of all answers.
func secure(header http.Header) {
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("Strict-Transport-Security", "max-age=31536000")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache")
}

// acceptsGzip reports whether an Accept-Encoding names gzip without refusing it.
func acceptsGzip(accepted string) bool {
	for part := range strings.SplitSeq(accepted, ",") {
		coding, weight, weighed := strings.Cut(strings.ReplaceAll(part, " ", ""), ";q=")
		if strings.EqualFold(coding, "gzip") {
			return !weighed || strings.Trim(weight, "0.") != ""
		}
	}
	return false
}

// matches reports whether an If-None-Match has an ETag.
func matches(header, etag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		if strings.Trim(strings.TrimPrefix(strings.TrimSpace(part), "W/"), `"`) == etag {
			return true
		}
	}
	return false
}
