package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/tracing"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

// Caller is the authenticated caller of a request.
type Caller interface {
	// Key is the key of the caller's rights and streams: the metadata.name of a User, or a
	// name that no User can have.
	Key() string
	// Username is the caller's username in kcp, which they may impersonate for sudo.
	Username() string
	// EndsAt is when the credential ends by time, as far as it is known at the moment. It is
	// zero if it does not.
	EndsAt() time.Time
	// Valid returns an error if the credential is no longer valid. It is called again for
	// open streams.
	Valid() error
}

// Config is the configuration of a Proxy.
type Config struct {
	// Upstream is the https URL of kcp, without /clusters.
	Upstream *url.URL
	// Transport sends requests to kcp. It verifies kcp's certificate and has no credential
	// of the hub. It speaks HTTP/1.1, because an upgrade needs a connection of its own. It
	// limits the time until the header of an answer, and does not compress.
	Transport http.RoundTripper
	// Enter is the method of tenancy.Gate, by Caller.Key. It is called again for open
	// streams.
	Enter func(caller, cluster string) (tenancy.Entry, error)
	// Payer returns who answers for what an Organization takes of that which all share: its creator, so that nobody gets
	// more by further Organizations. The default is the Organization itself.
	Payer func(org string) string
	// Guards reports whether the admission policy of Workspaces is about a resource. It is
	// tenancy.Policy's.
	Guards func(group, resource string) bool
	// Caller returns the authenticated caller of a request.
	Caller func(*http.Request) Caller
	// Intend is called for every request before kcp gets it; sudo says whether the request uses
	// sudo. Its error refuses the request. Without it there is no sudo.
	Intend func(r *http.Request, e tenancy.Entry, sudo bool) error
	// Storage has how full the store is. Without it everything is written.
	Storage Storage
	// Stores reports whether a request may store anything, and Grow counts what it may add to a
	// Workspace; its error refuses growth, or has an Update weighed. settle says what became of the
	// request. They are not nil with Storage.
	Stores func(*http.Request) bool
	Grow   func(context.Context, tenancy.Entry, Growth) (settle func(Outcome), err error)
	// Wrote is called for every write in a Workspace that kcp has done or may have
	// done, before the client learns of it. It must not block. It may be nil.
	Wrote func(tenancy.Entry, tenancy.ObjectWrite)
	// Made is called with the name of an object that kcp has created, as its answer says it, if the
	// request did not say it in its path. It may be nil.
	Made func(r *http.Request, name string)
	// Token returns the bearer token that was authenticated. It refuses a request without
	// exactly one Authorization header.
	Token func(*http.Request) (string, error)
	// Draining ends when the hub begins to stop. Long-running streams end with it. Its
	// logger gets the messages of the libraries.
	Draining context.Context //nolint:containedctx // a signal, not the context of a request
	// Clock has the timers that end streams when the credential ends. The default is the
	// real clock.
	Clock clock.WithDelayedExecution
	// FlushTimeout limits the time that a client has to read what was sent before its
	// stream was terminated. The default is half a second.
	FlushTimeout time.Duration
	// Streams are the limits of long-running streams.
	Streams StreamLimits
	// Load are the limits of the other requests.
	Load LoadLimits
	// Usage counts requests and what they answer. It may be nil.
	Usage   *usage.Counter
	Metrics prometheus.Registerer
}

// Proxy forwards the requests that the gate admits.
type Proxy struct {
	config  Config
	forward *httputil.ReverseProxy
	streams *streams
	load    *load
	cuts    cuts
	// converting is locked while a body is converted from YAML, which takes much memory.
	converting sync.Mutex
}

// New returns a Proxy. It runs after Shape and httpmw.Authenticate.
func New(c Config) (*Proxy, error) {
	if c.Upstream.Scheme != "https" || c.Upstream.Host == "" {
		return nil, errors.New("kcp's URL must be an https URL: credentials go there")
	}
	c.FlushTimeout = cmp.Or(c.FlushTimeout, 500*time.Millisecond)
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Payer == nil {
		c.Payer = func(org string) string { return org }
	}
	open, err := newStreams(c.Metrics, c.Streams)
	if err != nil {
		return nil, err
	}
	admitted, err := newLoad(c.Metrics, c.Load)
	if err != nil {
		return nil, err
	}
	p := &Proxy{config: c, streams: open, load: admitted}
	logger, err := zap.NewStdLogAt(log.From(c.Draining), zap.DebugLevel)
	if err != nil {
		return nil, fmt.Errorf("make the log of the proxy: %w", err)
	}
	p.forward = &httputil.ReverseProxy{
		Transport: finalOnly{c.Transport},
		Rewrite:   p.rewrite,
		// Every event of a watch is sent at once.
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
	cluster := ClusterOf(r)
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok {
		panic("proxy: route without Shape")
	}
	token, err := p.config.Token(r)
	if err != nil {
		return err
	}
	if err := checkHeaders(r, info, token); err != nil {
		return err
	}
	caller := p.config.Caller(r)
	user := caller.Key()
	entry, rechecks, err := p.enter(caller, cluster)
	if err != nil {
		return err
	}
	var admitted admission
	longRunning, payer := streaming(r, info), p.config.Payer(entry.Workspace.OrgUUID)
	counts := !longRunning || begins(info)
	if counts {
		if admitted, err = p.load.enter(r, user, payer, entry.Workspace, info); err != nil {
			return err
		}
		defer admitted.leave()
		if admitted.waited {
			// The right may have ended meanwhile.
			if entry, rechecks, err = p.enter(caller, cluster); err != nil {
				return err
			}
		}
	}
	sudo, err := p.elevate(r, caller, entry)
	if err != nil {
		return err
	}
	if writes(r.Method) && info.IsResourceRequest && !entry.Workspace.PolicyEnforced() && p.config.Guards(info.APIGroup, info.Resource) {
		return notEnforced()
	}
	tracing.Place(r.Context(), entry.Workspace.OrgUUID, entry.Workspace.UUID, entry.Workspace.ClusterID)
	opened := entry
	opened.Sudo = sudo != nil
	ctx, cancel := lasting(r, info)
	e := &exchange{
		// kcp gets the ID that was gated: a path may come to name another cluster.
		path:      strings.TrimSuffix(p.config.Upstream.Path, "/") + prefix + entry.Workspace.ClusterID + info.Path,
		requestID: w.Header().Get("X-Request-Id"),
		elevation: sudo,
		stream: stream{
			key: streamKey{user, entry.Workspace.ClusterID}, payer: payer, longRunning: longRunning,
			caller: caller, opened: opened, cancel: cancel, client: w, flushTimeout: p.config.FlushTimeout,
		},
		wrote: p.reportWrite(r.Method, entry, info),
		made:  p.reportMade(r, info),
		leave: func() {},
	}
	s := &e.stream
	if r.ContentLength == 0 {
		s.state.Store(sent)
	}
	if err := p.streams.add(s); err != nil {
		cancel()
		return err
	}
	defer p.streams.remove(s)
	defer s.finish()
	defer p.expire(s)()
	if p.streams.rechecks.Load() != rechecks {
		// Recheck ran after the gate and did not see this stream.
		p.recheck(s.key, time.Time{}, s)
		if err := s.refusal(w, r); err != nil {
			return err
		}
	}
	s.used = p.count(s, r.Method, entry.Workspace, info)
	defer s.used.End()
	if s.longRunning {
		// The timeouts of the server are for ordinary requests.
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{})
		_ = control.SetWriteDeadline(time.Time{})
	}
	if counts {
		s.outgrown = p.load.outgrown(r.WithContext(ctx), s, entry.Workspace, info, admitted)
		defer s.outgrown.end()
		s.pace = p.load.pace(ctx, admitted)
		var leave func()
		leave, e.plain = p.load.compress(r, entry.Workspace.OrgUUID, info, admitted)
		defer leave()
	}
	switch {
	case longRunning && counts:
		s.replay = p.load.replay(s, admitted)
		defer s.replay.stop()
	case admitted.timed:
		defer limitReading(w, p.load.limits.Time)()
	}
	defer func() { e.leave() }()
	if err := p.admitContent(r, e, info); err != nil {
		// The body ends early, too, where the right to send it has ended.
		return cmp.Or(s.refusal(w, r), err)
	}
	if takesTurn(r.Method, info) {
		if err := p.load.turn(ctx, e, entry.Workspace, admitted.bytes); err != nil {
			return cmp.Or(s.refusal(w, r), err)
		}
	}
	if answered, err := p.admitSize(w, r.WithContext(ctx), e, info); answered || err != nil {
		return err
	}
	if p.config.Intend != nil {
		if err := p.config.Intend(r, entry, sudo != nil); err != nil {
			e.settled(Refused)
			return err
		}
	}
	r = r.WithContext(context.WithValue(ctx, exchangeKey{}, e))
	if e.whole != nil {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(e.whole)), int64(len(e.whole))
	}
	if r.ContentLength != 0 {
		e.body.ReadCloser, e.body.stream, e.body.missing = r.Body, s, r.ContentLength
		r.Body = &e.body
	}
	p.forward.ServeHTTP(w, r)
	return nil
}

// enter asks the gate. rechecks is the number of rechecks before that.
func (p *Proxy) enter(caller Caller, cluster string) (e tenancy.Entry, rechecks uint64, err error) {
	rechecks = p.streams.rechecks.Load()
	// The credential may have ended after it was authenticated.
	if err := caller.Valid(); err != nil {
		return e, rechecks, err
	}
	e, err = p.config.Enter(caller.Key(), cluster)
	return e, rechecks, err
}

// rewrite builds the request to kcp from the admitted one.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	e := exchangeOf(r.In.Context())
	// The path is encoded anew. The query is forwarded unchanged.
	r.Out.URL = &url.URL{Scheme: p.config.Upstream.Scheme, Host: p.config.Upstream.Host, Path: e.path, RawQuery: r.In.URL.RawQuery}
	r.Out.Host = p.config.Upstream.Host
	r.Out.Trailer = nil
	cleanHeader(r.Out.Header, r.In.Header["Authorization"], e.requestID)
	e.elevation.write(r.Out.Header)
	if e.plain {
		r.Out.Header.Del("Accept-Encoding")
	}
	if e.made != nil {
		readable(r.Out.Header)
	}
}

// cleanResponse removes the headers that may not go on to the client, and passes the body through
// the stream.
func cleanResponse(r *http.Response) error {
	if r.StatusCode == http.StatusBadGateway && r.ContentLength == 0 {
		// The front proxy of kcp has found no connection to the shard.
		_ = r.Body.Close()
		return unreachable()
	}
	e := exchangeOf(r.Request.Context())
	cleanAnswer(r, e.stream.key.cluster)
	e.answered(r.StatusCode)
	if e.made != nil && r.StatusCode < http.StatusMultipleChoices {
		r.Body = reportingName(r, e.made)
	}
	return e.stream.guard(r)
}

// buffers is the BufferPool for copying bodies.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

func (b *buffers) Get() []byte {
	if held, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return held[:]
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(buffer []byte) { b.pool.Put((*[bufferSize]byte)(buffer)) }
