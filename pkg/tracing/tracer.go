package tracing

import (
	"context"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// flushTimeout is the time that the end of a hub waits for the collector.
const flushTimeout = 2 * time.Second

// The attributes of spans, beside those of HTTP.
const (
	orgKey        = attribute.Key("kedge.organization")
	workspaceKey  = attribute.Key("kedge.workspace")
	clusterKey    = attribute.Key("kedge.cluster")
	requestKey    = attribute.Key("kedge.request")
	controllerKey = attribute.Key("kedge.controller")
	resultKey     = attribute.Key("kedge.result")
	routeKey      = attribute.Key("http.route")
	methodKey     = attribute.Key("http.request.method")
	codeKey       = attribute.Key("http.response.status_code")
	verbKey       = attribute.Key("k8s.verb")
	groupKey      = attribute.Key("k8s.group")
	resourceKey   = attribute.Key("k8s.resource")
)

// Options are where spans go.
type Options struct {
	// Endpoint is the base URL of a collector. Empty means no tracing.
	Endpoint string
	// Ratio is the share of requests and reconciles that are sampled.
	Ratio float64
	// Roots verify the collector; nil means the roots of the system.
	Roots *x509.CertPool
	// Version is that of the hub.
	Version string
}

// Tracer makes spans. A nil Tracer makes none.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	spans    *queue
	causes   causes
}

// New returns a Tracer, or nil without an endpoint, and registers kedge_trace_*. It logs with the logger of ctx.
func New(ctx context.Context, o Options, metrics prometheus.Registerer) (*Tracer, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	exporter, closeIdle, err := newExporter(ctx, o)
	if err != nil {
		return nil, err
	}
	spans, err := newQueue(log.From(ctx), exporter, closeIdle, metrics)
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sampler{sdktrace.TraceIDRatioBased(o.Ratio)}),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "kedge-hub"), attribute.String("service.version", o.Version))),
		sdktrace.WithSpanProcessor(spans),
	)
	return &Tracer{tracer: provider.Tracer("github.com/faroshq/kedge-hub"), provider: provider, spans: spans}, nil
}

// Close sends what waits, for at most two seconds. Spans that end later are lost.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	// What was not sent is counted.
	_ = t.provider.Shutdown(ctx)
	t.spans.abandon()
}

// sampler follows the parent, which is always of this process. A span without one is sampled if a sampled span of
// this process caused it, and otherwise by the ratio.
type sampler struct{ ratio sdktrace.Sampler }

// ShouldSample implements sdktrace.Sampler.
func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if parent := trace.SpanContextFromContext(p.ParentContext); parent.IsValid() {
		if parent.IsSampled() {
			return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
		}
		return sdktrace.SamplingResult{Decision: sdktrace.Drop}
	}
	for _, l := range p.Links {
		if l.SpanContext.IsSampled() && !l.SpanContext.IsRemote() {
			return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
		}
	}
	return s.ratio.ShouldSample(p)
}

// Description implements sdktrace.Sampler.
func (s sampler) Description() string { return "CausedOr" + s.ratio.Description() }

// Request begins the span of a request of a client. end is nil if the request is not sampled; the context must be
// used at any rate.
func (t *Tracer) Request(r *http.Request) (ctx context.Context, end func(route, method, id string, status int)) {
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer)}
	client := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header)))
	if client.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: client.TraceID(), SpanID: client.SpanID(), Remote: true,
		})}))
	}
	ctx, span := t.tracer.Start(r.Context(), "request", options...)
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, func(route, method, id string, status int) {
		span.SetName(method + " " + route)
		span.SetAttributes(routeKey.String(route), methodKey.String(method), requestKey.String(id), codeKey.Int(status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// Place tells the span of a request what the request is about, once the caller may know it. An empty part is left out.
func Place(ctx context.Context, org, workspace, cluster string) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(placed(org, workspace, cluster)...)
	}
}

// placed are the attributes of a place. What does not have the form of an ID is left out: it may be a name.
func placed(org, workspace, cluster string) (all []attribute.KeyValue) {
	if tenancy.IsUUID(org) {
		all = append(all, orgKey.String(org))
	}
	if tenancy.IsUUID(workspace) {
		all = append(all, workspaceKey.String(workspace))
	}
	if tenancy.IsClusterID(cluster) {
		all = append(all, clusterKey.String(cluster))
	}
	return all
}

// Reconcile begins the span of a pass of a controller over a key. end takes what came of it, in one word.
func (t *Tracer) Reconcile(ctx context.Context, controller, cluster, name string) (_ context.Context, end func(result string, failed bool)) {
	if t == nil {
		return ctx, untraced
	}
	options := []trace.SpanStartOption{trace.WithNewRoot()}
	if cause, ok := t.causes.take(controller, object{cluster, name}); ok {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: cause}))
	}
	ctx, span := t.tracer.Start(ctx, "reconcile "+controller, options...)
	if !span.IsRecording() {
		return ctx, untraced
	}
	// The names of all other keys may be those of people, or derived from them.
	org, workspace := "", ""
	switch controller {
	case "organization":
		org = name
	case "workspace", "access":
		workspace = name
	}
	span.SetAttributes(append(placed(org, workspace, cluster), controllerKey.String(controller))...)
	return ctx, func(result string, failed bool) {
		span.SetAttributes(resultKey.String(result))
		if failed {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

func untraced(string, bool) {}
