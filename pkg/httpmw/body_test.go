package httpmw_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
)

// admit is an authentication that refuses everybody while refused is set.
type admit struct{ refused, asked atomic.Int64 }

func (a *admit) middleware(next http.Handler) http.Handler {
	return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
		a.asked.Add(1)
		if a.refused.Load() != 0 {
			return errs.New(errs.Unauthenticated, "no")
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// A person who is removed while they send the body of a write has no right to it when it has come.
func TestWholeBody_judgesASlowWriteAtItsEnd(t *testing.T) {
	t.Parallel()
	for name, removed := range map[string]bool{"removed meanwhile": true, "still there": false} {
		body, sending := io.Pipe()
		var a admit
		written := ""
		h := a.middleware(httpmw.BufferBody(a.middleware)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			raw, err := io.ReadAll(r.Body)
			if err == nil {
				written = string(raw)
			}
		})))
		w, done := httptest.NewRecorder(), make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/orgs", body))
		}()
		_, err := sending.Write([]byte(`{"displayName":`))
		require.NoError(t, err)
		require.EqualValues(t, 1, a.asked.Load(), "the caller was authenticated before the body was read")
		if removed {
			a.refused.Store(1)
		}
		_, err = sending.Write([]byte(`"ACME"}`))
		require.NoError(t, err)
		require.NoError(t, sending.Close())
		<-done
		require.EqualValues(t, 2, a.asked.Load())
		if removed {
			require.Equal(t, http.StatusUnauthorized, w.Code, name)
			require.Empty(t, written, name)
		} else {
			require.JSONEq(t, `{"displayName":"ACME"}`, written, name)
		}
	}
}

func TestWholeBody_passesTheBodyOn(t *testing.T) {
	t.Parallel()
	gone := errors.New("the client is gone")
	large := strings.Repeat("x", 2*httpapi.MaxBody)
	for name, c := range map[string]struct {
		body  io.Reader
		want  string
		err   error
		again int64
	}{
		"none":                  {http.NoBody, "", nil, 0},
		"whole":                 {strings.NewReader("{}"), "{}", nil, 1},
		"larger than any taken": {strings.NewReader(large), large[:httpapi.MaxBody+1], nil, 1},
		"cut off":               {io.MultiReader(strings.NewReader("{"), iotest.ErrReader(gone)), "{", gone, 1},
	} {
		var raw []byte
		var err, closed error
		var a admit
		called := false
		httpmw.BufferBody(a.middleware)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			called = true
			raw, err = io.ReadAll(r.Body)
			closed = r.Body.Close()
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/api/orgs", c.body))
		require.True(t, called, name)
		require.ErrorIs(t, err, c.err, name)
		require.NoError(t, closed, name)
		require.Equal(t, c.want, string(raw), name)
		require.Equal(t, c.again, a.asked.Load(), name)
	}
}

// post sends the header of a write and a part of its body on a connection, and reads the answer.
func post(t *testing.T, conn net.Conn, path string, length int, part string) *http.Response {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(deadline)))
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, length, part)
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response
}

// The server of this test has no timeouts. It would wait for the body without end.
func TestHoldBody_refusesWithoutReadingTheBody(t *testing.T) {
	t.Parallel()
	var a admit
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }
	mux.Handle("/api/", a.middleware(httpmw.BufferBody(a.middleware)(http.HandlerFunc(answer))))
	mux.Handle("/clusters/", a.middleware(httpmw.AdmitBody(http.HandlerFunc(answer))))
	server := httptest.NewServer(httpmw.LimitUnreadBody(mux))
	t.Cleanup(server.Close)
	dial := func() net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	for _, path := range []string{"/api/orgs", "/clusters/aaaa/api/v1/namespaces"} {
		a.refused.Store(0)
		conn := dial()
		for range 3 {
			require.Equal(t, http.StatusOK, post(t, conn, path, 2, "{}").StatusCode, "an admitted client keeps its connection")
		}
		a.refused.Store(1)
		refused := post(t, conn, path, httpapi.MaxBody, "{")
		require.Equal(t, http.StatusUnauthorized, refused.StatusCode)
		require.True(t, refused.Close)
		_, err := io.Copy(io.Discard, conn)
		require.NoError(t, err, "the server closes the connection without the rest")
	}
	conn := dial()
	unrouted := post(t, conn, "/nowhere", httpapi.MaxBody, "{")
	require.Equal(t, http.StatusNotFound, unrouted.StatusCode)
	require.True(t, unrouted.Close)
	_, err := io.Copy(io.Discard, conn)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, post(t, dial(), "/nowhere", 0, "").StatusCode)
}

// A client that is still sending when its connection is closed may get a reset and no answer.
func TestWholeBody_letsTheClientFinishALargeBody(t *testing.T) {
	t.Parallel()
	var a admit
	server := httptest.NewServer(httpmw.LimitUnreadBody(a.middleware(httpmw.BufferBody(a.middleware)(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) })))))
	t.Cleanup(server.Close)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	large := strings.Repeat("x", 2*httpapi.MaxBody)
	for range 2 {
		answered := post(t, conn, "/api/orgs", len(large), large)
		require.Equal(t, http.StatusRequestEntityTooLarge, answered.StatusCode)
		require.False(t, answered.Close)
	}
}
