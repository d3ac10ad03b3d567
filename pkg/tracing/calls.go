package tracing

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// clustersPath is the path below which kcp serves logical clusters, at its root and in virtual workspaces.
	clustersPath = "/clusters/"
	// maxName is the number of bytes of a new object that are searched for its name.
	maxName = 1 << 20
)

// Calls is the layer around the hub's own requests to kcp: each that a request or a reconcile makes has a
// span and a traceparent.
func (t *Tracer) Calls(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	// kcp's own factory has the same two prefixes.
	return calls{t, next, &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}}
}

// Proxied is the layer around proxied requests. kcp gets the traceparent of the hub, whatever the client sent.
func (t *Tracer) Proxied(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return proxied{t, next}
}

type calls struct {
	tracer  *Tracer
	next    http.RoundTripper
	factory request.RequestInfoResolver
}

// RoundTrip implements http.RoundTripper.
func (c calls) RoundTrip(r *http.Request) (*http.Response, error) {
	if !trace.SpanContextFromContext(r.Context()).IsValid() {
		return c.next.RoundTrip(r)
	}
	r, span := c.tracer.call(r, "kcp")
	if !span.IsRecording() {
		return c.next.RoundTrip(r)
	}
	cluster, info := c.read(r)
	span.SetAttributes(placed("", "", cluster)...)
	span.SetAttributes(verbKey.String(info.Verb), groupKey.String(info.APIGroup), resourceKey.String(info.Resource))
	// The event of a write can be here before its answer.
	written, causes := written(r, cluster, info), &c.tracer.causes
	if written.name != "" {
		causes.put(written, span.SpanContext())
	}
	response, err := c.next.RoundTrip(r)
	if written.name != "" && (err != nil || response.StatusCode >= http.StatusBadRequest) {
		causes.withdraw(written, span.SpanContext())
	}
	answered(span, r, response, err)
	return response, err
}

// read returns the logical cluster and the RequestInfo of one of the hub's own requests.
func (c calls) read(r *http.Request) (cluster string, info *request.RequestInfo) {
	path := r.URL.Path
	if _, after, ok := strings.Cut(path, clustersPath); ok {
		cluster, path, _ = strings.Cut(after, "/")
		path = "/" + path
	}
	info, err := c.factory.NewRequestInfo(&http.Request{Method: r.Method, URL: &url.URL{Path: path, RawQuery: r.URL.RawQuery}})
	if err != nil {
		return cluster, &request.RequestInfo{}
	}
	return cluster, info
}

// written returns the object that a request writes; without a name if it writes none.
func written(r *http.Request, cluster string, info *request.RequestInfo) object {
	switch {
	case !info.IsResourceRequest || info.Subresource != "" && info.Subresource != "status":
	case r.Method == http.MethodPost:
		return object{cluster, nameIn(r)}
	case r.Method != http.MethodGet:
		return object{cluster, info.Name}
	}
	return object{}
}

// nameIn returns the name of the object in the body of a create.
func nameIn(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer func() { _ = body.Close() }()
	var created struct{ Metadata struct{ Name string } }
	if json.NewDecoder(io.LimitReader(body, maxName)).Decode(&created) != nil {
		return ""
	}
	return created.Metadata.Name
}

type proxied struct {
	tracer *Tracer
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p proxied) RoundTrip(r *http.Request) (*http.Response, error) {
	r, span := p.tracer.call(r, "kcp proxied")
	response, err := p.next.RoundTrip(r)
	if span.IsRecording() {
		if info, ok := request.RequestInfoFrom(r.Context()); ok {
			span.SetAttributes(verbKey.String(info.Verb))
			if err == nil && response.StatusCode < http.StatusMultipleChoices && info.IsResourceRequest {
				span.SetAttributes(groupKey.String(info.APIGroup), resourceKey.String(info.Resource))
			}
		}
		answered(span, r, response, err)
	}
	return response, err
}

// call begins the span of a request to kcp, and returns a copy of the request with its traceparent.
func (t *Tracer) call(r *http.Request, name string) (*http.Request, trace.Span) {
	ctx, span := t.tracer.Start(r.Context(), name, trace.WithSpanKind(trace.SpanKindClient))
	r = r.WithContext(ctx)
	r.Header = r.Header.Clone()
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	return r, span
}

// answered ends the span of a request to kcp at the headers of the answer.
func answered(span trace.Span, r *http.Request, response *http.Response, err error) {
	span.SetAttributes(methodKey.String(r.Method))
	switch {
	case err == nil:
		span.SetAttributes(codeKey.Int(response.StatusCode))
		if response.StatusCode >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	case !errors.Is(r.Context().Err(), context.Canceled):
		// The text of an error can have the URL.
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
