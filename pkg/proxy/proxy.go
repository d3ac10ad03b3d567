package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// retryAfter is what a client is told to wait when kcp does not answer.
const retryAfter = 2 * time.Second

// Config is what a Proxy works with.
type Config struct {
	// Upstream is kcp's base URL.
	Upstream *url.URL
	// Transport goes to kcp. It verifies kcp's certificate, holds no credential of
	// the hub, and speaks HTTP/1.1, because an upgrade needs a connection of its
	// own.
	Transport http.RoundTripper
	// Enter is tenancy.Gate's.
	Enter func(user, cluster string) (tenancy.Workspace, v1alpha1.Role, error)
	// User is the metadata.name of the authenticated caller.
	User func(*http.Request) string
	// Token is the one bearer token of a request, which was authenticated.
	Token func(*http.Request) (string, error)
	// Draining ends when the hub is about to stop: streams, which end by nothing
	// else, end with it.
	Draining context.Context //nolint:containedctx // a signal, not the context of a request
	Metrics  prometheus.Registerer
}

// Proxy forwards what the gate lets through.
type Proxy struct {
	config  Config
	forward *httputil.ReverseProxy
	streams prometheus.Gauge
}

// New returns a proxy. It stands behind Shape and httpmw.Authenticate.
func New(c Config) (*Proxy, error) {
	p := &Proxy{config: c, streams: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kedge_proxy_streams", Help: "Watches and upgraded connections that are open through the proxy.",
	})}
	if err := c.Metrics.Register(p.streams); err != nil {
		return nil, fmt.Errorf("register proxy metrics: %w", err)
	}
	p.forward = &httputil.ReverseProxy{
		Transport: c.Transport,
		Rewrite:   p.rewrite,
		// A watch is only worth something if every event leaves at once.
		FlushInterval:  -1,
		BufferPool:     &buffers{},
		ErrorHandler:   upstreamFailed,
		ModifyResponse: func(r *http.Response) error { r.Header.Del("Set-Cookie"); return nil },
	}
	return p, nil
}

type forwardKey struct{}

// ServeHTTP gates and forwards a request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := p.serve(w, r); err != nil {
		httpapi.WriteError(w, r, err)
	}
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) error {
	t, ok := r.Context().Value(targetKey{}).(target)
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
	ws, _, err := p.config.Enter(p.config.User(r), t.cluster)
	if err != nil {
		return err
	}
	// kcp is asked for the cluster that was gated, by ID: a path could come to
	// mean another one in between.
	ctx := context.WithValue(r.Context(), forwardKey{}, p.config.Upstream.Path+prefix+ws.ClusterID+t.rest)
	if streaming(r) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.config.Draining, cancel)()
		p.streams.Inc()
		defer p.streams.Dec()
		// A stream lives as long as the right to it, not as long as the server's
		// time-outs for ordinary requests.
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{})
		_ = control.SetWriteDeadline(time.Time{})
	}
	p.forward.ServeHTTP(w, r.WithContext(ctx))
	return nil
}

func streaming(r *http.Request) bool {
	if upgrade(r.Header) != "" {
		return true
	}
	q := r.URL.Query()
	return q.Get("watch") == "true" || q.Get("watch") == "1" || q.Get("follow") == "true"
}

func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	path := r.In.Context().Value(forwardKey{}).(string)
	// The path is serialised anew from its decoded form; the query goes on as it
	// came.
	r.Out.URL = &url.URL{Scheme: p.config.Upstream.Scheme, Host: p.config.Upstream.Host, Path: path, RawQuery: r.In.URL.RawQuery}
	r.Out.Host = p.config.Upstream.Host
	r.Out.Header = outbound(r.In.Header)
}

func upstreamFailed(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		// The client went away; nobody reads an answer.
		panic(http.ErrAbortHandler)
	}
	e := errs.Wrap(errs.BadGateway, err, "kcp does not answer at the moment; try again")
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout() {
		e = errs.Wrap(errs.Timeout, err, "kcp takes too long to answer; try again")
	}
	e.RetryAfter = retryAfter
	httpapi.WriteError(w, r, e)
}

// buffers are for copying bodies.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

func (b *buffers) Get() []byte {
	if held, ok := b.pool.Get().(*[]byte); ok {
		return *held
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(buffer []byte) { b.pool.Put(&buffer) }
