package transport_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/certs"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
)

func TestCalls_areCountedByMethodAndCode(t *testing.T) {
	t.Parallel()
	f := newKCP(t, true, nil, nil)
	registry := prometheus.NewRegistry()
	config := f.config()
	wire, err := transport.New(config, registry)
	require.NoError(t, err)
	t.Cleanup(wire.Close)
	require.Zero(t, wire.ServingNotAfter(), "before the first answer")
	require.Empty(t, wire.ClientCertificate())
	rt, err := wire.RoundTripper(transport.Options{Config: config})
	require.NoError(t, err)
	send := func(method string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, f.URL+"/x", http.NoBody)
		require.NoError(t, err)
		response, err := rt.RoundTrip(r)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	require.NoError(t, send(http.MethodGet))
	require.NoError(t, send(http.MethodGet))
	require.NoError(t, send(http.MethodDelete))
	require.Equal(t, f.Certificate().NotAfter.Unix(), wire.ServingNotAfter().Unix())
	f.Close()
	require.Error(t, send(http.MethodGet))
	counts, times := map[string]float64{}, map[string]uint64{}
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			switch family.GetName() {
			case "kedge_kcp_requests_total":
				counts[m.GetLabel()[1].GetValue()+" "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			case "kedge_kcp_request_duration_seconds":
				times[m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleCount()
				require.Less(t, m.GetHistogram().GetSampleSum(), (10 * time.Second).Seconds())
			}
		}
	}
	require.Equal(t, map[string]float64{"GET 200": 2, "GET error": 1, "DELETE 200": 1}, counts)
	require.Equal(t, map[string]uint64{"GET": 3, "DELETE": 1}, times)
}

// The shards of a kcp have certificates of their own.
func TestServingNotAfter_isThatOfTheFirstToExpire(t *testing.T) {
	t.Parallel()
	soon, err := certs.Ensure(t.TempDir(), []string{"127.0.0.1"}, time.Now().Add(-24*time.Hour))
	require.NoError(t, err)
	late := bundle(t)
	roots := append(slices.Clone(soon.CAPEM), late.CAPEM...)
	config := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: roots}}
	var hosts []string
	for _, b := range []*certs.Bundle{soon, late} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{b.Certificate}}
		s.StartTLS()
		t.Cleanup(s.Close)
		hosts = append(hosts, s.URL)
	}
	config.Host = hosts[0]
	wire, err := transport.New(config, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(wire.Close)
	rt, err := wire.RoundTripper(transport.Options{Config: config})
	require.NoError(t, err)
	for range 2 {
		for _, host := range hosts {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, host, http.NoBody)
			require.NoError(t, err)
			response, err := rt.RoundTrip(r)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, soon.NotAfter().Unix(), wire.ServingNotAfter().Unix())
		}
		slices.Reverse(hosts)
	}
	require.True(t, soon.NotAfter().Before(late.NotAfter()), "the control")
}
