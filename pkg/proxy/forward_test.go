package proxy_test

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

var errTest = errors.New("dial tcp 10.0.0.1:6443: connect: connection refused")

// gone is what a transport says that knows more than one request can tell.
func gone(err error) error {
	e := errs.Wrap(errs.Unavailable, err, "kcp cannot be reached")
	e.RetryAfter = 2 * time.Second
	return e
}

func TestForward_kcpDownOrSlow(t *testing.T) {
	t.Parallel()
	server, fast := kcp(t, func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/slow") {
			<-r.Context().Done()
		}
	})
	impatient := fast.Clone()
	t.Cleanup(impatient.CloseIdleConnections)
	impatient.ResponseHeaderTimeout = 50 * time.Millisecond
	distrusting := transportFor(t, x509.NewCertPool())
	for _, tc := range []struct {
		name, path string
		transport  http.RoundTripper
		code       int
	}{
		{"up", "/api/v1", fast, 200},
		{"slow", "/api/slow", impatient, 504},
		{"down", "/api/v1", roundTripper(func(*http.Request) (*http.Response, error) { return nil, errTest }), 502},
		{"known to be gone", "/api/v1", roundTripper(func(*http.Request) (*http.Response, error) { return nil, gone(errTest) }), 503},
		{"somebody else", "/api/v1", distrusting, 502},
		{"changes the protocol unasked", "/api/v1", roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusSwitchingProtocols, Header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"h2c"}},
				Body: http.NoBody, Request: r,
			}, nil
		}), 502},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newHub(t, server.URL, tc.transport).do(request(http.MethodGet, "/clusters/aaaa"+tc.path, "alice"))
			require.Equal(t, tc.code, w.Code, w.Body)
			if tc.code == http.StatusOK {
				return
			}
			require.Equal(t, "2", w.Header().Get("Retry-After"))
			status := statusOf(t, w.Body.Bytes())
			require.EqualValues(t, 2, status.Details.RetryAfterSeconds)
			for _, internal := range []string{"10.0.0.1", "127.0.0.1", "x509", "dial", "h2c"} {
				require.NotContains(t, w.Body.String(), internal)
			}
		})
	}
}

func TestForward_aClientThatGoesAwayIsNoFailure(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	h := newHub(t, kcpURL, roundTripper(func(r *http.Request) (*http.Response, error) {
		close(arrived)
		<-r.Context().Done()
		return nil, r.Context().Err()
	}))
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-arrived; leave() }()
	w := h.do(request(http.MethodGet, "/clusters/aaaa/api", "alice").WithContext(ctx))
	require.Equal(t, 499, w.Code)
	require.Empty(t, h.logs.All())
}

func TestForward_aBodyThatEndsEarlyIsNoFailure(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	h := newHub(t, server.URL, transport)
	for body, code := range map[io.Reader]int{
		strings.NewReader("12345678"):                        200,
		io.MultiReader(strings.NewReader("1234"), failing{}): 400,
	} {
		r := request(http.MethodPost, "/clusters/aaaa/api/v1/namespaces", "alice")
		r.Body, r.ContentLength = io.NopCloser(body), 8
		require.Equal(t, code, h.do(r).Code)
	}
	require.Empty(t, h.logs.FilterLevelExact(zap.WarnLevel).All())
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestForward_doesNotBufferAWatch makes kcp wait with each event until the client has
// the one before.
func TestForward_doesNotBufferAWatch(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for event := range next {
			_, _ = io.WriteString(w, event)
			_ = http.NewResponseController(w).Flush()
		}
	})
	h := newHub(t, server.URL, transport)
	url, client := serve(t, h)
	response := get(t, client, url+"/clusters/aaaa/api/v1/namespaces?watch=1")
	require.Equal(t, http.StatusOK, response.StatusCode, "the header comes before any event")
	require.EqualValues(t, 1, h.streams(t))
	events := bufio.NewScanner(response.Body)
	for i := range 100 {
		next <- fmt.Sprintf("{\"n\":%d}\n", i)
		require.True(t, events.Scan(), events.Err())
		require.Equal(t, fmt.Sprintf(`{"n":%d}`, i), events.Text())
	}
	close(next)
	require.False(t, events.Scan())
	require.NoError(t, events.Err(), "a watch that kcp ends, ends well")
	h.closed(t)
}

func get(tb testing.TB, client *http.Client, url string) *http.Response {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), deadline)
	tb.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(tb, err)
	r.Header.Set("Authorization", "Bearer alice"+tokenSuffix)
	response, err := client.Do(r)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// deadlines is a writer that remembers what became of its deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	cleared int
	write   []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		d.cleared++
	}
	return nil
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.write = append(d.write, t)
	return d.SetReadDeadline(t)
}

// An answer that kcp keeps open has no deadline, is counted, and can be ended.
func TestStreams_areWhatKCPKeepsOpen(t *testing.T) {
	t.Parallel()
	const namespaces = "/clusters/aaaa/api/v1/namespaces"
	for _, tc := range []struct {
		target string
		stream bool
		header []string
	}{
		{namespaces, false, nil},
		{namespaces + "?limit=500", false, nil},
		{namespaces + "?watch=false", false, nil},
		{namespaces + "?watch=False&watch=true", false, nil},
		{namespaces + "?watch=0", false, nil},
		{namespaces + "?labelSelector=watch%3Dtrue", false, nil},
		{namespaces + "/watch", false, nil},
		{namespaces + "?watch=true", true, nil},
		{namespaces + "?watch=1", true, nil},
		{namespaces + "?watch=TRUE", true, nil},
		{namespaces + "?watch=t", true, nil},
		{namespaces + "?watch", true, nil},
		{namespaces + "?%77atch=true", true, nil},
		{namespaces + "?limit=%zz&watch=true", true, nil},
		{namespaces + "/a/pods/b/log?follow=true", true, nil},
		{namespaces + "/a?watch=true", false, nil},
		{namespaces + "?fieldSelector=metadata.name%3Da&watch=true", true, nil},
		{"/clusters/aaaa/version?watch=true", false, nil},
		{namespaces + "/a/pods/b/log", false, nil},
		{namespaces + "/a/pods/b/log?follow=FALSE", false, nil},
		{namespaces + "/a/pods?follow=true", false, nil},
		{"/clusters/aaaa/api/v1/watch/namespaces", true, nil},
		{"/clusters/aaaa/apis/apps/v1/watch/deployments", true, nil},
		{"/clusters/aaaa/apis/watch/v1/things", false, nil},
		{namespaces + "/a/pods/b/exec", true, []string{"Connection", "Upgrade", "Upgrade", "SPDY/3.1"}},
	} {
		t.Run(tc.target, func(t *testing.T) {
			t.Parallel()
			var h *hub
			open := -1.0
			rec := &recorder{}
			h = newHub(t, kcpURL, roundTripper(func(r *http.Request) (*http.Response, error) {
				open = h.streams(t)
				return rec.RoundTrip(r)
			}))
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			h.ServeHTTP(w, request(http.MethodGet, tc.target, "alice", tc.header...))
			require.Equal(t, http.StatusOK, w.Code)
			if tc.stream {
				require.EqualValues(t, 1, open)
				require.Equal(t, 2, w.cleared)
			} else {
				require.Zero(t, open)
				require.Zero(t, w.cleared)
			}
			require.Zero(t, h.streams(t))
		})
	}
}

// TestDrain_endsStreamsAndNothingElse has a watch, a watch whose header is still
// to come and an ordinary request open when the drain begins.
func TestDrain_endsStreamsAndNothingElse(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	release := sync.OnceFunc(func() { close(finish) })
	defer release()
	arrived := make(chan struct{}, 3)
	server, transport := kcp(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/open") {
			_ = http.NewResponseController(w).Flush()
		}
		arrived <- struct{}{}
		select {
		case <-finish:
		case <-r.Context().Done():
		}
	})
	h := newHub(t, server.URL, transport)
	url, client := serve(t, h)
	open := get(t, client, url+"/clusters/aaaa/api/v1/open?watch=1")
	answers := make(chan *httptest.ResponseRecorder, 2)
	go func() { answers <- h.do(request(http.MethodGet, "/clusters/aaaa/api/v1/unanswered?watch=1", "alice")) }()
	ordinary := make(chan *httptest.ResponseRecorder, 1)
	go func() { ordinary <- h.do(request(http.MethodGet, "/clusters/aaaa/api/ordinary", "alice")) }()
	for range 3 {
		<-arrived
	}
	require.InDelta(t, 2, h.streams(t), 0)

	h.drain()
	_, err := io.Copy(io.Discard, open.Body)
	require.NoError(t, err, "a watch that was cut ends well, so that its client lists again")
	stopped := <-answers
	require.Equal(t, http.StatusServiceUnavailable, stopped.Code)
	require.NotEmpty(t, stopped.Header().Get("Retry-After"))
	statusOf(t, stopped.Body.Bytes())
	h.closed(t)

	late := h.do(request(http.MethodGet, "/clusters/aaaa/api/v1/open?watch=1", "alice"))
	require.Equal(t, http.StatusServiceUnavailable, late.Code)
	require.Empty(t, ordinary, "an ordinary request goes on")
	release()
	require.Equal(t, http.StatusOK, (<-ordinary).Code)
	require.Empty(t, h.logs.FilterLevelExact(zap.ErrorLevel).All())
}

// TestUpgrade_endsWithTheHub speaks through a changed protocol, both
// ways, until the drain.
func TestUpgrade_endsWithTheHub(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	server, transport := kcp(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer alice"+tokenSuffix || r.Header.Get("Upgrade") != "SPDY/3.1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		conn, buffered, err := accept(w)
		if err != nil {
			ended <- err
			return
		}
		defer func() { _ = conn.Close() }()
		_, err = io.Copy(conn, buffered)
		ended <- err
	})
	h := newHub(t, server.URL, transport)
	front := httptest.NewServer(h)
	t.Cleanup(front.Close)

	ask := func(user string) (net.Conn, *bufio.Reader, *http.Response) {
		conn, err := net.Dial("tcp", front.Listener.Addr().String())
		require.NoError(t, err)
		reader, response := upgrade(t, conn, user)
		return conn, reader, response
	}

	_, _, refused := ask("bob")
	require.Equal(t, http.StatusForbidden, refused.StatusCode, "refused before anything is hijacked")

	conn, reader, response := ask("alice")
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	require.Empty(t, response.Header["Set-Cookie"])
	require.EqualValues(t, 1, h.streams(t))
	for i := range 3 {
		line := fmt.Sprintf("line %d\n", i)
		_, err := io.WriteString(conn, line)
		require.NoError(t, err)
		got, err := reader.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, line, got)
	}
	h.drain()
	_, err := reader.ReadString('\n')
	require.Error(t, err)
	t.Log(<-ended)
	h.closed(t)
}
