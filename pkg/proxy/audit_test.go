package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// What Intend refuses does not reach kcp.
func TestIntend_refusesBeforeKcp(t *testing.T) {
	t.Parallel()
	reached := 0
	h := newHub(t, "https://kcp.example.com", roundTripper(func(r *http.Request) (*http.Response, error) {
		reached++
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(http.NoBody), Request: r}, nil
	}))
	ask := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(http.MethodPost, "/clusters/aaaa/api/v1/namespaces", "alice"))
		return w.Code
	}
	require.Equal(t, http.StatusOK, ask())
	require.Equal(t, 1, reached)
	h.unaudited = errs.New(errs.Unavailable, "the audit log cannot be written")
	require.Equal(t, http.StatusServiceUnavailable, ask())
	require.Equal(t, 1, reached)
	require.Zero(t, h.streams(t))
}
