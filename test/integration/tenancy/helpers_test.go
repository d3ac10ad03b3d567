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

// rowsIn lists the rows of a person's index that are about an Org, as the hub shows them.
func rowsIn(t testing.TB, hub *framework.Hub, as, org string) (rows []map[string]any) {
	t.Helper()
	me := hub.Do(t, call{As: as, Method: http.MethodGet, Path: "/api/users/me/memberships"}, http.StatusOK)
	for _, item := range me.JSON["items"].([]any) {
		if row := item.(map[string]any); row["orgUUID"] == org {
			rows = append(rows, row)
		}
	}
	return rows
}

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
