package embedded

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/kcp-dev/embeddedetcd"
	etcdoptions "github.com/kcp-dev/embeddedetcd/options"
	serveroptions "github.com/kcp-dev/kcp/pkg/server/options"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/faroshq/kedge-hub/pkg/certs"
)

// certificateLife is the validity of etcd's certificates. Each start makes new ones.
const certificateLife = 10 * 365 * 24 * time.Hour

// configureEtcd returns an etcd with the options. It replaces etcd's certificates.
func configureEtcd(o etcdoptions.CompletedOptions, watchCache bool, now time.Time) (*embeddedetcd.Server, error) {
	config, err := embeddedetcd.NewConfig(o, watchCache)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(o.ClientPort)
	if err != nil {
		return nil, err
	}
	config.ListenClientUrls = []url.URL{*etcdURL(port)}
	// etcd logs its own shutdown as an error. Errors that keep it from starting are returned.
	config.LogLevel = "panic"
	if err := writeCertificates(filepath.Join(config.Dir, secretsDir), now); err != nil {
		return nil, fmt.Errorf("make etcd's certificates: %w", err)
	}
	return embeddedetcd.NewServer(config.Complete()), nil
}

// useRunningEtcd changes the options of kcp to those of a kcp with an etcd that runs on a port. A kcp with an etcd of its
// own replaces the certificates.
func useRunningEtcd(o *serveroptions.CompletedOptions, port int) {
	o.EmbeddedEtcd.Enabled = false
	for _, client := range []*genericoptions.EtcdOptions{o.GenericControlPlane.Etcd, o.Cache.Server.Etcd} {
		client.StorageConfig.Transport.ServerList = []string{etcdURL(port).String()}
	}
}

// etcdURL is where etcd listens for clients.
func etcdURL(port int) *url.URL {
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(port))}
}

// writeCertificates replaces the certificates that embeddedetcd makes. kcp opens a connection to etcd for every kind of
// every workspace, and with the keys of embeddedetcd (P-521) each handshake takes 25 ms of CPU.
func writeCertificates(dir string, now time.Time) error {
	subject := pkix.Name{Organization: []string{"etcd"}}
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	until := now.Add(certificateLife)
	ca, err := certs.NewPair(&x509.Certificate{
		Subject: subject, NotAfter: until, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, now)
	if err != nil {
		return err
	}
	peer, err := certs.NewPair(&x509.Certificate{
		Subject: subject, NotAfter: until, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.ParseIP(host)},
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: both,
	}, ca, now)
	if err != nil {
		return err
	}
	subject.CommonName = "etcd-client"
	client, err := certs.NewPair(&x509.Certificate{
		Subject: subject, NotAfter: until, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: both[:1],
	}, ca, now)
	if err != nil {
		return err
	}
	for name, pair := range map[string]*certs.Pair{"ca": ca, "peer": peer, "client": client} {
		for path, pem := range map[string][]byte{certOf(filepath.Join(dir, name)): pair.CertPEM, keyOf(filepath.Join(dir, name)): pair.KeyPEM} {
			if err := os.WriteFile(path, pem, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// startEtcd starts etcd and turns its panic at a full disk or unreadable data into an
// error. etcd has logged the cause.
func startEtcd(ctx context.Context, etcd *embeddedetcd.Server) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v; see what etcd says above, and whether the disk has room", p)
		}
	}()
	return etcd.Run(ctx)
}
