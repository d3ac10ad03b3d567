package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"path"
	"strings"
)

// returned reports whether a header of kcp's answer goes on to the client. It is an allow-list of
// what clients of the Kubernetes API read: bound APIs can come from servers of providers, and no
// header of theirs may speak for the hub's origin. Location has a rule of its own, and the hub sets
// X-Content-Type-Options, Content-Security-Policy and X-Request-Id.
func returned(name string, upgraded bool) bool {
	switch name {
	case "Content-Type", "Content-Length", "Content-Encoding", "Content-Disposition", "Content-Range", "Accept-Ranges",
		"Cache-Control", "Date", "Etag", "Expires", "Last-Modified", "Vary",
		"Allow", "Retry-After", "Warning", "Audit-Id", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid",
		// kcp answers a refused negotiation of streams with the protocols that it has.
		"X-Accepted-Stream-Protocol-Versions":
		return true
	case "Connection", "Upgrade", "X-Stream-Protocol-Version", "Sec-Websocket-Accept", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions":
		return upgraded
	}
	return false
}

// cleanAnswer removes the headers that are not returned, and the trailers, of which the Kubernetes
// API has none. cluster is the ID that was gated.
func cleanAnswer(r *http.Response, cluster string) {
	upgraded, location := r.StatusCode == http.StatusSwitchingProtocols, within(r.Header["Location"], cluster)
	for name := range r.Header {
		if !returned(name, upgraded) {
			delete(r.Header, name)
		}
	}
	if location != "" {
		r.Header.Set("Location", location)
	}
	r.Trailer = nil
	if r.ContentLength < 0 && !upgraded {
		r.Body = &withoutTrailers{r.Body, r}
	}
}

// within returns the target of a redirection as a path in the logical cluster that was gated, or
// nothing if it is elsewhere. Handlers of kcp do not see the cluster in the path of a request, and
// redirect to "/openapi/v3/…".
func within(locations []string, cluster string) string {
	if len(locations) != 1 || strings.ContainsRune(locations[0], '\\') {
		return ""
	}
	u, err := url.Parse(locations[0])
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.RawPath != "" || !path.IsAbs(u.Path) || path.Clean(u.Path) != u.Path {
		return ""
	}
	switch {
	case strings.HasPrefix(u.Path, prefix+cluster+"/"):
		return u.String()
	case strings.HasPrefix(u.Path+"/", prefix):
		return ""
	}
	u.Path = prefix + cluster + u.Path
	return u.String()
}

// withoutTrailers is the body of an answer in chunks. The transport adds the trailers to the answer
// when it reads the last chunk.
type withoutTrailers struct {
	io.ReadCloser
	of *http.Response
}

func (b *withoutTrailers) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.of.Trailer = nil
	}
	return n, err
}

func (b *withoutTrailers) Close() error {
	err := b.ReadCloser.Close()
	b.of.Trailer = nil
	return err
}

// finalOnly is a transport that reports no informational (1xx) answers. httputil.ReverseProxy
// would pass them on with all their headers, and remove those that the hub has set.
type finalOnly struct{ http.RoundTripper }

func (t finalOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.RoundTripper.RoundTrip(r.WithContext(untraced{r.Context()}))
}

// untraced is a context without the trace by which httputil.ReverseProxy learns of them.
type untraced struct{ context.Context } //nolint:containedctx // it is a context

func (c untraced) Value(key any) any {
	v := c.Context.Value(key)
	if _, ok := v.(*httptrace.ClientTrace); ok {
		return nil
	}
	return v
}
