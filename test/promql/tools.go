//go:build tools

package promql

import _ "github.com/prometheus/prometheus/cmd/promtool"
