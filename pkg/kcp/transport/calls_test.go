package transport_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

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
