// Package tracing makes the OpenTelemetry spans of the hub and sends them to a collector, as OTLP over
// HTTP. A nil *Tracer makes none: it adds no layer to a request, and no header.
//
// A trace begins with a request or with a reconcile. Below it are the requests to kcp that follow from it: the
// proxied one and the hub's own. All of them carry a traceparent. A watch of a cache and a health probe
// follow from no request and have no span.
//
// # Decisions
//
//   - The hub samples by its own ratio and begins its own traces. The traceparent of a client is a link
//     of the span, without its sampled flag and its tracestate: a client can neither have the hub trace everything
//     by that flag or by an ID that the ratio selects, nor write text into a trace. kcp never gets it.
//   - A span says where and how long, and never who. Names of objects can be those of people, so that only the
//     UUIDs of Organizations and Workspaces and the IDs of logical clusters are attributes, each checked for its
//     form. The span of a request has the pattern of the route and not the path. Errors are codes
//     without their texts. The resource of a proxied request is what a client wrote into the path: the span has it
//     once kcp has answered with success, so that it is the name of a type.
//   - A reconcile has a link to the write that caused it, if a sampled request or reconcile of this process has
//     written the object of its key in the last minute. The links are in memory: an annotation would be
//     there for every reader of the object. A controller that follows from other objects than that of its key, and
//     a leader that runs in another process, has no link.
//   - A reconcile with a link is always sampled. Otherwise the ratio would apply twice, and hardly a trace of a
//     request would go on to its reconciles.
//   - Nothing waits for the collector. Spans wait in a bounded queue, and what does not fit is dropped and counted.
//   - No global provider, propagator or error handler of OpenTelemetry is set: the embedded kcp and its libraries
//     would use it.
package tracing
