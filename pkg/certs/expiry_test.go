package certs

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestExpiry_isThatOfTheCertificatesInUse(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	bundle, err := Ensure(t.TempDir(), []string{"localhost"}, now)
	require.NoError(t, err)
	older, err := Ensure(t.TempDir(), []string{"localhost"}, now.Add(-time.Hour))
	require.NoError(t, err)
	bundle.CAPEM = slices.Concat([]byte("a comment\n"), older.CAPEM, bundle.CAPEM, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	r := prometheus.NewRegistry()
	require.NoError(t, Expiry{"serving": bundle.NotAfter, "ca": bundle.CANotAfter, "none": func() time.Time { return Latest(nil) }}.Register(r))
	require.NoError(t, testutil.GatherAndCompare(r, strings.NewReader(`
# HELP kedge_certificate_expiry_timestamp_seconds Time at which a certificate expires, in seconds since 1970.
# TYPE kedge_certificate_expiry_timestamp_seconds gauge
kedge_certificate_expiry_timestamp_seconds{certificate="ca"} 2.11536e+09
kedge_certificate_expiry_timestamp_seconds{certificate="serving"} 1.831536e+09
`)))
}
