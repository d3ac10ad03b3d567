package proxy

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
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
// meaning is not worth looking a token up for.
func Shape(next http.Handler) http.Handler {
	return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method == http.MethodConnect || r.Method == http.MethodTrace || r.URL.Opaque != "" {
			return errs.New(errs.MethodNotAllowed, "this method is not served here")
		}
		t, err := parse(r.URL.EscapedPath())
		if err != nil {
			return err
		}
		if strings.ContainsAny(r.URL.RawQuery, "\x00\r\n") {
			return errs.New(errs.Invalid, "the query is malformed")
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

// parse takes an escaped path apart. Whatever could be read in two ways is
// refused rather than cleaned.
func parse(escaped string) (target, error) {
	after, ok := strings.CutPrefix(escaped, prefix)
	if !ok {
		return target{}, noSuchPath()
	}
	cluster, rest, _ := strings.Cut(after, "/")
	if cluster == "" || !plainCluster(cluster) {
		return target{}, errs.New(errs.NotFound, "after /clusters/ comes the ID or the full path of one workspace, in lower case and unescaped")
	}
	t := target{cluster: cluster, rest: "/"}
	if rest == "" {
		return t, nil
	}
	segments := strings.Split(rest, "/")
	// One "/" at the end is what discovery clients send.
	if last := len(segments) - 1; last > 0 && segments[last] == "" {
		segments = segments[:last]
	}
	var b strings.Builder
	for _, segment := range segments {
		decoded, err := decode(segment)
		if err != nil {
			return target{}, err
		}
		b.WriteByte('/')
		b.WriteString(decoded)
	}
	t.rest = b.String()
	if !servable(segments) {
		return target{}, errs.New(errs.NotFound, "this path is not served for a workspace; those of the Kubernetes API are: /api, /apis, /openapi, /version")
	}
	if strings.HasSuffix(rest, "/") {
		t.rest += "/"
	}
	return t, nil
}

// plainCluster lets through what an ID or a path of workspaces is made of.
func plainCluster(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == ':':
		default:
			return false
		}
	}
	return !strings.HasPrefix(s, "system:")
}

// decode decodes one segment. An encoded separator, dot or percent sign, and
// what is not printable ASCII, is in no name of the Kubernetes API.
func decode(segment string) (string, error) {
	if i := strings.IndexByte(segment, '%'); i >= 0 {
		upper := strings.ToUpper(segment)
		for _, encoded := range []string{"%2F", "%3A", "%2E", "%25", "%5C"} {
			if strings.Contains(upper, encoded) {
				return "", noSuchPath()
			}
		}
	}
	decoded, err := url.PathUnescape(segment)
	if err != nil || decoded == "" || decoded == "." || decoded == ".." {
		return "", noSuchPath()
	}
	for i := range len(decoded) {
		if c := decoded[i]; c < 0x21 || c > 0x7e || c == '\\' || c == '/' || c == '?' || c == '#' {
			return "", noSuchPath()
		}
	}
	return decoded, nil
}

// servable tells whether what follows the cluster is a tenant's business. The
// list says what is, because what is not reaches the whole kcp process.
func servable(segments []string) bool {
	switch segments[0] {
	case "api", "apis", "openapi", "version":
		return true
	case "healthz", "livez", "readyz":
		return len(segments) == 1
	}
	return false
}

func noSuchPath() error {
	return errs.New(errs.NotFound, "the path is malformed: it has an empty, a dot or an escaped segment that no object of the Kubernetes API has")
}
