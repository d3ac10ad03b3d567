package transport

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// Transport sends requests to one kcp, by one identity. All chains that it makes share
// its connections.
type Transport struct {
	host        string
	wire        *identity
	connections *connections
	health      *Health
	refusal     *atomic.Pointer[Refusal]
	times       *times
	failPoints  layer
	calls       *calls
	probes      *http.Client
}

// Options are what the chain of a client has beyond what all have.
type Options struct {
	// Config holds the credential.
	Config *rest.Config
	// FailFast fails requests at once while kcp is unavailable, with an error that a
	// caller may be told.
	FailFast bool
	// Right, where it is not nil, is the fencing right that every write needs.
	Right Right
	// Admission, where it is not nil, is asked before every request that may create an object.
	Admission Admission
	// BeforeWrite, where it is not nil, is called with the context of every request that may write, before it is sent.
	BeforeWrite func(context.Context)
	// Fresh sends every request on a connection of its own. Behind a load balancer, another
	// process of kcp can answer each of them.
	Fresh bool
	// Trace, where it is not nil, is the layer that makes spans of requests.
	Trace func(next http.RoundTripper) http.RoundTripper
	// probe marks health probes, which are not counted.
	probe bool
}

// New returns the transport to the kcp at config.Host. It registers kedge_kcp_*.
func New(config *rest.Config, metrics prometheus.Registerer) (*Transport, error) {
	t := &Transport{
		host:        config.Host,
		connections: &connections{},
		health:      NewHealth(),
		refusal:     &atomic.Pointer[Refusal]{},
		times:       &times{},
		calls:       newCalls(),
		failPoints:  newFailPoints(),
	}
	if err := t.calls.register(metrics); err != nil {
		return nil, fmt.Errorf("register kcp client metrics: %w", err)
	}
	var err error
	if t.wire, err = t.connections.open(config, t.health); err != nil {
		return nil, err
	}
	probes, err := t.RoundTripper(Options{Config: config, probe: true})
	if err != nil {
		return nil, err
	}
	t.probes = &http.Client{Transport: probes}
	return t, nil
}

// As returns the transport to the same kcp by another identity. It has connections of its
// own, and shares the health and the metrics.
func (t *Transport) As(config *rest.Config) (*Transport, error) {
	other := *t
	var err error
	other.wire, err = t.connections.open(config, t.health)
	return &other, err
}

// layer is one step of the chain around the next.
type layer func(next http.RoundTripper) http.RoundTripper

// RoundTripper returns the chain of a client, from the caller at the top to the
// connection at the bottom.
func (t *Transport) RoundTripper(o Options) (http.RoundTripper, error) {
	var failure error
	chain := []layer{
		// Requests fail at once, and answers end, while kcp is unavailable.
		only(o.FailFast, t.health.Bind),
		// A probe notes whether kcp refused the credential.
		only(o.probe, t.noteRefusals),
		// The user agent and the credential; after a 401 the request is sent once more if
		// there is a new token.
		authenticate(o.Config, &failure),
		// Each request that is sent has a span of its own.
		o.Trace,
		// kedge_kcp_requests_total counts what is sent.
		only(!o.probe, t.calls.measure),
		// Nothing is created while the store is full.
		only(o.Admission != nil, admit(o.Admission)),
		// A leader's writes end with its right to write. It is asked below the credential,
		// which may take time to get.
		only(o.Right != nil, fence(o.Right)),
		// What is to be written down before a write is.
		only(o.BeforeWrite != nil, announce(o.BeforeWrite)),
		// Tests kill the process before or after the n-th write. Programs without the build tag
		// failpoints have no such layer.
		t.failPoints,
		// The Date of every answer tells kcp's time.
		t.readDates,
	}
	// Connections; whatever arrives on them is a sign of life.
	var rt http.RoundTripper = t.wire
	if o.Fresh {
		rt = fresh{t.wire}
	}
	for _, l := range slices.Backward(chain) {
		if l != nil {
			rt = l(rt)
		}
	}
	return rt, failure
}

// only returns a layer where it is wanted, and nil otherwise.
func only(wanted bool, l layer) layer {
	if wanted {
		return l
	}
	return nil
}

// authenticate adds the headers of a configuration.
func authenticate(config *rest.Config, failure *error) layer {
	return func(next http.RoundTripper) http.RoundTripper {
		rt, err := rest.HTTPWrappersForConfig(config, next)
		if err != nil {
			*failure = fmt.Errorf("make the HTTP client for kcp: %w", err)
			return next
		}
		return rt
	}
}

// Close closes idle connections, those of other identities included. The transport can
// be used after it; it is for a process that goes on without it.
func (t *Transport) Close() { t.connections.closeIdle() }

// Health is whether kcp is available.
func (t *Transport) Health() *Health { return t.health }
