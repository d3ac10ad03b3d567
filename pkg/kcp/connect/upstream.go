package connect

import (
	"crypto/tls"
	"fmt"

	"k8s.io/client-go/rest"
)

// UpstreamTLS returns the TLS configuration of proxied requests. It has the CA of the admin's
// configuration and no credential.
func UpstreamTLS(admin *rest.Config) (*tls.Config, error) {
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAData: admin.CAData, CAFile: admin.CAFile, ServerName: admin.ServerName,
	}})
	if err != nil {
		return nil, fmt.Errorf("kcp's CA: %w", err)
	}
	return config, nil
}
