package server

import (
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/rotate"
)

// rotation returns the watcher of the files that can be replaced while the hub runs.
func (a *assembly) rotation() (*rotate.Watcher, error) {
	c := a.hub.config
	var sources []rotate.Source
	add := func(flag string, load func() error, files ...string) {
		if files[0] != "" {
			sources = append(sources, rotate.Source{Flag: flag, Load: load, Files: func() []string { return files }})
		}
	}
	add("tls-cert-file", a.hub.certificate.Reload, c.TLSCertFile, c.TLSKeyFile, c.TLSCAFile)
	add("token-file", a.reloadTokens, c.TokenFile)
	add("session-key-file", a.reloadSessionKeys, c.Sessions.KeyFile)
	add("oidc-client-secret-file", a.reloadClientSecret, c.OIDC.ClientSecretFile)
	add("oidc-ca-file", a.reloadIssuerCA, c.OIDC.CAFile)
	add("ci-ca-file", a.reloadJobCA, c.CI.CAFile)
	add("cost-centers-file", a.loadCostCenters, c.Billing.CostCentersFile)
	if c.KCPKubeconfig != "" {
		sources = append(sources, rotate.Source{Flag: "kcp-kubeconfig", Load: a.reloadKubeconfig, Files: func() []string { return connect.Files(c.KCP()) }})
	}
	return rotate.New(clock.RealClock{}, a.hub.registry, sources...)
}

// reloadTokens ends the streams of tokens that the file does not have any more.
func (a *assembly) reloadTokens() error {
	if err := a.hub.tokens.Reload(); err != nil {
		return err
	}
	a.revocation.RecheckAll()
	return nil
}

func (a *assembly) reloadSessionKeys() error {
	keys, err := a.hub.config.Sessions.ReadKeys()
	if err != nil {
		return err
	}
	return a.keyring.Replace(keys)
}

func (a *assembly) reloadClientSecret() error {
	secret, err := a.hub.config.OIDC.ReadClientSecret()
	if err == nil {
		a.oidc.SetClientSecret(secret)
	}
	return err
}

func (a *assembly) reloadIssuerCA() error {
	issuer := *a.hub.config.Issuer
	ca, err := a.hub.config.OIDC.ReadCA()
	if err != nil {
		return err
	}
	if a.hub.embedded != nil {
		issuer.CA = ca
		if err := a.hub.embedded.SetIssuers([]apiserverv1.JWTAuthenticator{issuer.JWTAuthenticator()}); err != nil {
			return err
		}
	}
	return a.oidc.SetCA(ca)
}

func (a *assembly) reloadJobCA() error {
	ca, err := a.hub.config.CI.ReadCA()
	if err != nil {
		return err
	}
	return a.jobs.SetCA(ca)
}

func (a *assembly) reloadKubeconfig() error {
	config, err := connect.Renew(a.hub.config.KCP(), a.clients)
	if err != nil {
		return err
	}
	upstreamTLS, err := connect.UpstreamTLS(config)
	if err != nil {
		return err
	}
	a.upstream.Replace(proxy.NewTransport(upstreamTLS, config.Proxy, a.clients.Health().Hear))
	if a.shardAdmin == a.clients {
		return nil
	}
	return connect.RenewShardAdmin(a.hub.config.KCP(), a.shardAdmin)
}
