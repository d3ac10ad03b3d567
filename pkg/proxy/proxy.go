package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Config is what a Proxy works with.
type Config struct {
	// Upstream is kcp's base URL, https; "/clusters" comes behind its path.
	Upstream *url.URL
	// Transport goes to kcp. It verifies kcp's certificate, holds no credential of
	// the hub, and speaks HTTP/1.1, because an upgrade needs a connection of its
	// own. It has a time-out for the header of an answer, and leaves compression
	// to the client.
	Transport http.RoundTripper
	// Enter is tenancy.Gate's. It is asked again about streams that are open.
	Enter func(user, cluster string) (tenancy.Entry, error)
	// User is the metadata.name of the authenticated caller.
	User func(*http.Request) string
	// Identity is the caller's username in kcp, the one that they may impersonate
	// for sudo. Without Identity and Elevated there is no sudo.
	Identity func(*http.Request) string
	// Elevated is told of every request that goes on with sudo, before it does.
	Elevated func(r *http.Request, user string, e tenancy.Entry)
	// Wrote is called for every write in a Workspace that kcp has done or may have
	// done, before the client learns of it. It must not block. It may be nil.
	Wrote func(tenancy.Entry, tenancy.ObjectWrite)
	// Token is the one bearer token of a request, which was authenticated. It
	// refuses a request with any other number of Authorization headers than one.
	Token func(*http.Request) (string, error)
	// Draining ends when the hub is about to stop: streams, which end by nothing
	// else, end with it. Its logger gets what the libraries have to say.
	Draining context.Context //nolint:containedctx // a signal, not the context of a request
	// Parting is how long the client of what was cut has to take what is on its way
	// to it already; half a second where it is zero.
	Parting time.Duration
	Metrics prometheus.Registerer
}

// Proxy forwards what the gate lets through.
type Proxy struct {
	config  Config
	forward *httputil.ReverseProxy
	streams *streams
}

// New returns a proxy. It stands behind Shape and httpmw.Authenticate.
func New(c Config) (*Proxy, error) {
	if c.Upstream.Scheme != "https" || c.Upstream.Host == "" {
		return nil, errors.New("kcp's URL must be an https URL: credentials go there")
	}
	c.Parting = cmp.Or(c.Parting, 500*time.Millisecond)
	open, err := newStreams(c.Metrics)
	if err != nil {
		return nil, err
	}
	p := &Proxy{config: c, streams: open}
	logger, err := zap.NewStdLogAt(log.From(c.Draining), zap.DebugLevel)
	if err != nil {
		return nil, fmt.Errorf("make the log of the proxy: %w", err)
	}
	p.forward = &httputil.ReverseProxy{
		Transport: c.Transport,
		Rewrite:   p.rewrite,
		// A watch is only worth something if every event leaves at once.
		FlushInterval:  -1,
		BufferPool:     &buffers{},
		ErrorHandler:   upstreamFailed,
		ErrorLog:       logger,
		ModifyResponse: cleanResponse,
	}
	context.AfterFunc(c.Draining, p.streams.close)
	return p, nil
}

// ServeHTTP gates and forwards a request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	httpapi.Handler(p.serve).ServeHTTP(w, r)
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) error {
	cluster, _ := r.Context().Value(clusterKey{}).(string)
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok {
		panic("proxy: route without Shape")
	}
	token, err := p.config.Token(r)
	if err != nil {
		return err
	}
	if err := checkHeaders(r.Header, token); err != nil {
		return err
	}
	user, looks := p.config.User(r), p.streams.looks.Load()
	entry, err := p.config.Enter(user, cluster)
	if err != nil {
		return err
	}
	sudo, err := p.elevate(r, entry)
	if err != nil {
		return err
	}
	if writes(r.Method) && guarded(info) && !entry.Workspace.PolicyEnforced() {
		return notEnforced()
	}
	opened := entry
	opened.Sudo = sudo != nil
	ctx, cancel := context.WithCancel(r.Context())
	e := &exchange{
		// kcp is asked for the cluster that was gated, by ID: a path could come to
		// mean another one in between.
		path:      strings.TrimSuffix(p.config.Upstream.Path, "/") + prefix + entry.Workspace.ClusterID + info.Path,
		requestID: w.Header().Get("X-Request-Id"),
		elevation: sudo,
		stream: stream{
			at: place{user, entry.Workspace.ClusterID}, endless: streaming(r, info),
			opened: opened, cancel: cancel, client: w, parting: p.config.Parting,
		},
		wrote: p.reportWrite(r.Method, entry, info),
	}
	s := &e.stream
	if r.ContentLength == 0 {
		s.over.Store(sent)
	}
	if err := p.streams.add(s); err != nil {
		cancel()
		return err
	}
	defer p.streams.remove(s)
	defer s.finish()
	if p.streams.looks.Load() != looks {
		// A right that ended before the stream was known to Recheck is found here.
		p.recheck(s.at, time.Time{}, s)
		if err := s.refusal(w, r); err != nil {
			return err
		}
	}
	if s.endless {
		// A stream lives as long as the right to it, not as long as the server's
		// time-outs for ordinary requests.
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{})
		_ = control.SetWriteDeadline(time.Time{})
	}
	if sudo != nil {
		p.config.Elevated(r, user, entry)
	}
	r = r.WithContext(context.WithValue(ctx, exchangeKey{}, e))
	if r.ContentLength != 0 {
		e.body.ReadCloser, e.body.stream = r.Body, s
		r.Body = &e.body
	}
	p.forward.ServeHTTP(w, r)
	return nil
}

// rewrite makes the request that goes to kcp out of what was gated.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	e := exchangeOf(r.In.Context())
	// The path is serialised anew from its decoded form; the query goes on as it
	// came.
	r.Out.URL = &url.URL{Scheme: p.config.Upstream.Scheme, Host: p.config.Upstream.Host, Path: e.path, RawQuery: r.In.URL.RawQuery}
	r.Out.Host = p.config.Upstream.Host
	r.Out.Trailer = nil
	clean(r.Out.Header, r.In.Header["Authorization"], e.requestID)
	e.elevation.write(r.Out.Header)
}

// cleanResponse takes out what would speak for the hub, and lets the rest through
// as long as its stream lives.
func cleanResponse(r *http.Response) error {
	for _, name := range [...]string{"Set-Cookie", "Alt-Svc", "X-Request-Id"} {
		r.Header.Del(name)
	}
	e := exchangeOf(r.Request.Context())
	e.answered(r.StatusCode)
	return e.stream.guard(r)
}

// buffers are for copying bodies.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

func (b *buffers) Get() []byte {
	if held, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return held[:]
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(buffer []byte) { b.pool.Put((*[bufferSize]byte)(buffer)) }
