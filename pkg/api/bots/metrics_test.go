package bots_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/doubles/apitest"
)

func TestMetrics_countTokensThatWereIssuedAndRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	counted := func(issued, revoked string) {
		t.Helper()
		require.NoError(t, testutil.GatherAndCompare(w.metrics, strings.NewReader(`
# HELP kedge_bot_tokens_issued_total Tokens of bots that were issued.
# TYPE kedge_bot_tokens_issued_total counter
kedge_bot_tokens_issued_total `+issued+`
# HELP kedge_bot_tokens_revoked_total Tokens of bots that were revoked by a request.
# TYPE kedge_bot_tokens_revoked_total counter
kedge_bot_tokens_revoked_total `+revoked+`
`), "kedge_bot_tokens_issued_total", "kedge_bot_tokens_revoked_total"))
	}
	issue := apitest.Call{Method: http.MethodPost, Path: tokensOfCI, Body: `{}`}
	w.do(issue).Object(t, http.StatusCreated)
	counted("1", "0")
	require.Equal(t, http.StatusNoContent, w.do(apitest.Call{Method: http.MethodDelete, Path: tokensOfCI + "/" + next}).Code)
	counted("1", "1")
	w.do(apitest.Call{Method: http.MethodDelete, Path: tokensOfCI + "/" + next}).Refused(t, http.StatusNotFound)
	w.failing = func(step string) error {
		if step == "issue" {
			return errors.New("kcp does not issue it")
		}
		return nil
	}
	require.NotEqual(t, http.StatusCreated, w.do(issue).Code)
	counted("1", "1")
	w.failing = nil
	w.give("a", "b", "c")
	require.Equal(t, http.StatusNoContent, w.do(apitest.Call{Method: http.MethodDelete, Path: tokensOfCI}).Code)
	counted("1", "4")
}
