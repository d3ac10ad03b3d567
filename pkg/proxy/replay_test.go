package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// replayed is a hub with room for the replay of one watch of 8 MiB at a time.
func replayed(t *testing.T, limit time.Duration, kcps http.HandlerFunc) (h *hub, watch func(version int) *http.Response) {
	server, transport := kcp(t, kcps)
	h = newHub(t, server.URL, transport, func(c *proxy.Config) {
		c.Load = proxy.LoadLimits{
			Bytes: 8 * mebibyte, Time: limit, Refused: func(string) {},
			Stored: func(tenancy.Workspace) (int64, int64, bool) { return 8, 8 * mebibyte, true },
		}
	})
	return h, func(version int) *http.Response {
		url, client := serveHTTP(t, h, version)
		response := get(t, client, url+"/clusters/aaaa/api/v1/secrets?watch=1")
		require.Equal(t, http.StatusOK, response.StatusCode)
		return response
	}
}

func (h *hub) inFlight(t *testing.T) float64 {
	used, _ := h.metric(t, "kedge_proxy_in_flight_bytes")
	return used
}

func (h *hub) roomIsFree(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return h.inFlight(t) == 0 }, deadline, time.Millisecond)
}

// After what exists the room is for others, and the watch goes on.
func TestWatch_countsAsAListUntilItHasSentWhatExists(t *testing.T) {
	t.Parallel()
	for name, sends := range map[string]int{"nothing more comes": 1, "as much as the list has": 9} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, news := make(chan struct{}), make(chan string)
			h, watch := replayed(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).Flush()
				<-begun
				for range sends {
					_, _ = w.Write(make([]byte, mebibyte))
				}
				_ = http.NewResponseController(w).Flush()
				select {
				case text := <-news:
					_, _ = io.WriteString(w, text)
				case <-r.Context().Done():
				}
			})
			for version := 1; version <= 2; version++ {
				response := watch(version)
				require.NotZero(t, h.inFlight(t))
				begun <- struct{}{}
				_, err := io.CopyN(io.Discard, response.Body, int64(sends)*mebibyte)
				require.NoError(t, err)
				h.roomIsFree(t)
				news <- "news"
				rest, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.Equal(t, "news", string(rest))
			}
		})
	}
}

// The attack: open watches of everything and do not read them, so that kcp keeps it for each.
func TestWatch_whoDoesNotReadWhatExistsLosesIt(t *testing.T) {
	t.Parallel()
	h, watch := replayed(t, time.Second, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, mebibyte/4)); err != nil {
				return
			}
		}
	})
	for version := 1; version <= 2; version++ {
		response := watch(version)
		h.roomIsFree(t)
		h.closed(t)
		_, err := io.Copy(io.Discard, response.Body)
		require.Error(t, err)
	}
}

// A watch of which the events never cease, and whose client reads them, goes on.
func TestWatch_isNotCutWhileItsClientKeepsUp(t *testing.T) {
	t.Parallel()
	const limit = 400 * time.Millisecond
	h, watch := replayed(t, limit, func(w http.ResponseWriter, r *http.Request) {
		events := time.NewTicker(5 * time.Millisecond)
		defer events.Stop()
		for {
			_, _ = io.WriteString(w, "event")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-events.C:
			case <-r.Context().Done():
				return
			}
		}
	})
	for version := 1; version <= 2; version++ {
		response, began := watch(version), time.Now()
		for p := make([]byte, 64); time.Since(began) < 2*limit; {
			_, err := response.Body.Read(p)
			require.NoError(t, err)
		}
		require.Zero(t, h.inFlight(t))
		require.NoError(t, response.Body.Close())
	}
}

// steady is a kcp that sends a chunk of an answer every 20 ms.
type steady struct {
	chunk, chunks int
	mu            sync.Mutex
	begun         int
}

func (k *steady) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	k.begun++
	k.mu.Unlock()
	w := httptest.NewRecorder().Result()
	w.Request, w.Body = r, &steadily{left: k.chunks, chunk: k.chunk}
	return w, nil
}

type steadily struct{ left, chunk int }

func (b *steadily) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	b.left--
	<-time.After(20 * time.Millisecond)
	return min(b.chunk, len(p)), nil
}

func (b *steadily) Close() error { return nil }

// A watch keeps the room for as long as kcp takes to send what exists: with more at once a slow kcp gets slower. The events
// of a busy Workspace end it within a moment.
func TestWatch_keepsTheRoomWhileKCPSendsWhatExists(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ chunk, begun int }{
		"what exists": {1 << 20, 1},
		"events":      {100, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				kcp := &steady{chunk: c.chunk, chunks: 250}
				l := &loaded{refused: &refusals{}}
				l.hub = newHub(t, kcpURL, kcp, func(config *proxy.Config) {
					config.Load = proxy.LoadLimits{
						Bytes: 8 * mebibyte, Refused: l.refused.add,
						Stored: func(tenancy.Workspace) (int64, int64, bool) { return 8, 8 * mebibyte, true },
					}
				})
				l.send(2, http.MethodGet, "/clusters/aaaa/api/v1/secrets?watch=true", "alice")
				<-time.After(4 * time.Second)
				kcp.mu.Lock()
				require.Equal(t, c.begun, kcp.begun)
				kcp.mu.Unlock()
				l.running.Wait()
				require.Equal(t, 2, l.answered(http.StatusOK))
			})
		})
	}
}

// A watch that waits for another room holds no place among those that begin, so that one that needs no such room begins at once.
func TestWatch_takesItsPlaceToBeginLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1, proxy.LoadLimits{Requests: 10, Bytes: 64 * mebibyte})
		l.send(10, http.MethodGet, "/clusters/aaaa/api/v1/namespaces/default/secrets/one", "alice")
		l.send(20, http.MethodGet, watchPath, "alice")
		require.Equal(t, 10, l.kcp.has("aaaa"), "those that list what exists wait for the room of requests")
		l.send(1, http.MethodGet, watchPath+"&resourceVersion=7", "alice")
		require.Equal(t, 11, l.kcp.has("aaaa"))
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 31, l.answered(http.StatusOK))
	})
}

// The attack: open as many watches of what is new as may begin at once and read none of them, so that no other one of the
// Workspace begins.
func TestWatch_whoDoesNotReadGivesThePlaceToBeginBack(t *testing.T) {
	t.Parallel()
	for version := 1; version <= 2; version++ {
		server, transport := kcp(t, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, mebibyte/4)); err != nil {
					return
				}
			}
		})
		h := newHub(t, server.URL, transport, func(c *proxy.Config) {
			c.Load = proxy.LoadLimits{
				// What may come of a watch before it has begun is more than connections hold.
				Bytes: 256 * mebibyte, Time: time.Second, Refused: func(string) {},
				Stored: func(tenancy.Workspace) (int64, int64, bool) { return 1, 100, true },
			}
		})
		url, client := serveHTTP(t, h, version)
		if transport, ok := client.Transport.(*http.Transport); ok {
			// The connection of HTTP/2 holds less than a light answer, so that only the time ends the beginning.
			transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
		}
		for range 17 {
			response := get(t, client, url+"/clusters/aaaa/api/v1/secrets?watch=1&resourceVersion=7")
			require.Equal(t, http.StatusOK, response.StatusCode)
		}
	}
}
