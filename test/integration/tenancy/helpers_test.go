package tenancy

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// kcpCalls returns the number of requests from the hub to kcp, without health probes.
func kcpCalls(t testing.TB, hub *framework.Hub) int {
	t.Helper()
	response, err := http.Get(hub.Metrics)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	sum, found := 0, false
	scanner := bufio.NewScanner(response.Body)
	for scanner.Scan() {
		line := scanner.Text()
		if !strings.HasPrefix(line, "kedge_kcp_requests_total{") {
			continue
		}
		found = true
		value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		require.NoError(t, err)
		sum += int(value)
	}
	require.True(t, found, "the metric is there")
	return sum
}
