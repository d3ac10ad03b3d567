package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// source is a kcp that keeps watches open and sends what it is told to.
type source struct {
	mu   sync.Mutex
	open map[string]chan string
}

// to is the channel to a person's watch of a cluster.
func (s *source) to(user, cluster string) chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[user+cluster] == nil {
		s.open[user+cluster] = make(chan string)
	}
	return s.open[user+cluster]
}

func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user := strings.TrimSuffix(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), tokenSuffix)
	events := s.to(user, strings.Split(r.URL.Path, "/")[2])
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case event := <-events:
			_, _ = io.WriteString(w, event+"\n")
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// watch is a client's side of a watch.
type watch struct {
	*bufio.Scanner
	from chan string
}

// watch begins a watch; header are pairs.
func (s *source) watch(t *testing.T, client *http.Client, url, user, cluster string, header ...string) *watch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/clusters/"+cluster+"/api/v1/secrets?watch=1", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+user+tokenSuffix)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	response, err := client.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(t, http.StatusOK, response.StatusCode)
	return &watch{Scanner: bufio.NewScanner(response.Body), from: s.to(user, cluster)}
}

// goesOn shows that events come through.
func (w *watch) goesOn(t *testing.T) {
	t.Helper()
	select {
	case w.from <- "event":
	case <-time.After(deadline):
		t.Fatal("kcp's side of the watch has ended")
	}
	require.True(t, w.Scan(), w.Err())
	require.Equal(t, "event", w.Text())
}

// hasEnded shows that the client got nothing more, and an end that is not a
// failure.
func (w *watch) hasEnded(t *testing.T) {
	t.Helper()
	require.False(t, w.Scan(), w.Text())
	require.NoError(t, w.Err(), "ends as if kcp had ended it")
}

func TestRecheck_endsAStreamWithTheRightToIt(t *testing.T) {
	t.Parallel()
	const (
		admin  = v1alpha1.RoleAdmin
		member = v1alpha1.RoleMember
		viewer = v1alpha1.RoleViewer
	)
	type right struct {
		role v1alpha1.Role
		sudo bool
	}
	for _, tc := range []struct {
		name          string
		before, after right
		elevated, cut bool
		deleted       bool
	}{
		{name: "nothing changes", before: right{role: member}, after: right{role: member}},
		{name: "membership ends", before: right{role: member}, cut: true},
		{name: "membership of an admin ends", before: right{role: admin}, cut: true},
		{name: "the person is soft-deleted", before: right{role: admin}, after: right{role: admin}, deleted: true, cut: true},
		{name: "demotion of an admin", before: right{role: admin}, after: right{role: member}, cut: true},
		{name: "demotion of a member", before: right{role: member}, after: right{role: viewer}, cut: true},
		{name: "promotion", before: right{role: member}, after: right{role: admin}},
		{name: "sudo given", before: right{role: member}, after: right{role: member, sudo: true}},
		{name: "sudo taken from a stream without it", before: right{role: member, sudo: true}, after: right{role: member}},
		{name: "sudo taken and promotion", before: right{role: member, sudo: true}, after: right{role: admin}},
		{name: "elevated: nothing changes", before: right{role: member, sudo: true}, after: right{role: member, sudo: true}, elevated: true},
		{name: "elevated: sudo taken", before: right{role: member, sudo: true}, after: right{role: member}, elevated: true, cut: true},
		{name: "elevated: sudo taken and promotion", before: right{role: member, sudo: true}, after: right{role: admin}, elevated: true, cut: true},
		{name: "elevated: membership ends", before: right{role: member, sudo: true}, after: right{sudo: true}, elevated: true, cut: true},
		{name: "elevated: promotion", before: right{role: member, sudo: true}, after: right{role: admin, sudo: true}, elevated: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for version := 1; version <= 2; version++ {
				kcps := &source{open: map[string]chan string{}}
				server, transport := kcp(t, kcps.ServeHTTP)
				h := newHub(t, server.URL, transport)
				url, client := serveHTTP(t, h, version)
				h.rights.set("alice", tc.before.sudo, inWorkspace(tc.before.role))
				var header []string
				if tc.elevated {
					header = []string{user, alice, group, sudoers}
				}
				w := kcps.watch(t, client, url, "alice", "aaaa", header...)
				w.goesOn(t)

				if tc.after.role == "" {
					h.rights.set("alice", tc.after.sudo)
				} else {
					h.rights.set("alice", tc.after.sudo, inWorkspace(tc.after.role))
				}
				if tc.deleted {
					h.rights.remove("alice")
				}
				taken, ofBob := h.proxy.CountCut("alice", orgA), h.proxy.CountCut("bob", "")
				h.proxy.Recheck("alice")
				h.proxy.Recheck("alice")
				require.Equal(t, tc.cut, taken() == 1, "a stream is counted once")
				require.Zero(t, ofBob())
				if !tc.cut {
					w.goesOn(t)
					require.EqualValues(t, 1, h.streams(t))
					require.Zero(t, h.cuts(t))
					continue
				}
				w.hasEnded(t)
				h.closed(t)
				require.Equal(t, 1, h.cuts(t))
				if tc.after.role == "" || tc.deleted {
					again := h.do(request(http.MethodGet, "/clusters/aaaa/api/v1/secrets", "alice"))
					require.Equal(t, http.StatusForbidden, again.Code, "the client lists again and is told why not")
				}
			}
		})
	}
}

func TestRecheck_keepsOtherStreams(t *testing.T) {
	t.Parallel()
	kcps := &source{open: map[string]chan string{}}
	server, transport := kcp(t, kcps.ServeHTTP)
	h := newHub(t, server.URL, transport)
	url, client := serve(t, h)
	h.rights.set("alice", false, adminOf(orgA), adminOf(orgB))
	h.rights.set("bob", false, adminOf(orgA), adminOf(orgB))
	gone := kcps.watch(t, client, url, "alice", "aaaa")
	other := kcps.watch(t, client, url, "alice", "bbbb")
	his := kcps.watch(t, client, url, "bob", "aaaa")

	h.rights.set("alice", false, adminOf(orgB))
	h.proxy.Recheck("carol")
	h.proxy.Recheck("bob")
	require.EqualValues(t, 3, h.streams(t), "nobody asked about Alice")
	h.proxy.Recheck("alice")
	gone.hasEnded(t)
	other.goesOn(t)
	his.goesOn(t)
	require.EqualValues(t, 2, h.streams(t))

	h.rights.set("alice", false)
	h.rights.set("bob", false, adminOf(orgA))
	h.proxy.Recheck("")
	other.hasEnded(t)
	his.goesOn(t)
	h.rights.set("bob", false)
	h.proxy.Recheck("")
	his.hasEnded(t)
	h.closed(t)
	require.Equal(t, 3, h.cuts(t))
}

// A Workspace is soft-deleted: the streams of everybody in it end, and nobody else's is looked at.
func TestRecheckClusters_endsStreamsInThoseClusters(t *testing.T) {
	t.Parallel()
	kcps := &source{open: map[string]chan string{}}
	server, transport := kcp(t, kcps.ServeHTTP)
	h := newHub(t, server.URL, transport)
	url, client := serve(t, h)
	both := []v1alpha1.MembershipIndexEntry{adminOf(orgA), adminOf(orgB)}
	h.rights.set("alice", false, both...)
	h.rights.set("bob", false, both...)
	hers, his := kcps.watch(t, client, url, "alice", "aaaa"), kcps.watch(t, client, url, "bob", "aaaa")
	elsewhere := kcps.watch(t, client, url, "alice", "bbbb")

	h.rights.set("alice", false)
	h.rights.set("bob", false)
	h.proxy.RecheckClusters("cccc")
	hers.goesOn(t)
	h.proxy.RecheckClusters("aaaa", "cccc")
	hers.hasEnded(t)
	his.hasEnded(t)
	elsewhere.goesOn(t)
	h.proxy.RecheckClusters("bbbb")
	elsewhere.hasEnded(t)
	h.closed(t)
}

// What kcp let in with a right that it had still, the gate would let go on.
func TestUnbound_cutsStreamsOfALostBinding(t *testing.T) {
	t.Parallel()
	kcps := &source{open: map[string]chan string{}}
	server, transport := kcp(t, kcps.ServeHTTP)
	h := newHub(t, server.URL, transport)
	url, client := serve(t, h)
	h.rights.set("alice", false, adminOf(orgA), adminOf(orgB))
	h.rights.set("bob", false, adminOf(orgA))
	gone := kcps.watch(t, client, url, "alice", "aaaa")
	other := kcps.watch(t, client, url, "alice", "bbbb")
	his := kcps.watch(t, client, url, "bob", "aaaa")
	h.proxy.Recheck("alice")
	h.proxy.Unbound("alice", "aaaa", "kedge:workspace:viewer")
	gone.goesOn(t)
	h.proxy.Unbound("alice", "aaaa", "an-extra-role")
	gone.hasEnded(t)
	other.goesOn(t)
	his.goesOn(t)
}

// TestRecheck_findsARightThatEndsAfterTheGate takes the right away when the gate
// has let the request in and Recheck does not know the stream yet.
func TestRecheck_findsARightThatEndsAfterTheGate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(h *hub)
		code   int
	}{
		{"nothing: the positive control", func(*hub) {}, 200},
		{"the membership", func(h *hub) { h.rights.set("alice", true) }, 403},
		{"the role", func(h *hub) { h.rights.set("alice", true, inWorkspace(v1alpha1.RoleMember)) }, 403},
		{"sudo", func(h *hub) { h.rights.set("alice", false, inWorkspace(v1alpha1.RoleAdmin)) }, 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			elevated := []string{user, alice, group, sudoers}
			write := request(http.MethodPost, "/clusters/aaaa/api/v1/secrets", "alice", elevated...)
			write.Body, write.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
			for _, r := range []*http.Request{request(http.MethodGet, "/clusters/aaaa/api/v1/secrets?watch=1", "alice", elevated...), write} {
				rec := &recorder{}
				var h *hub
				h = newHub(t, kcpURL, rec, func(c *proxy.Config) {
					enter, asked := c.Enter, atomic.Bool{}
					c.Enter = func(user, cluster string) (tenancy.Entry, error) {
						e, err := enter(user, cluster)
						if asked.CompareAndSwap(false, true) {
							tc.change(h)
							h.proxy.Recheck("alice")
						}
						return e, err
					}
				})
				h.rights.set("alice", true, inWorkspace(v1alpha1.RoleAdmin))
				w := h.do(r)
				require.Equal(t, tc.code, w.Code, w.Body)
				require.Zero(t, h.streams(t))
				if tc.code != http.StatusOK {
					require.Contains(t, statusOf(t, w.Body.Bytes()).Message, "right to this workspace ended")
					require.Empty(t, rec.requests)
					require.Empty(t, h.elevated, "it was not let through")
				}
			}
		})
	}
}

// TestRecheck_refusesAnAnswerThatHasNotBegun ends the right while kcp thinks.
func TestRecheck_refusesAnAnswerThatHasNotBegun(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	h := newHub(t, kcpURL, roundTripper(func(r *http.Request) (*http.Response, error) {
		arrived <- struct{}{}
		<-r.Context().Done()
		if strings.HasSuffix(r.URL.Path, "/late") {
			// kcp's answer and the end of the right crossed.
			return (&recorder{}).RoundTrip(r)
		}
		return nil, r.Context().Err()
	}))
	for _, tc := range []struct {
		target string
		header []string
	}{
		{"/clusters/aaaa/api/v1/secrets?watch=1", nil},
		{"/clusters/aaaa/api/v1/late?watch=1", nil},
		{"/clusters/aaaa/api/v1/namespaces/a/pods/b/exec", []string{"Connection", "Upgrade", "Upgrade", "SPDY/3.1"}},
	} {
		h.rights.set("alice", false, adminOf(orgA))
		go func() {
			<-arrived
			h.rights.set("alice", false)
			h.proxy.Recheck("alice")
		}()
		w := h.do(request(http.MethodGet, tc.target, "alice", tc.header...))
		require.Equal(t, http.StatusForbidden, w.Code, tc.target)
		status := statusOf(t, w.Body.Bytes())
		require.EqualValues(t, "Forbidden", status.Reason)
		require.Contains(t, status.Message, "right to this workspace ended")
	}
	require.Equal(t, 3, h.cuts(t))
	require.Zero(t, h.streams(t))
}

// TestRecheck_saysThatKCPIsUnavailable is about rights that nobody can tell of.
func TestRecheck_saysThatKCPIsUnavailable(t *testing.T) {
	t.Parallel()
	var h *hub
	var away atomic.Bool
	h = newHub(t, kcpURL, roundTripper(func(r *http.Request) (*http.Response, error) {
		away.Store(true)
		h.proxy.Recheck("")
		<-r.Context().Done()
		return nil, r.Context().Err()
	}), func(c *proxy.Config) {
		enter := c.Enter
		c.Enter = func(user, cluster string) (tenancy.Entry, error) {
			if away.Load() {
				return tenancy.Entry{}, gone(errTest)
			}
			return enter(user, cluster)
		}
	})
	w := h.do(request(http.MethodGet, "/clusters/aaaa/api/v1/secrets?watch=1", "alice"))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "2", w.Header().Get("Retry-After"))
	require.Zero(t, h.cuts(t), "no right has ended")
	require.Zero(t, h.streams(t))
}

// TestRecheck_leavesTheConnectionAsItWas is about the requests that come behind the cut
// one on its connection.
func TestRecheck_leavesTheConnectionAsItWas(t *testing.T) {
	t.Parallel()
	var h *hub
	h = newHub(t, kcpURL, roundTripper(func(r *http.Request) (*http.Response, error) {
		h.rights.set("alice", false)
		h.proxy.Recheck("alice")
		return nil, r.Context().Err()
	}))
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, request(http.MethodGet, "/clusters/aaaa/api/v1/secrets?watch=1", "alice"))
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Len(t, w.write, 3)
	require.False(t, w.write[1].IsZero(), "it was hurried")
	require.True(t, w.write[2].IsZero())
}

// TestDrain_isNoRevocation is about the metric.
func TestDrain_isNoRevocation(t *testing.T) {
	t.Parallel()
	kcps := &source{open: map[string]chan string{}}
	server, transport := kcp(t, kcps.ServeHTTP)
	h := newHub(t, server.URL, transport)
	url, client := serve(t, h)
	w := kcps.watch(t, client, url, "alice", "aaaa")
	h.drain()
	w.hasEnded(t)
	h.closed(t)
	require.Zero(t, h.cuts(t))
}
