package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// lavish is a kcp that sends as fast as the hub takes it.
type lavish struct {
	size   int
	accept []string
}

func (k *lavish) RoundTrip(r *http.Request) (*http.Response, error) {
	k.accept = append(k.accept, r.Header.Get("Accept-Encoding"))
	w := httptest.NewRecorder()
	w.WriteHeader(http.StatusOK)
	response := w.Result()
	response.Request, response.Body = r, &swelling{kcp: &swollen{size: k.size, beginning: k.size}}
	return response, nil
}

// The attack: large lists one after the other, so that kcp has no core for anybody else. The hub takes a large answer at a
// pace, and kcp does not compress it.
func TestLoad_aLargeAnswerComesAtAPace(t *testing.T) {
	t.Parallel()
	const secrets = "/clusters/aaaa/api/v1/secrets"
	for name, test := range map[string]struct {
		target         string
		stored, answer int
		// read is the time that clients have for an answer, and from and to are what it takes.
		read, from, to time.Duration
		accept         string
	}{
		"a large list":                        {secrets, 40 * mebibyte, 36 * mebibyte, time.Minute, time.Second, 1100 * time.Millisecond, ""},
		"what a watch begins with":            {secrets + "?watch=1", 40 * mebibyte, 36 * mebibyte, time.Minute, time.Second, 1100 * time.Millisecond, ""},
		"one larger than the hub knew":        {secrets, mebibyte, 36 * mebibyte, time.Minute, time.Second, 1100 * time.Millisecond, "gzip"},
		"a small answer of a large Workspace": {secrets, 40 * mebibyte, mebibyte, time.Minute, 0, 0, ""},
		"a small list":                        {secrets, mebibyte, mebibyte, time.Minute, 0, 0, "gzip"},
		// It is there in a quarter of the time.
		"one that would take too long": {secrets, 40 * mebibyte, 36 * mebibyte, 2 * time.Second, 400 * time.Millisecond, 450 * time.Millisecond, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				kcp := &lavish{size: test.answer}
				h := newHub(t, kcpURL, kcp, func(c *proxy.Config) {
					c.Load = proxy.LoadLimits{
						Requests: 128, Bytes: 1 << 30, Parallel: 1, Time: test.read, Refused: func(string) {},
						Stored: func(tenancy.Workspace) (int64, int64, bool) { return 1000, int64(test.stored), true },
					}
				})
				began := time.Now()
				w := h.do(request(http.MethodGet, test.target, "alice", "Accept-Encoding", "gzip"))
				require.Equal(t, http.StatusOK, w.Code)
				require.Equal(t, test.answer, w.Body.Len())
				require.GreaterOrEqual(t, time.Since(began), test.from)
				require.LessOrEqual(t, time.Since(began), test.to)
				require.Equal(t, []string{test.accept}, kcp.accept)
			})
		})
	}
}
