// Package proxy is the only way to kcp for people and bots: /clusters/{cluster}
// and then a path of the Kubernetes API. Every request passes, in this order,
// shape, who, gate and forward; what was gated is what is forwarded.
package proxy
