// Package metrics creates the Prometheus registry of the hub and serves it. Packages
// register their metrics with it through their constructors. Nothing is registered
// globally, so that the metrics of the embedded kcp and of several hubs in one test process
// stay apart.
package metrics
