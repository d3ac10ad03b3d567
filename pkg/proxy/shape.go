package proxy

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// prefix precedes the cluster in the path of every proxied request.
const prefix = "/clusters/"

// clusterKey is the context key of the cluster that a request names: an ID or a path,
// not yet resolved.
type clusterKey struct{}

// The headers that keep browsers from showing an answer as a page.
const (
	securityPolicy     = "Content-Security-Policy"
	contentTypeOptions = "X-Content-Type-Options"
)

// Shape refuses every request that does not name a cluster and then a path of the
// Kubernetes API. It puts the RequestInfo of that path into the context. It runs before
// authentication, so that a malformed path costs no token review. The gate decides about
// the cluster itself.
func Shape(tree tenancy.Tree) func(http.Handler) http.Handler {
	// kcp's own factory has the same two prefixes.
	factory := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return func(next http.Handler) http.Handler {
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			// A browser must not show an object of a tenant as a page of this origin, because
			// the origin's cookie is a credential under /api.
			w.Header().Set(securityPolicy, "sandbox; default-src 'none'")
			w.Header().Set(contentTypeOptions, "nosniff")
			if !forwardable(r.Method) {
				w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE")
				return errs.New(errs.MethodNotAllowed, "this method is not served here; those of the Kubernetes API are GET, HEAD, POST, PUT, PATCH and DELETE")
			}
			cluster, info, err := parse(r, tree, factory)
			if err != nil {
				return err
			}
			ctx := request.WithRequestInfo(context.WithValue(r.Context(), clusterKey{}, cluster), info)
			next.ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
	}
}

// ClusterOf returns the cluster that a request names: an ID or a path, not yet resolved. It is empty before
// Shape.
func ClusterOf(r *http.Request) string {
	cluster, _ := r.Context().Value(clusterKey{}).(string)
	return cluster
}

// NotHere answers API paths that name no cluster.
func NotHere(w http.ResponseWriter, r *http.Request) {
	httpapi.WriteError(w, r, errs.New(errs.NotFound,
		"the Kubernetes API is served per workspace: use the url of a workspace, {hub}/clusters/{id}, or fetch its kubeconfig from /api/orgs/{org}/workspaces/{ws}/kubeconfig"))
}

func forwardable(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// parse reads the URL of a request. It refuses a URL that could be read in two ways;
// it never cleans one.
func parse(r *http.Request, tree tenancy.Tree, factory request.RequestInfoResolver) (cluster string, info *request.RequestInfo, err error) {
	path, ok := wirePath(r.URL)
	if !ok {
		return "", nil, malformed()
	}
	after, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return "", nil, malformed()
	}
	cluster, _, _ = strings.Cut(after, "/")
	if !named(cluster, tree) {
		return "", nil, errs.New(errs.NotFound, "after /clusters/ comes the ID or the full path of one workspace, in lower case and unescaped")
	}
	rest, err := decode(after[len(cluster):])
	if err != nil {
		return "", nil, err
	}
	if !plainQuery(r.URL.RawQuery) {
		return "", nil, errs.New(errs.Invalid, "the query has characters in it that must be percent-encoded")
	}
	info, err = factory.NewRequestInfo(&http.Request{Method: r.Method, URL: &url.URL{Path: rest, RawQuery: r.URL.RawQuery}})
	if err != nil {
		return "", nil, errs.New(errs.NotFound, "the path names no resource of the Kubernetes API")
	}
	return cluster, info, nil
}

// wirePath returns the path as the client sent it. URL.EscapedPath does not: it
// encodes an unusual RawPath anew, and %2F becomes a separator.
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

// named reports whether s has the form of a cluster's name: an ID, or the path of a child
// Workspace of the hub.
func named(s string, tree tenancy.Tree) bool {
	_, _, workspace := tree.ParseWorkspacePath(s)
	return workspace || tenancy.IsClusterID(s)
}

// decode decodes and checks the part of a path that follows the cluster: empty, or
// "/" and then a path of the API.
func decode(rest string) (string, error) {
	if rest == "" || rest == "/" {
		return "/", nil
	}
	if !servable(rest) {
		return "", errs.New(errs.NotFound, "this path is not served for a workspace; those of the Kubernetes API are: /api, /apis, /openapi, /version")
	}
	if hasEncodedSeparator(rest) || strings.IndexByte(rest, '#') >= 0 {
		return "", malformed()
	}
	decoded, err := url.PathUnescape(rest)
	if err != nil || !utf8.ValidString(decoded) || strings.IndexFunc(decoded, neverInPath) >= 0 {
		return "", malformed()
	}
	// Clients that are generated from OpenAPI send one "/" at the end.
	for segment := range strings.SplitSeq(strings.TrimSuffix(decoded[1:], "/"), "/") {
		if segment == "" || segment == "." || segment == ".." {
			return "", malformed()
		}
	}
	return decoded, nil
}

// servable reports whether a path below a cluster concerns that cluster alone. It is
// an allow-list, because the other paths of kcp concern the whole process.
func servable(rest string) bool {
	first, _, _ := strings.Cut(rest[1:], "/")
	switch first {
	case "api", "apis", "openapi", "version", "healthz", "livez", "readyz":
		return true
	}
	return false
}

// hasEncodedSeparator reports whether s has a percent-encoded "/", "\", "." or "%".
// Some servers decode these before they split a path and others after it. No other
// character ends a segment or a path once it is decoded.
func hasEncodedSeparator(s string) bool {
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
		case "2F", "2f", "2E", "2e", "25", "5C", "5c":
			return true
		}
	}
}

// neverInPath reports whether c is in no path, decoded or not.
func neverInPath(c rune) bool { return !unicode.IsPrint(c) || c == '\\' }

// plainQuery reports whether a query can stand in a request line unchanged.
func plainQuery(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '#' {
			return false
		}
	}
	return true
}

func malformed() error {
	return errs.New(errs.NotFound, "the path is malformed: it has an empty or a dot segment, or an encoded character that no object of the Kubernetes API has in its name")
}
