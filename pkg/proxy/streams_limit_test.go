package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/proxy"
)

// refusals are the limits that refused a stream.
type refusals struct {
	mu    sync.Mutex
	names []string
}

func (r *refusals) add(limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, limit)
}

func (r *refusals) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.names)
}

const watchPath = "/clusters/aaaa/api/v1/secrets?watch=1"

func TestStreams_areLimitedPerPersonAndInAll(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		limits proxy.StreamLimits
		// bob is the status of a watch of Bob's while Alice has two open.
		bob     int
		refused []string
	}{
		{"per person", proxy.StreamLimits{PerPerson: 2}, http.StatusOK, []string{"streams_per_person"}},
		{"in all", proxy.StreamLimits{All: 2}, http.StatusTooManyRequests, []string{"streams", "streams"}},
		{"both", proxy.StreamLimits{All: 3, PerPerson: 2}, http.StatusOK, []string{"streams_per_person"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			kcps, refused := &source{open: map[string]chan string{}}, &refusals{}
			server, transport := kcp(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") != "" && r.Header.Get("User-Agent") != "once" {
					kcps.ServeHTTP(w, r)
				}
			})
			h := newHub(t, server.URL, transport, func(c *proxy.Config) {
				c.Streams = tc.limits
				c.Streams.Refused = refused.add
			})
			url, client := serve(t, h)
			h.rights.set("alice", false, adminOf(orgA), adminOf(orgB))
			h.rights.set("bob", false, adminOf(orgA))
			ended := kcps.watch(t, client, url, "alice", "bbbb")
			kept := kcps.watch(t, client, url, "alice", "aaaa")

			w := h.do(request(http.MethodGet, watchPath, "alice", "User-Agent", "once"))
			require.Equal(t, http.StatusTooManyRequests, w.Code)
			require.Equal(t, "5", w.Header().Get("Retry-After"))
			require.EqualValues(t, http.StatusTooManyRequests, statusOf(t, w.Body.Bytes()).Code)
			require.Equal(t, http.StatusOK, h.do(request(http.MethodGet, "/clusters/aaaa/api/v1/secrets", "alice")).Code, "an ordinary request is no stream")
			require.Equal(t, tc.bob, h.do(request(http.MethodGet, watchPath, "bob", "User-Agent", "once")).Code)
			require.Equal(t, tc.refused, refused.all())
			kept.goesOn(t)

			// A stream that ends makes room, and only it.
			h.rights.set("alice", false, adminOf(orgA))
			h.proxy.Recheck("alice")
			ended.hasEnded(t)
			require.Eventually(t, func() bool { return h.streams(t) == 1 }, deadline, time.Millisecond)
			kcps.watch(t, client, url, "alice", "aaaa")
			require.Equal(t, http.StatusTooManyRequests, h.do(request(http.MethodGet, watchPath, "alice")).Code)
		})
	}
}

// crowded returns a hub in which alice has 12 of at most 16 watches, in the Workspace of Org A, and bob is of Org B.
func crowded(t *testing.T, options ...func(*proxy.Config)) (*hub, *refusals) {
	t.Helper()
	kcps, refused := &source{open: map[string]chan string{}}, &refusals{}
	server, transport := kcp(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("User-Agent") != "once" {
			kcps.ServeHTTP(w, r)
		}
	})
	h := newHub(t, server.URL, transport, append(options, func(c *proxy.Config) {
		c.Streams = proxy.StreamLimits{All: 16, Refused: refused.add}
	})...)
	url, client := serve(t, h)
	h.rights.set("alice", false, adminOf(orgA))
	h.rights.set("bob", false, adminOf(orgB))
	for range 12 {
		kcps.watch(t, client, url, "alice", "aaaa")
	}
	return h, refused
}

// The attack: open watches with all bots of an Organization until the hub has no room for those of others.
func TestStreams_ofOneOrganizationLeaveSomeToOthers(t *testing.T) {
	t.Parallel()
	h, refused := crowded(t)
	w := h.do(request(http.MethodGet, watchPath, "alice", "User-Agent", "once"))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, []string{"streams_per_org"}, refused.all())
	require.Equal(t, http.StatusOK, h.do(request(http.MethodGet, strings.Replace(watchPath, "aaaa", "bbbb", 1), "bob", "User-Agent", "once")).Code)
	h.rights.set("alice", false)
	h.proxy.Recheck("alice")
	require.Eventually(t, func() bool { return h.streams(t) == 0 }, deadline, time.Millisecond)
	h.rights.set("alice", false, adminOf(orgA))
	require.Equal(t, http.StatusOK, h.do(request(http.MethodGet, watchPath, "alice", "User-Agent", "once")).Code, "what ended counts no more")
}

// The attack: make further Organizations, each of which has what the hub leaves to those with little.
func TestLimits_countTheOrganizationsOfOnePersonTogether(t *testing.T) {
	t.Parallel()
	h, refused := crowded(t, func(c *proxy.Config) { c.Payer = func(string) string { return "mallory" } })
	w := h.do(request(http.MethodGet, strings.Replace(watchPath, "aaaa", "bbbb", 1), "bob", "User-Agent", "once"))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Contains(t, w.Body.String(), "with others of its creator")
	require.Equal(t, []string{"streams_per_org"}, refused.all())

	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1, proxy.LoadLimits{All: 32}, func(c *proxy.Config) { c.Payer = func(string) string { return "mallory" } })
		const object = "/api/v1/namespaces/default/configmaps/one"
		l.send(24, http.MethodGet, "/clusters/aaaa"+object, "alice")
		l.send(1, http.MethodGet, "/clusters/bbbb"+object, "bob")
		require.Equal(t, 24, l.kcp.has("aaaa"))
		require.Zero(t, l.kcp.has("bbbb"))
		require.Equal(t, 1, l.answered(http.StatusTooManyRequests))
		close(l.kcp.released)
		l.running.Wait()
	})
}

// Every request is counted by one of the limits, of streams or of requests in flight.
func TestStreaming_isWhatTheLimitsOfStreamsCount(t *testing.T) {
	t.Parallel()
	const at = "/clusters/abcdefgh12345678/api/v1/namespaces/default/"
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
	for path, want := range map[string]bool{
		at + "secrets":                   false,
		at + "secrets?watch=true":        true,
		at + "secrets?watch=false":       false,
		at + "pods/p/log":                false,
		at + "pods/p/log?follow=true":    true,
		at + "pods/p/exec?command=watch": true,
		at + "pods/p/portforward":        true,
		at + "services/s/proxy":          true,
		at + "pods/p/status":             false,
		"/api/orgs?watch=true":           false,
	} {
		var got bool
		h := http.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = proxy.Streaming(r) }))
		if strings.HasPrefix(path, "/clusters/") {
			h = proxy.Shape(treeOf(t))(h)
		}
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		// The header alone changes nothing.
		r.Header = upgrade
		h.ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, want, got, path)
	}
}
