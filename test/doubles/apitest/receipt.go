package apitest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// Prefer asks for a receipt of what ends.
func Prefer() http.Header { return http.Header{"Prefer": {"return=representation"}} }

// Receipted requires a receipt of what ended for a number of callers in an object, or as the body if the answer has
// no object, and the same one in the audit log.
func (w *World) Receipted(t testing.TB, a Answer, callers int) {
	t.Helper()
	require.Equal(t, http.StatusOK, a.Code, a.Body)
	require.Equal(t, "return=representation", a.Header.Get("Preference-Applied"))
	require.Empty(t, w.Counting(), "nothing is counted after the answer")
	body := struct {
		rest.Receipt
		Of *rest.Receipt `json:"receipt"`
	}{}
	require.NoError(t, json.Unmarshal([]byte(a.Body), &body))
	receipt := body.Receipt
	if body.Of != nil {
		receipt = *body.Of
	}
	require.Equal(t, callers*StreamsCut, receipt.StreamsCut)
	require.NotNil(t, receipt.HubRefusedAt)
	events := w.Events()
	require.NotEmpty(t, events)
	facts := events[len(events)-1].Facts
	require.NotNil(t, facts)
	require.Equal(t, &receipt, facts.Receipt)
}
