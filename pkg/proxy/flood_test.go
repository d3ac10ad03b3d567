package proxy_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/proxy"
)

// flood writes numbered lines as fast as it can until that fails. A number is
// taken before its line is written: what was not taken when Recheck returned was
// written afterwards.
func flood(w io.Writer, taken *atomic.Int64) {
	for {
		if _, err := fmt.Fprintf(w, "%d\n", taken.Add(1)); err != nil {
			return
		}
	}
}

// last reads lines of a flood to their end and returns the number of the last
// whole one, and how they ended. begun gets the first.
func last(r io.Reader, begun chan<- struct{}) (int64, error) {
	reader := bufio.NewReader(r)
	number := int64(0)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return number, err
		}
		n, err := strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 64)
		if err != nil {
			return number, err
		}
		if number == 0 {
			begun <- struct{}{}
		}
		number = n
	}
}

type lastLine struct {
	number int64
	err    error
}

// read is last, elsewhere; it returns when the first line is there.
func read(t *testing.T, r io.Reader) <-chan lastLine {
	t.Helper()
	begun, ended := make(chan struct{}, 1), make(chan lastLine, 1)
	go func() {
		number, err := last(r, begun)
		ended <- lastLine{number, err}
	}()
	awaitLine(t, begun)
	return ended
}

func awaitLine(t *testing.T, begun <-chan struct{}) {
	t.Helper()
	select {
	case <-begun:
	case <-time.After(deadline):
		t.Fatal("not one line came through")
	}
}

const rounds = 30

// patient has the clients of what was cut take their time: they share the machine
// with a flood.
func patient(c *proxy.Config) { c.FlushTimeout = time.Minute }

// TestRecheck_nothingPassesAfterIt takes the right away in the middle of as
// many events as kcp can send.
func TestRecheck_nothingPassesAfterIt(t *testing.T) {
	t.Parallel()
	var taken atomic.Int64
	server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) { flood(w, &taken) })
	for version := 1; version <= 2; version++ {
		h := newHub(t, server.URL, transport, patient)
		url, client := serveHTTP(t, h, version)
		for range rounds {
			h.rights.set("alice", false, adminOf(orgA))
			response := get(t, client, url+"/clusters/aaaa/api/v1/secrets?watch=1")
			require.Equal(t, http.StatusOK, response.StatusCode)
			ended := read(t, response.Body)
			h.rights.set("alice", false)
			h.proxy.Recheck("alice")
			limit := taken.Load()
			got := <-ended
			require.LessOrEqual(t, got.number, limit)
			require.ErrorIs(t, got.err, io.EOF)
			require.NotErrorIs(t, got.err, io.ErrUnexpectedEOF)
		}
		h.closed(t)
		require.Equal(t, rounds, h.cuts(t))
	}
}

// dial connects to a server, over TLS where that has it.
func dial(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	address := server.Listener.Addr().String()
	if server.TLS == nil {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		return conn
	}
	conn, err := tls.Dial("tcp", address, server.Client().Transport.(*http.Transport).TLSClientConfig)
	require.NoError(t, err)
	return conn
}

// fronts are a hub with and without TLS, which end connections in two ways.
func fronts(t *testing.T, h http.Handler) []*httptest.Server {
	plain, secure := httptest.NewServer(h), httptest.NewTLSServer(h)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	return []*httptest.Server{plain, secure}
}

// TestRecheck_nothingPassesAnUpgradeAfterIt does the same through an
// upgraded connection, both ways at once.
func TestRecheck_nothingPassesAnUpgradeAfterIt(t *testing.T) {
	t.Parallel()
	var down, up atomic.Int64
	begun, reached := make(chan struct{}, 1), make(chan int64, 1)
	server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := accept(w)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		go flood(conn, &down)
		number, _ := last(buffered, begun)
		reached <- number
	})
	h := newHub(t, server.URL, transport)
	for _, front := range fronts(t, h) {
		for range rounds {
			h.rights.set("alice", false, adminOf(orgA))
			conn := dial(t, front)
			reader, response := upgrade(t, conn, "alice")
			require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
			go flood(conn, &up)
			ended := read(t, reader)
			awaitLine(t, begun)
			h.rights.set("alice", false)
			h.proxy.Recheck("alice")
			limitDown, limitUp := down.Load(), up.Load()
			got := <-ended
			require.LessOrEqual(t, got.number, limitDown, "from kcp to the client")
			require.Error(t, got.err)
			require.NotErrorIs(t, got.err, os.ErrDeadlineExceeded, "the connection is closed")
			require.LessOrEqual(t, <-reached, limitUp, "from the client to kcp")
		}
	}
	h.closed(t)
	require.Equal(t, 2*rounds, h.cuts(t))
}

// backend is an upgraded connection to kcp that does as the test says, and stays
// open.
type backend struct{ read, write func(p []byte) (int, error) }

func (b *backend) Read(p []byte) (int, error)  { return b.read(p) }
func (b *backend) Write(p []byte) (int, error) { return b.write(p) }
func (b *backend) Close() error                { return nil }

// TestRecheck_dropsWhatIsBetweenReadAndWrite ends the right while the hub reads from
// kcp, and while it writes to it with more of the client's to come.
func TestRecheck_dropsWhatIsBetweenReadAndWrite(t *testing.T) {
	t.Parallel()
	var h *hub
	var kcps atomic.Pointer[backend]
	h = newHub(t, kcpURL, roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusSwitchingProtocols, Header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}}, Body: kcps.Load(), Request: r,
		}, nil
	}))
	end := func() {
		h.rights.set("alice", false)
		h.proxy.Recheck("alice")
	}
	for _, front := range fronts(t, h) {
		for round := range rounds {
			sent, done := make(chan struct{}), make(chan struct{})
			reads, writes := 0, 0
			down := &backend{
				read: func(p []byte) (int, error) {
					if reads++; reads == 2 {
						end()
					}
					return copy(p, "event"), nil
				},
				write: func(p []byte) (int, error) { return len(p), nil },
			}
			up := &backend{
				read: func([]byte) (int, error) { <-done; return 0, io.EOF },
				write: func(p []byte) (int, error) {
					if writes++; writes == 1 {
						sent <- struct{}{}
						<-sent
						end()
					}
					return len(p), nil
				},
			}
			h.rights.set("alice", false, adminOf(orgA))
			kcps.Store([]*backend{down, up}[round%2])
			conn := dial(t, front)
			reader, response := upgrade(t, conn, "alice")
			require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
			if round%2 == 1 {
				_, err := io.WriteString(conn, "first")
				require.NoError(t, err)
				<-sent
				_, err = io.WriteString(conn, "second")
				require.NoError(t, err)
				sent <- struct{}{}
			}
			got, err := io.ReadAll(reader)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection is closed")
			h.closed(t)
			close(done)
			if round%2 == 0 {
				require.Equal(t, "event", string(got))
				continue
			}
			require.Empty(t, got)
			require.Equal(t, 1, writes)
		}
	}
}

// TestRecheck_doesNotWaitForTheClient has clients who do not take what kcp sends, until
// all that is between them is full, and one who does not send what it announced.
func TestRecheck_doesNotWaitForTheClient(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	fill := func(w io.Writer) {
		for chunk := make([]byte, 64<<10); ; {
			n, err := w.Write(chunk)
			if err != nil {
				return
			}
			written.Add(int64(n))
		}
	}
	server, transport := kcp(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			fill(w)
			return
		}
		if conn, _, err := accept(w); err == nil {
			defer func() { _ = conn.Close() }()
			fill(conn)
		}
	})
	stuck := func() {
		last, times := int64(0), 0
		require.Eventually(t, func() bool {
			now := written.Load()
			if now == 0 || now != last {
				last, times = now, 0
			}
			times++
			return times > 50
		}, deadline, 2*time.Millisecond)
	}
	// Nothing is taken of what is cut, so who waits for a client waits as long as this.
	const parting = 2 * time.Second
	for _, tc := range []struct {
		name string
		open func(t *testing.T, h *hub)
	}{
		{"HTTP/1.1", func(t *testing.T, h *hub) {
			url, client := serveHTTP(t, h, 1)
			get(t, client, url+"/clusters/aaaa/api/v1/secrets?watch=1")
			stuck()
		}},
		{"HTTP/2", func(t *testing.T, h *hub) {
			url, client := serveHTTP(t, h, 2)
			get(t, client, url+"/clusters/aaaa/api/v1/secrets?watch=1")
			stuck()
		}},
		{"upgraded", func(t *testing.T, h *hub) {
			upgrade(t, dial(t, fronts(t, h)[0]), "alice")
			stuck()
		}},
		{"upgraded, over TLS", func(t *testing.T, h *hub) {
			upgrade(t, dial(t, fronts(t, h)[1]), "alice")
			stuck()
		}},
		{"a body that does not come", func(t *testing.T, h *hub) {
			conn := dial(t, fronts(t, h)[0])
			t.Cleanup(func() { _ = conn.Close() })
			_, err := fmt.Fprintf(conn, "GET /clusters/aaaa/api/v1/secrets?watch=1 HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer alice%s\r\nContent-Length: 9\r\n\r\n", tokenSuffix)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return h.streams(t) == 1 }, deadline, time.Millisecond)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHub(t, server.URL, transport, func(c *proxy.Config) { c.FlushTimeout = parting })
			written.Store(0)
			tc.open(t, h)
			require.EqualValues(t, 1, h.streams(t))
			h.rights.set("alice", false)
			began := time.Now()
			h.proxy.Recheck("alice")
			require.Less(t, time.Since(began), parting, "it waits for nobody")
			h.closed(t)
			require.Equal(t, 1, h.cuts(t))
		})
	}
}

// TestStreams_leaveNothingBehind counts goroutines, so it runs alone.
func TestStreams_leaveNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("streams", func(t *testing.T) {
		server, transport := kcp(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "" {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			if conn, buffered, err := accept(w); err == nil {
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(io.Discard, buffered)
			}
		})
		h := newHub(t, server.URL, transport)
		plain := fronts(t, h)[0]
		for range 20 {
			h.rights.set("alice", false, adminOf(orgA))
			response := get(t, plain.Client(), plain.URL+"/clusters/aaaa/api/v1/secrets?watch=1")
			_, upgraded := upgrade(t, dial(t, plain), "alice")
			require.Equal(t, http.StatusSwitchingProtocols, upgraded.StatusCode)
			h.rights.set("alice", false)
			h.proxy.Recheck("alice")
			_, err := io.Copy(io.Discard, response.Body)
			require.NoError(t, err)
		}
		h.closed(t)
	})
	// One goroutine is the condition's own.
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, deadline, time.Millisecond)
}

// TestUpgrade_mayCloseOneWayFirst has a client who has said all, and then gets the
// answer to it.
func TestUpgrade_mayCloseOneWayFirst(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := accept(w)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		said, _ := io.ReadAll(buffered)
		_, _ = fmt.Fprintf(conn, "%d bytes", len(said))
	})
	h := newHub(t, server.URL, transport)
	for _, front := range fronts(t, h) {
		conn := dial(t, front)
		reader, response := upgrade(t, conn, "alice")
		require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
		_, err := io.WriteString(conn, "all")
		require.NoError(t, err)
		require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
		answer, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.Equal(t, "3 bytes", string(answer))
	}
	h.closed(t)
}
