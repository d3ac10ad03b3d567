package proxy

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// prefix is where the clusters are.
const prefix = "/clusters/"

// target is what a request is for, read off its path once.
type target struct {
	// cluster is an ID or a path, not yet resolved.
	cluster string
	// rest is what follows it, decoded, beginning with "/".
	rest string
}

type targetKey struct{}

// Shape refuses every path that is not a cluster and then a path of the API that
// a tenant has business with. It comes before authentication: what has no
// meaning is not worth looking a token up for. Which tree the cluster is in, the
// gate decides.
func Shape(next http.Handler) http.Handler {
	return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if !served(r.Method) {
			w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE")
			return errs.New(errs.MethodNotAllowed, "this method is not served here; those of the Kubernetes API are GET, HEAD, POST, PUT, PATCH and DELETE")
		}
		t, err := parse(r.URL)
		if err != nil {
			return err
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), targetKey{}, t)))
		return nil
	})
}

// NotHere answers for API paths without a cluster before them.
func NotHere(w http.ResponseWriter, r *http.Request) {
	httpapi.WriteError(w, r, errs.New(errs.NotFound,
		"the Kubernetes API is served per workspace: use the url of a workspace, {hub}/clusters/{id}, or fetch its kubeconfig from /api/orgs/{org}/workspaces/{ws}/kubeconfig"))
}

func served(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// parse takes a URL apart. Whatever could be read in two ways is refused rather
// than cleaned.
func parse(u *url.URL) (target, error) {
	path, ok := wirePath(u)
	if !ok {
		return target{}, malformed()
	}
	after, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return target{}, malformed()
	}
	cluster, _, _ := strings.Cut(after, "/")
	if !named(cluster) {
		return target{}, errs.New(errs.NotFound, "after /clusters/ comes the ID or the full path of one workspace, in lower case and unescaped")
	}
	rest, err := decode(after[len(cluster):])
	if err != nil {
		return target{}, err
	}
	if !plainQuery(u.RawQuery) {
		return target{}, errs.New(errs.Invalid, "the query has characters in it that must be percent-encoded")
	}
	return target{cluster: cluster, rest: rest}, nil
}

// wirePath is the path as it was sent. URL.EscapedPath is not: it mends an
// encoding that is not the usual one, and turns %2F into a separator with it.
func wirePath(u *url.URL) (string, bool) {
	if u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.User != nil {
		return "", false
	}
	if u.RawPath == "" {
		return u.EscapedPath(), true
	}
	decoded, err := url.PathUnescape(u.RawPath)
	return u.RawPath, err == nil && decoded == u.Path
}

// named tells whether s looks like the name of a cluster: an ID, or a path from
// root on, in which an Org and a Workspace are UUIDs and nothing is below them.
func named(s string) bool {
	if tenancy.IsClusterID(s) {
		return true
	}
	if !strings.HasPrefix(s, "root:") {
		return false
	}
	for label := range strings.SplitSeq(s, ":") {
		if label == "" || strings.IndexFunc(label, notOfLabel) >= 0 {
			return false
		}
	}
	i := strings.LastIndex(s, ":orgs:")
	if i < 0 {
		return true
	}
	org, workspace, deeper := strings.Cut(s[i+len(":orgs:"):], ":")
	return !tenancy.IsUUID(org) || !deeper || tenancy.IsUUID(workspace)
}

func notOfLabel(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
}

// decode decodes and checks what follows the cluster: "" or "/" and then a path
// of the API.
func decode(rest string) (string, error) {
	if rest == "" || rest == "/" {
		return "/", nil
	}
	if !servable(rest) {
		return "", errs.New(errs.NotFound, "this path is not served for a workspace; those of the Kubernetes API are: /api, /apis, /openapi, /version")
	}
	if encodedSeparator(rest) {
		return "", malformed()
	}
	decoded, err := url.PathUnescape(rest)
	if err != nil || !utf8.ValidString(decoded) || strings.IndexFunc(decoded, notOfPath) >= 0 {
		return "", malformed()
	}
	// One "/" at the end is what clients send that were generated from OpenAPI.
	for segment := range strings.SplitSeq(strings.TrimSuffix(decoded[1:], "/"), "/") {
		if segment == "" || segment == "." || segment == ".." {
			return "", malformed()
		}
	}
	return decoded, nil
}

// servable tells whether what follows the cluster is a tenant's business. The
// list says what is, because what is not reaches the whole kcp process.
func servable(rest string) bool {
	first, _, _ := strings.Cut(rest[1:], "/")
	switch first {
	case "api", "apis", "openapi", "version", "healthz", "livez", "readyz":
		return true
	}
	return false
}

// encodedSeparator finds what is in no name of the Kubernetes API, or is never
// encoded there: / : . % and \, percent-encoded.
func encodedSeparator(s string) bool {
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			return false
		}
		s = s[i+1:]
		if len(s) < 2 {
			return true
		}
		switch s[:2] {
		case "2F", "2f", "3A", "3a", "2E", "2e", "25", "5C", "5c":
			return true
		}
	}
}

func notOfPath(c rune) bool {
	return !unicode.IsPrint(c) || c == '\\' || c == '?' || c == '#'
}

// plainQuery tells whether a query can stand in a request line as it is, and
// means the same to everybody who parses the URL again.
func plainQuery(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '#' {
			return false
		}
	}
	return true
}

func malformed() error {
	return errs.New(errs.NotFound, "the path is malformed: it has an empty, a dot or an escaped segment that no object of the Kubernetes API has")
}
