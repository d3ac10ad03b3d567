//go:build tools

// Package kubernetes pins the versions of the kube-apiserver and the etcd by which the objects of the
// chart are validated. It is a module of its own, because kcp replaces the modules of Kubernetes.
package kubernetes

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
