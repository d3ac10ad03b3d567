// Package health serves the health probes: /healthz and /livez say that the process serves,
// /readyz that the hub can answer requests. The public /readyz gives no details; the metrics
// listener lists each check, as kube-apiserver does for /readyz?verbose.
//
// Front answers from the moment at which the port is open. Until the API is ready it answers
// requests other than the probes with 503.
package health
