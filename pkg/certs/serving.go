package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// renewEvery is how often Renew looks at the life of a certificate.
const renewEvery = time.Hour

// Options say which certificate a hub serves with.
type Options struct {
	// CertFile, KeyFile and CAFile are those of the flags; empty for a certificate of the hub's
	// own CA.
	CertFile, KeyFile, CAFile string
	// Dir is the directory of the hub's own CA and certificate.
	Dir string
	// ExternalURL and ListenAddress name the hosts of the hub's own certificate.
	ExternalURL, ListenAddress string
}

// Serving is the certificate that a hub serves with. It can be replaced while the hub runs.
type Serving struct {
	options Options
	current atomic.Pointer[Bundle]
}

// NewServing loads the certificate of the flags, or ensures one of the hub's own CA that is valid at
// a time.
func NewServing(o Options, now time.Time) (*Serving, error) {
	s := &Serving{options: o}
	return s, s.load(now)
}

// load keeps the current certificate if there is an error.
func (s *Serving) load(now time.Time) error {
	o := s.options
	var bundle *Bundle
	var err error
	if o.CertFile != "" {
		bundle, err = Load(o.CertFile, o.KeyFile, o.CAFile)
	} else {
		var hosts []string
		if hosts, err = Hosts(o.ExternalURL, o.ListenAddress); err != nil {
			return fmt.Errorf("--external-url: %w", err)
		}
		bundle, err = Ensure(o.Dir, hosts, now)
	}
	if err == nil {
		s.current.Store(bundle)
	}
	return err
}

// Reload loads the files of the flags again.
func (s *Serving) Reload() error { return s.load(time.Now()) }

// Renew renews a certificate of the hub's own CA until ctx ends. It returns at once for one of the
// flags.
func (s *Serving) Renew(ctx context.Context, k clock.WithTicker) {
	if s.options.CertFile != "" {
		return
	}
	ticker := k.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		old := s.current.Load()
		if err := s.load(k.Now()); err != nil {
			log.From(ctx).Error("the hub's certificate cannot be renewed", zap.Error(err))
		} else if now := s.current.Load(); !bytes.Equal(old.Certificate.Certificate[0], now.Certificate.Certificate[0]) {
			log.From(ctx).Info("renewed the hub's certificate", zap.Time("notAfter", now.Certificate.Leaf.NotAfter))
		}
	}
}

// TLS returns the configuration of a listener that serves with the current certificate.
func (s *Serving) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &s.current.Load().Certificate, nil },
		NextProtos:     []string{"h2", "http/1.1"},
	}
}

// CA returns the CA that clients trust.
func (s *Serving) CA() []byte { return s.current.Load().CAPEM }

// VerifiedBy reports whether roots, nil for those of the system, verify the certificate. Then clients need no
// CA of the hub's.
func (s *Serving) VerifiedBy(roots *x509.CertPool, now time.Time) bool {
	chain := s.current.Load().Certificate
	if chain.Leaf == nil {
		return false
	}
	between := x509.NewCertPool()
	for _, raw := range chain.Certificate[1:] {
		if c, err := x509.ParseCertificate(raw); err == nil {
			between.AddCert(c)
		}
	}
	_, err := chain.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now})
	return err == nil
}

// NotAfter returns the time at which the serving certificate expires.
func (s *Serving) NotAfter() time.Time { return s.current.Load().NotAfter() }

// CANotAfter returns the time at which the last CA certificate expires, or the zero time.
func (s *Serving) CANotAfter() time.Time { return s.current.Load().CANotAfter() }
