package httpmw_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

func TestRequireAvailable_refusesReadsAndWrites(t *testing.T) {
	t.Parallel()
	var unavailable error
	h := httpmw.RequireAvailable(func(context.Context) error { return unavailable })(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	ask := func(method string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/api/orgs", http.NoBody))
		return w.Code
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		unavailable = nil
		require.Equal(t, http.StatusNoContent, ask(method))
		unavailable = errs.New(errs.Unavailable, "kcp cannot be reached")
		require.Equal(t, http.StatusServiceUnavailable, ask(method))
	}
}
