package framework

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUndocumentedMetrics_comparesNamesAndLabels(t *testing.T) {
	t.Parallel()
	b := &strings.Builder{}
	b.WriteString("# TYPE go_goroutines gauge\ngo_goroutines 7\n# TYPE kedge_leader gauge\nkedge_leader 1\n# TYPE kedge_bot_tokens_issued_total counter\nkedge_bot_tokens_issued_total 1\n" +
		"# TYPE kedge_kcp_request_duration_seconds histogram\n" + `kedge_kcp_request_duration_seconds_bucket{method="GET",le="1"} 3` + "\n" + `kedge_kcp_request_duration_seconds_sum{method="GET"} 3` + "\n" +
		"# TYPE kedge_http_requests_total counter\n" + `kedge_http_requests_total{code="200",method="GET",route="/a,b=\"c\""} 3` + "\n")
	for i := range 20 {
		fmt.Fprintf(b, "# TYPE kedge_of_no_series_%d gauge\n", i)
	}
	const doc = "../../pkg/metrics/doc.go"
	require.NoError(t, UndocumentedMetrics(doc, []byte(b.String())))
	for name, more := range map[string]string{
		"kedge_new":     "# TYPE kedge_new gauge\nkedge_new 1\n",
		`["le"]`:        "kedge_leader{le=\"1\"} 1\n",
		`["a" "code" "`: `kedge_http_requests_total{code="200",method="GET",route="/",a="b"} 3` + "\n",
		`["code"]`:      `kedge_http_requests_total{code="200"} 3` + "\n",
	} {
		require.ErrorContains(t, UndocumentedMetrics(doc, []byte(b.String()+more)), name)
	}
	require.ErrorContains(t, UndocumentedMetrics(doc, nil), "only 0 metrics")
}
