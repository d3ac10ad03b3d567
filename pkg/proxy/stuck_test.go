package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// stuck is a client that takes nothing, as one of HTTP/2 without a window.
type stuck struct {
	*httptest.ResponseRecorder
	mu   sync.Mutex
	over *time.Timer
	gone chan struct{}
}

func (s *stuck) SetReadDeadline(time.Time) error { return nil }

func (s *stuck) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		s.over.Stop()
	}
	if !t.IsZero() {
		s.over = time.AfterFunc(time.Until(t), sync.OnceFunc(func() { close(s.gone) }))
	}
	return nil
}

func (s *stuck) Write([]byte) (int, error) {
	<-s.gone
	return 0, os.ErrDeadlineExceeded
}

// The attack: take nothing of an answer, however small, and so hold a connection to kcp for ever.
func TestLoad_whoTakesNothingLosesTheConnection(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"namespaces/default/secrets/one", "secrets?limit=1", "secrets?watch=1"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			taking := make(chan struct{})
			h := newHub(t, kcpURL, roundTripper(func(r *http.Request) (*http.Response, error) {
				close(taking)
				body := io.NopCloser(strings.NewReader("{}"))
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
			}), func(c *proxy.Config) {
				c.Load = proxy.LoadLimits{
					All: 4, Time: 300 * time.Millisecond,
					Stored: func(tenancy.Workspace) (int64, int64, bool) { return 1, 100, true },
				}
			})
			w := &stuck{ResponseRecorder: httptest.NewRecorder(), gone: make(chan struct{})}
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				defer func() { _ = recover() }() // what is cut off is not taken for the whole
				h.ServeHTTP(w, request(http.MethodGet, "/clusters/aaaa/api/v1/"+target, "alice"))
			}()
			<-taking
			used, _ := h.metric(t, "kedge_proxy_in_flight_requests")
			require.InDelta(t, 1, used, 0, "the control")
			if !assert.Eventually(t, func() bool {
				used, _ := h.metric(t, "kedge_proxy_in_flight_requests")
				return used == 0
			}, deadline, time.Millisecond) {
				_ = w.SetWriteDeadline(time.Now())
			}
			<-answered
		})
	}
}
