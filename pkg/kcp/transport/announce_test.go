package transport

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type announcedKey struct{}

func TestAnnounce_isCalledBeforeEachWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, path string
		announced    bool
	}{
		"a create":         {method: http.MethodPost, path: "/api/v1/namespaces", announced: true},
		"a patch":          {method: http.MethodPatch, path: "/api/v1/namespaces/a", announced: true},
		"a replacement":    {method: http.MethodPut, path: "/api/v1/namespaces/a", announced: true},
		"a deletion":       {method: http.MethodDelete, path: "/api/v1/namespaces/a", announced: true},
		"a read":           {method: http.MethodGet, path: "/api/v1/namespaces/a"},
		"an access review": {method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/subjectaccessreviews"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var events []string
			sent := sender(func() { events = append(events, "sent") })
			rt := announce(func(ctx context.Context) { events = append(events, ctx.Value(announcedKey{}).(string)) })(sent)
			r := httptest.NewRequest(c.method, "https://kcp/clusters/c"+c.path, strings.NewReader("{}"))
			response, err := rt.RoundTrip(r.WithContext(context.WithValue(r.Context(), announcedKey{}, "announced")))
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			want := []string{"sent"}
			if c.announced {
				want = []string{"announced", "sent"}
			}
			require.Equal(t, want, events)
		})
	}
}

// sender answers every request, and says so.
type sender func()

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	s()
	return passed{}.RoundTrip(r)
}
