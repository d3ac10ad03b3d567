package options

import (
	"crypto/x509"
	"net/url"

	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/tracing"
	"github.com/faroshq/kedge-hub/pkg/version"
)

// TracingOptions are the flags of traces.
type TracingOptions struct {
	// Endpoint (--otlp-endpoint) is the http or https URL of an OpenTelemetry collector, without /v1/traces.
	// Empty means no traces.
	Endpoint string
	// CAFile (--otlp-ca-file) is a PEM file with CA certificates that the collector is verified by, beside those
	// of the system. Empty means none.
	CAFile string
	// SampleRatio (--trace-sample-ratio) is the share of requests and reconciles that are traced, from 0 to 1.
	// Default 0.01.
	SampleRatio float64
}

func newTracingOptions() TracingOptions { return TracingOptions{SampleRatio: 0.01} }

func (o *TracingOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Endpoint, "otlp-endpoint", o.Endpoint,
		"The http or https URL of an OpenTelemetry collector, without a path such as /v1/traces, to which traces are sent as OTLP over HTTP. "+
			"Without it there are no traces.")
	fs.StringVar(&o.CAFile, "otlp-ca-file", o.CAFile,
		"PEM file with CA certificates that the collector of --otlp-endpoint is verified by, beside those of the system.")
	fs.Float64Var(&o.SampleRatio, "trace-sample-ratio", o.SampleRatio,
		"Share of requests and reconciles that are traced, from 0 to 1. The traceparent of a client does not change it.")
}

// complete validates the flags and returns the roots; nil means those of the system.
func (o *TracingOptions) complete(fail func(flag, format string, args ...any)) *x509.CertPool {
	if !(o.SampleRatio >= 0 && o.SampleRatio <= 1) {
		fail("trace-sample-ratio", "%v is not a share from 0 to 1, such as 0.01", o.SampleRatio)
	}
	u, err := url.Parse(o.Endpoint)
	if o.Endpoint != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
		fail("otlp-endpoint", "must be an http or https URL without a path and without a password, such as https://collector.example.com:4318")
		return nil
	}
	if o.CAFile != "" && (o.Endpoint == "" || u.Scheme != "https") {
		fail("otlp-ca-file", "needs --otlp-endpoint with an https URL")
	}
	return rootsWith("otlp-ca-file", o.CAFile, fail)
}

// Traces returns where traces go.
func (c Config) Traces() tracing.Options {
	return tracing.Options{Endpoint: c.Tracing.Endpoint, Ratio: c.Tracing.SampleRatio, Roots: c.traceRoots, Version: version.String()}
}
