//go:build tools

// Package crds pins the versions of the CustomResourceDefinitions by which the objects of the chart are
// validated. The modules have them as files; nothing of them is built.
package crds

import (
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
	_ "sigs.k8s.io/gateway-api/apis/v1"
)
