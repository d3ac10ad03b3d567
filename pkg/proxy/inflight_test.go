package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// upload is a request whose body the test sends bit by bit.
type upload struct {
	io.Writer
	finish func()
	answer chan answer
}

type answer struct {
	code int
	body []byte
	err  error
	// reused is set where it came over a connection that had served another.
	reused bool
}

const (
	firstPart = "0123456789"
	wholeBody = firstPart + "and the rest"
)

// begin sends the headers and the first bytes of a POST. length is -1 for a body that
// does not announce its length.
func begin(t *testing.T, client *http.Client, url string, length int64, header ...string) *upload {
	t.Helper()
	body, w := io.Pipe()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/clusters/aaaa/api/v1/namespaces/default/configmaps", body)
	require.NoError(t, err)
	r.ContentLength = length
	r.Header.Set("Authorization", "Bearer alice"+tokenSuffix)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	u := &upload{Writer: w, finish: func() { _ = w.Close() }, answer: make(chan answer, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.answer <- do(client, r)
	}()
	t.Cleanup(func() {
		cancel()
		_ = w.Close()
		<-done
	})
	_, err = io.WriteString(w, firstPart)
	require.NoError(t, err)
	return u
}

func do(client *http.Client, r *http.Request) (a answer) {
	response, err := client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { a.reused = c.Reused },
	})))
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	a.code = response.StatusCode
	a.body, a.err = io.ReadAll(response.Body)
	return a
}

// sink is a kcp that takes bodies: it tells that one has begun, and whether all of it
// came.
func sink(begun chan<- struct{}, whole chan<- bool) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadFull(r.Body, make([]byte, len(firstPart)))
		begun <- struct{}{}
		rest, restErr := io.ReadAll(r.Body)
		whole <- err == nil && restErr == nil && firstPart+string(rest) == wholeBody
	}
}

// The attack: send the headers of a write and a part of its body, and the rest when
// the right to it has ended. kcp authorizes a request by its headers.
func TestRecheck_aWriteInFlightIsNotFinished(t *testing.T) {
	t.Parallel()
	const (
		admin  = v1alpha1.RoleAdmin
		member = v1alpha1.RoleMember
	)
	for _, tc := range []struct {
		name     string
		change   func(h *hub)
		elevated bool
		code     int
	}{
		{name: "nothing: the positive control", change: func(*hub) {}, code: 200},
		{name: "somebody else's membership", change: func(h *hub) { h.rights.set("bob", false) }, code: 200},
		{name: "promotion", change: func(h *hub) { h.rights.set("alice", true, inWorkspace(admin)) }, code: 200},
		{name: "sudo, which was not used", change: func(h *hub) { h.rights.set("alice", false, inWorkspace(member)) }, code: 200},
		{name: "the membership", change: func(h *hub) { h.rights.set("alice", true) }, code: 403},
		{name: "a part of it", change: func(h *hub) { h.rights.set("alice", true, inWorkspace(v1alpha1.RoleViewer)) }, code: 403},
		{name: "the person", change: func(h *hub) { h.rights.remove("alice") }, code: 403},
		{name: "sudo, which was used", change: func(h *hub) { h.rights.set("alice", false, inWorkspace(member)) }, elevated: true, code: 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			begun, whole := make(chan struct{}, 1), make(chan bool, 1)
			server, transport := kcp(t, sink(begun, whole))
			for version := 1; version <= 2; version++ {
				for _, length := range []int64{int64(len(wholeBody)), -1} {
					h := newHub(t, server.URL, transport)
					url, client := serveHTTP(t, h, version)
					h.rights.set("alice", true, inWorkspace(member))
					var header []string
					if tc.elevated {
						header = []string{user, alice, group, sudoers}
					}
					write := begin(t, client, url, length, header...)
					<-begun
					tc.change(h)
					h.proxy.Recheck("")
					var got answer
					if tc.code != http.StatusOK {
						got = <-write.answer
						require.NoError(t, got.err)
						status := statusOf(t, got.body)
						require.EqualValues(t, "Forbidden", status.Reason)
						require.Contains(t, status.Message, "right to this workspace ended")
						require.Equal(t, 1, h.cuts(t))
					}
					// Where it was refused already, nobody takes it.
					_, _ = io.WriteString(write, strings.TrimPrefix(wholeBody, firstPart))
					write.finish()
					if tc.code == http.StatusOK {
						got = <-write.answer
						require.NoError(t, got.err)
						require.Zero(t, h.cuts(t))
					}
					require.Equal(t, tc.code, got.code, "%s", got.body)
					require.Equal(t, tc.code == http.StatusOK, <-whole, "kcp gets it whole")
				}
			}
		})
	}
}

// What kcp let in with a binding that it had still, the gate would let go on.
func TestUnbound_aWriteInFlightIsNotFinished(t *testing.T) {
	t.Parallel()
	begun, whole := make(chan struct{}, 1), make(chan bool, 1)
	server, transport := kcp(t, sink(begun, whole))
	h := newHub(t, server.URL, transport)
	url, client := serve(t, h)
	write := begin(t, client, url, -1)
	<-begun
	h.proxy.Unbound("alice", "bbbb", "an-extra-role")
	h.proxy.Unbound("alice", "aaaa", "kedge:workspace:viewer")
	require.Empty(t, write.answer, "neither is what it was begun with")
	h.proxy.Unbound("alice", "aaaa", "an-extra-role")
	require.Equal(t, http.StatusForbidden, (<-write.answer).code)
	require.False(t, <-whole)
}

// TestRecheck_aWriteOfAnUnknownRightIsNotFinished is about a kcp that is gone.
func TestRecheck_aWriteOfAnUnknownRightIsNotFinished(t *testing.T) {
	t.Parallel()
	begun, whole := make(chan struct{}, 1), make(chan bool, 1)
	server, transport := kcp(t, sink(begun, whole))
	var away atomic.Bool
	h := newHub(t, server.URL, transport, func(c *proxy.Config) {
		enter := c.Enter
		c.Enter = func(user, cluster string) (tenancy.Entry, error) {
			if away.Load() {
				return tenancy.Entry{}, gone(errTest)
			}
			return enter(user, cluster)
		}
	})
	url, client := serve(t, h)
	write := begin(t, client, url, -1)
	<-begun
	away.Store(true)
	h.proxy.Recheck("")
	require.Equal(t, http.StatusServiceUnavailable, (<-write.answer).code)
	require.False(t, <-whole)
	require.Zero(t, h.cuts(t), "no right has ended")
}

// TestRecheck_keepsWhatKCPHasWhileARightIsLeft has requests at kcp that have
// nothing more to come: kcp has decided about them already, by the rights of then.
func TestRecheck_keepsWhatKCPHasWhileARightIsLeft(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		left []v1alpha1.MembershipIndexEntry
		code int
	}{
		{"a part is left", []v1alpha1.MembershipIndexEntry{inWorkspace(v1alpha1.RoleViewer)}, 200},
		{"nothing is left", nil, 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			// Every request has a release of its own: one that was cut may still be here
			// when the next is released.
			arrived := make(chan chan struct{})
			server, transport := kcp(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				release := make(chan struct{})
				arrived <- release
				select {
				case <-release:
				case <-r.Context().Done():
				}
			})
			for version := 1; version <= 2; version++ {
				h := newHub(t, server.URL, transport)
				url, client := serveHTTP(t, h, version)
				ask := func(method, body string) (<-chan answer, chan<- struct{}) {
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					t.Cleanup(cancel)
					r, err := http.NewRequestWithContext(ctx, method, url+"/clusters/aaaa/api/v1/namespaces", strings.NewReader(body))
					require.NoError(t, err)
					r.Header.Set("Authorization", "Bearer alice"+tokenSuffix)
					got := make(chan answer, 1)
					go func() { got <- do(client, r) }()
					return got, <-arrived
				}
				for method, body := range map[string]string{http.MethodPost: "{}", http.MethodDelete: "", http.MethodGet: ""} {
					h.rights.set("alice", false, inWorkspace(v1alpha1.RoleAdmin))
					asked, release := ask(method, body)
					h.rights.set("alice", false, tc.left...)
					h.proxy.Recheck("alice")
					h.proxy.Unbound("alice", "aaaa", tenancy.ClusterRoleAdmin)
					if tc.code == http.StatusOK {
						release <- struct{}{}
					}
					got := <-asked
					require.NoError(t, got.err, method)
					require.Equal(t, tc.code, got.code, "%s: %s", method, got.body)
					if tc.code != http.StatusOK {
						require.Contains(t, statusOf(t, got.body).Message, "right to this workspace ended")
					}

					h.rights.set("alice", false, inWorkspace(v1alpha1.RoleAdmin))
					asked, release = ask(http.MethodGet, "")
					release <- struct{}{}
					next := <-asked
					require.Equal(t, http.StatusOK, next.code, "behind %s", method)
					require.True(t, next.reused, "the connection is as it was")
				}
			}
		})
	}
}

// TestRecheck_aCutAnswerIsNotTakenForTheWhole ends the right in the middle of an
// answer that does not say how long it is.
func TestRecheck_aCutAnswerIsNotTakenForTheWhole(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	for version := 1; version <= 2; version++ {
		h := newHub(t, server.URL, transport)
		url, client := serveHTTP(t, h, version)
		response := get(t, client, url+"/clusters/aaaa/api/v1/namespaces/a/pods/b/log")
		require.Equal(t, http.StatusOK, response.StatusCode)
		h.rights.set("alice", false)
		h.proxy.Recheck("alice")
		_, err := io.ReadAll(response.Body)
		require.Error(t, err)
		require.Eventually(t, func() bool { return h.cuts(t) == 1 }, deadline, time.Millisecond)
	}
}

// TestRecheck_cutsAnAnswerThatNobodyReads has a client who does not read an ordinary answer.
func TestRecheck_cutsAnAnswerThatNobodyReads(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) { flood(w, &atomic.Int64{}) })
	for version := 1; version <= 2; version++ {
		h := newHub(t, server.URL, transport)
		url, client := serveHTTP(t, h, version)
		get(t, client, url+"/clusters/aaaa/api/v1/namespaces")
		h.rights.set("alice", false)
		h.proxy.Recheck("alice")
		require.Eventually(t, func() bool { return h.cuts(t) == 1 }, deadline, time.Millisecond)
	}
}

// TestRecheck_leavesNothingBehind counts goroutines, so it runs alone.
func TestRecheck_leavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("requests", func(t *testing.T) {
		begun, whole := make(chan struct{}, 1), make(chan bool, 1)
		server, transport := kcp(t, sink(begun, whole))
		for version := 1; version <= 2; version++ {
			h := newHub(t, server.URL, transport)
			url, client := serveHTTP(t, h, version)
			for range 20 {
				h.rights.set("alice", false, adminOf(orgA))
				write := begin(t, client, url, -1)
				<-begun
				h.rights.set("alice", false)
				h.proxy.Recheck("alice")
				require.Equal(t, http.StatusForbidden, (<-write.answer).code)
				require.False(t, <-whole)
			}
		}
	})
	// One goroutine is the condition's own.
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, deadline, time.Millisecond)
}
