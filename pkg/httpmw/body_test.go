package httpmw_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// An admin who is removed while they send the body of a write has no right to it when
// it has come.
func TestWholeBody_judgesASlowWriteAtItsEnd(t *testing.T) {
	t.Parallel()
	body, sending := io.Pipe()
	judged := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		httpmw.WholeBody(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			raw, err := io.ReadAll(r.Body)
			if err == nil {
				judged <- string(raw)
			}
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/api/orgs", body))
	}()
	_, err := sending.Write([]byte(`{"displayName":`))
	require.NoError(t, err)
	require.Empty(t, judged, "there is more to come")
	_, err = sending.Write([]byte(`"ACME"}`))
	require.NoError(t, err)
	require.Empty(t, judged)
	require.NoError(t, sending.Close())
	<-done
	require.JSONEq(t, `{"displayName":"ACME"}`, <-judged)
}

func TestWholeBody_passesTheBodyOn(t *testing.T) {
	t.Parallel()
	gone := errors.New("the client is gone")
	large := strings.Repeat("x", 2*httpapi.MaxBody)
	for name, c := range map[string]struct {
		body io.Reader
		want string
		err  error
	}{
		"none":                  {http.NoBody, "", nil},
		"whole":                 {strings.NewReader("{}"), "{}", nil},
		"larger than any taken": {strings.NewReader(large), large[:httpapi.MaxBody+1], nil},
		"cut off":               {io.MultiReader(strings.NewReader("{"), iotest.ErrReader(gone)), "{", gone},
	} {
		var raw []byte
		var err, closed error
		called := false
		httpmw.WholeBody(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			called = true
			raw, err = io.ReadAll(r.Body)
			closed = r.Body.Close()
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/api/orgs", c.body))
		require.True(t, called, name)
		require.ErrorIs(t, err, c.err, name)
		require.NoError(t, closed, name)
		require.Equal(t, c.want, string(raw), name)
	}
}
