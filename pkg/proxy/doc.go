// Package proxy is the only way to kcp for people and bots: /clusters/{cluster}
// and then a path of the Kubernetes API. Every request passes, in this order,
// shape (shape.go), who (httpmw), gate (tenancy.Gate, sudo.go) and forward
// (proxy.go, headers.go); what was gated is what is forwarded. Streams are known by
// whom and to where they run (streams.go), because they live as long as the right
// to them (cut.go).
package proxy
