package options

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTracing_isOffByDefault(t *testing.T) {
	t.Parallel()
	c, err := New().Complete()
	require.NoError(t, err)
	require.Empty(t, c.Traces().Endpoint)
	o := New()
	o.Tracing.Endpoint, o.Tracing.SampleRatio = "http://127.0.0.1:4318/", 1
	c, err = o.Complete()
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:4318/", c.Traces().Endpoint)
	require.InDelta(t, 1, c.Traces().Ratio, 0)
	require.Nil(t, c.Traces().Roots, "the roots of the system")
	require.NotEmpty(t, c.Traces().Version)
}

func TestTracing_namesTheFlagThatIsInvalid(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	const endpoint = "https://collector:4318"
	for name, test := range map[string]struct {
		options TracingOptions
		want    string
	}{
		"negative":               {TracingOptions{SampleRatio: -0.1}, "--trace-sample-ratio: -0.1 is not"},
		"above one":              {TracingOptions{SampleRatio: 1.1}, "--trace-sample-ratio: 1.1 is not"},
		"no number":              {TracingOptions{SampleRatio: math.NaN()}, "--trace-sample-ratio: NaN is not"},
		"no URL":                 {TracingOptions{Endpoint: "collector:4318"}, "--otlp-endpoint: must be"},
		"gRPC":                   {TracingOptions{Endpoint: "grpc://collector:4317"}, "--otlp-endpoint: must be"},
		"a path":                 {TracingOptions{Endpoint: endpoint + "/v1/traces"}, "--otlp-endpoint: must be"},
		"a query":                {TracingOptions{Endpoint: endpoint + "?a=b"}, "--otlp-endpoint: must be"},
		"a password":             {TracingOptions{Endpoint: "https://user:hunter2@collector"}, "--otlp-endpoint: must be"},
		"CA without an endpoint": {TracingOptions{CAFile: empty}, "--otlp-ca-file: needs --otlp-endpoint"},
		"CA of plain HTTP":       {TracingOptions{Endpoint: "http://collector", CAFile: empty}, "--otlp-ca-file: needs --otlp-endpoint"},
		"CA of nothing":          {TracingOptions{Endpoint: endpoint, CAFile: empty}, "--otlp-ca-file: \"" + empty},
	} {
		o := New()
		o.Tracing = test.options
		_, err := o.Complete()
		require.ErrorContains(t, err, test.want, name)
		require.NotContains(t, err.Error(), "hunter2", name)
	}
}
