package options

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The probes of providers' servers lead neither to the hub nor to its identity provider.
func TestCatalog_knowsTheEndpointsOfTheHub(t *testing.T) {
	t.Parallel()
	o := New()
	o.ListenAddress, o.MetricsListenAddress, o.ExternalURL = "0.0.0.0:9443", "127.0.0.1:9464", "https://hub.example.com"
	o.OIDC.IssuerURL = "https://[2001:db8::1]:8443/realm"
	require.Equal(t, []string{"0.0.0.0:9443", "127.0.0.1:9464", "hub.example.com:443", "[2001:db8::1]:8443"}, endpoints(o))
	o.MetricsListenAddress, o.OIDC.IssuerURL = "", ""
	require.Equal(t, []string{"0.0.0.0:9443", "hub.example.com:443"}, endpoints(o))
}

func endpoints(o *Options) []string {
	return Config{completed{Options: *o}}.ownEndpoints()
}
