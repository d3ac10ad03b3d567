package proxy_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/proxy"
)

// credential is the credential of every caller of a hub: it can end, and it may expire.
type credential struct {
	ended atomic.Pointer[errs.Error]
	at    atomic.Pointer[time.Time]
	clock *clocktesting.FakeClock
}

func newCredential(at time.Time) *credential {
	c := &credential{clock: clocktesting.NewFakeClock(at.Add(-time.Minute))}
	c.at.Store(&at)
	return c
}

func (c *credential) end(code errs.Code) { c.ended.Store(errs.New(code, "the session was ended")) }

func (c *credential) valid() error {
	if ended := c.ended.Load(); ended != nil {
		return ended
	}
	return nil
}

// use has every caller of a hub use the credential.
func (c *credential) use(config *proxy.Config) {
	config.Clock = c.clock
	config.Caller = func(r *http.Request) proxy.Caller {
		as := callerOf(r).(caller)
		as.valid, as.endsAt = c.valid, func() time.Time { return *c.at.Load() }
		return as
	}
}

func TestCredential_streamsEndWhenItExpires(t *testing.T) {
	t.Parallel()
	for version := 1; version <= 2; version++ {
		kcps := &source{open: map[string]chan string{}}
		server, transport := kcp(t, kcps.ServeHTTP)
		c := newCredential(time.Unix(1_000_000, 0))
		h := newHub(t, server.URL, transport, c.use)
		url, client := serveHTTP(t, h, version)
		w := kcps.watch(t, client, url, "alice", "aaaa")
		w.goesOn(t)
		c.clock.Step(time.Minute - 1)
		w.goesOn(t)
		c.clock.Step(1)
		w.hasEnded(t)
		h.closed(t)
		require.Zero(t, h.cuts(t), "no right was revoked")
	}
}

// A token that is rotated ends sooner than it did when its stream was opened.
func TestCredential_streamsFollowAnEndThatIsBroughtForward(t *testing.T) {
	t.Parallel()
	kcps := &source{open: map[string]chan string{}}
	server, transport := kcp(t, kcps.ServeHTTP)
	c := newCredential(time.Unix(1_000_000, 0))
	h := newHub(t, server.URL, transport, c.use)
	url, client := serveHTTP(t, h, 2)
	w := kcps.watch(t, client, url, "alice", "aaaa")
	w.goesOn(t)
	sooner := c.clock.Now().Add(10 * time.Second)
	c.at.Store(&sooner)
	h.proxy.Recheck("alice")
	w.goesOn(t)
	c.clock.Step(10 * time.Second)
	w.hasEnded(t)
	h.closed(t)
}

// A session that is idle ends later if it is used meanwhile.
func TestCredential_streamsFollowAnEndThatMoves(t *testing.T) {
	t.Parallel()
	kcps := &source{open: map[string]chan string{}}
	server, transport := kcp(t, kcps.ServeHTTP)
	c := newCredential(time.Unix(1_000_000, 0))
	h := newHub(t, server.URL, transport, c.use)
	url, client := serveHTTP(t, h, 2)
	w := kcps.watch(t, client, url, "alice", "aaaa")
	later := c.at.Load().Add(time.Minute)
	c.at.Store(&later)
	c.clock.Step(time.Minute)
	require.Eventually(t, c.clock.HasWaiters, 10*time.Second, time.Millisecond)
	w.goesOn(t)
	c.clock.Step(time.Minute)
	w.hasEnded(t)
	h.closed(t)
}

func TestCredential_anUpgradedConnectionEndsToo(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := accept(w)
		if err == nil {
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	})
	c := newCredential(time.Unix(1_000_000, 0))
	h := newHub(t, server.URL, transport, c.use)
	reader, response := upgrade(t, dial(t, fronts(t, h)[0]), "alice")
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	c.clock.Step(time.Minute)
	_, err := reader.ReadByte()
	require.Error(t, err)
	h.closed(t)
}

// kcp authenticates a request when its header arrives and does not look again.
func TestCredential_aBodyIsNotSentPastTheExpiry(t *testing.T) {
	t.Parallel()
	var whole atomic.Bool
	server, transport := kcp(t, func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		whole.Store(len(raw) == 2)
	})
	c := newCredential(time.Unix(1_000_000, 0))
	h := newHub(t, server.URL, transport, c.use)
	url, client := serve(t, h)
	body, rest := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/clusters/aaaa/api/v1/secrets", body)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer alice"+tokenSuffix)
	r.ContentLength = 2
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		response, err := client.Do(r)
		if assert.NoError(t, err) {
			raw, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			assert.Equal(t, http.StatusUnauthorized, response.StatusCode, "%s", raw)
			assert.Contains(t, string(raw), "expired")
		}
	}()
	_, err = io.WriteString(rest, "{")
	require.NoError(t, err)
	require.Eventually(t, c.clock.HasWaiters, deadline, time.Millisecond)
	c.clock.Step(time.Minute)
	<-answered
	_ = rest.Close()
	server.Close()
	require.False(t, whole.Load())
}

func TestCredential_timersEndWithTheirStreams(t *testing.T) {
	t.Parallel()
	c := newCredential(time.Unix(1_000_000, 0))
	h := newHub(t, kcpURL, &recorder{}, c.use)
	require.Equal(t, http.StatusOK, h.do(request(http.MethodGet, "/clusters/aaaa/api/v1/secrets?watch=1", "alice")).Code)
	require.False(t, c.clock.HasWaiters())
}

func TestRecheck_endsAStreamWithItsSession(t *testing.T) {
	t.Parallel()
	for _, code := range []errs.Code{errs.Unauthenticated, errs.Unavailable} {
		kcps := &source{open: map[string]chan string{}}
		server, transport := kcp(t, kcps.ServeHTTP)
		c := newCredential(time.Time{})
		h := newHub(t, server.URL, transport, c.use)
		url, client := serve(t, h)
		w := kcps.watch(t, client, url, "alice", "aaaa")
		h.proxy.Recheck("alice")
		w.goesOn(t)
		c.end(code)
		h.proxy.Recheck("alice")
		w.hasEnded(t)
		h.closed(t)
		require.Equal(t, 1, h.cuts(t))
	}
}

// The session ends between the authentication and the gate.
func TestServe_refusesACredentialThatHasJustEnded(t *testing.T) {
	t.Parallel()
	rec, c := &recorder{}, newCredential(time.Time{})
	h := newHub(t, kcpURL, rec, c.use)
	c.end(errs.Unauthenticated)
	w := h.do(request(http.MethodGet, "/clusters/aaaa/api/v1/secrets", "alice"))
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Contains(t, statusOf(t, w.Body.Bytes()).Message, "session was ended")
	require.Empty(t, rec.requests)
}
