package certs

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Expiry tells when certificates expire, by their names in the metric. The zero time means that there
// is no such certificate.
type Expiry map[string]func() time.Time

// Register registers kedge_certificate_expiry_timestamp_seconds.
func (e Expiry) Register(r prometheus.Registerer) error { return r.Register(expiries{e}) }

type expiries struct{ of Expiry }

// Describe implements prometheus.Collector.
func (e expiries) Describe(to chan<- *prometheus.Desc) { to <- expiryDesc() }

// Collect implements prometheus.Collector.
func (e expiries) Collect(to chan<- prometheus.Metric) {
	for name, of := range e.of {
		if at := of(); !at.IsZero() {
			to <- prometheus.MustNewConstMetric(expiryDesc(), prometheus.GaugeValue, float64(at.Unix()), name)
		}
	}
}

func expiryDesc() *prometheus.Desc {
	return prometheus.NewDesc("kedge_certificate_expiry_timestamp_seconds", "Time at which a certificate expires, in seconds since 1970.", []string{"certificate"}, nil)
}

// NotAfter returns the time at which the serving certificate expires.
func (b *Bundle) NotAfter() time.Time { return b.Certificate.Leaf.NotAfter }

// CANotAfter returns the time at which the last CA certificate expires: until then clients may trust
// the bundle. It is the zero time if there is none.
func (b *Bundle) CANotAfter() time.Time { return Latest(b.CAPEM) }

// Latest returns the time at which the last of the certificates in PEM expires, or the zero time.
func Latest(bundle []byte) (at time.Time) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.NotAfter.After(at) {
			at = c.NotAfter
		}
	}
	return at
}
