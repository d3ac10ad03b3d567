package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// swollen is a kcp whose answers are larger than the hub knows. It says when it may send more than the beginning of one.
type swollen struct {
	size, beginning int
	more            chan struct{}

	mu               sync.Mutex
	late, compressed int
}

func (k *swollen) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Accept-Encoding") != "" {
		k.mu.Lock()
		k.compressed++
		k.mu.Unlock()
	}
	w := httptest.NewRecorder()
	w.WriteHeader(http.StatusOK)
	response := w.Result()
	response.Request, response.Body = r, &swelling{kcp: k}
	return response, nil
}

// sending is the number of answers that are beyond their beginning.
func (k *swollen) sending() int {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.late
}

// later is sending after the time in which the hub takes the beginning of a large answer.
func (k *swollen) later() int {
	<-time.After(100 * time.Millisecond)
	return k.sending()
}

// swelling is the body of an answer.
type swelling struct {
	kcp  *swollen
	sent int
	late bool
}

func (b *swelling) Read(p []byte) (int, error) {
	if b.sent >= b.kcp.size {
		return 0, io.EOF
	}
	if b.sent > b.kcp.beginning && !b.late {
		b.late = true
		b.kcp.mu.Lock()
		b.kcp.late++
		b.kcp.mu.Unlock()
		<-b.kcp.more
	}
	n := min(len(p), b.kcp.size-b.sent)
	b.sent += n
	return n, nil
}

func (b *swelling) Close() error { return nil }

// sizes are those that the hub reported, by logical cluster.
type sizes struct {
	mu sync.Mutex
	of map[string]int64
}

func (s *sizes) add(w tenancy.Workspace, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[w.ClusterID] = max(s.of[w.ClusterID], bytes)
}

// newSwollen is a hub that takes every Workspace for an empty one.
func newSwollen(t *testing.T, kcp *swollen) (*loaded, *sizes) {
	t.Helper()
	s := &sizes{of: map[string]int64{}}
	l := &loaded{refused: &refusals{}}
	l.hub = newHub(t, kcpURL, kcp, func(c *proxy.Config) {
		c.Load = proxy.LoadLimits{
			Requests: 128, Bytes: 64 * mebibyte, Parallel: 1, Refused: l.refused.add, Larger: s.add,
			Stored: func(tenancy.Workspace) (int64, int64, bool) { return 1, 1 << 10, true },
		}
	})
	return l, s
}

// The attack: a tenant fills a Workspace through one replica, and has many lists and watches of it at once through another
// one, which takes it for empty.
func TestLoad_whatOtherReplicasLetInHoldsUpItsOrganizationAlone(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{
		"lists": "/clusters/aaaa/api/v1/secrets", "watches": "/clusters/aaaa/api/v1/secrets?watch=true",
		"watches of changes that kcp keeps": "/clusters/aaaa/api/v1/secrets?watch=true&resourceVersion=7",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				kcp := &swollen{size: 5 * mebibyte, beginning: 4 * mebibyte, more: make(chan struct{})}
				l, s := newSwollen(t, kcp)
				l.send(10, http.MethodGet, target, "alice")
				require.Equal(t, 1, kcp.later(), "kcp sends the rest of one at a time")
				if !strings.Contains(target, "resourceVersion") {
					require.EqualValues(t, 4*mebibyte, s.of["aaaa"], "it counts as an unknown one does")
				}
				l.send(1, http.MethodGet, "/clusters/bbbb/api/v1/secrets", "bob")
				require.Equal(t, 2, kcp.later(), "another Organization does not wait")
				close(kcp.more)
				l.running.Wait()
				require.Equal(t, 11, l.answered(http.StatusOK))
			})
		})
	}
}

// A client whose answer waits in the middle for too long gets an error, and takes no part for the whole.
func TestLoad_aLargeAnswerWithoutRoomIsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kcp := &swollen{size: 5 * mebibyte, beginning: 4 * mebibyte, more: make(chan struct{})}
		l, _ := newSwollen(t, kcp)
		l.send(1, http.MethodGet, "/clusters/aaaa/api/v1/secrets", "alice")
		require.Equal(t, 1, kcp.later())
		r := request(http.MethodGet, "/clusters/aaaa/api/v1/secrets", "alice")
		r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, &http.Server{}))
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { l.do(r) }, "the server cuts the connection")
		require.Equal(t, 1, kcp.later())
		close(kcp.more)
		l.running.Wait()
	})
}

// The attack: lists that compress so well that nobody sees how large they are. One at a time is compressed; one object is
// as its client asks.
func TestLoad_aListIsCompressedWhereThereIsRoomForALargeOne(t *testing.T) {
	t.Parallel()
	const secrets = "/clusters/aaaa/api/v1/namespaces/default/secrets"
	for target, most := range map[string]int{secrets: 1, "/clusters/aaaa/openapi/v3": 1, secrets + "/one": 10} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				kcp := &swollen{size: 100 << 10, beginning: 10 << 10, more: make(chan struct{})}
				l, _ := newSwollen(t, kcp)
				get := func() int {
					r := request(http.MethodGet, target, "alice")
					r.Header.Set("Accept-Encoding", "gzip")
					return l.do(r).Code
				}
				for range 10 {
					l.running.Go(func() { get() })
				}
				require.Equal(t, 10, kcp.sending(), "none waits")
				require.Equal(t, most, kcp.compressed)
				close(kcp.more)
				l.running.Wait()
				require.Equal(t, http.StatusOK, get())
				require.Equal(t, most+1, kcp.compressed, "there is room again")
			})
		})
	}
}

// The attack: lists of which kcp makes the whole answer, and the hub sees nothing.
func TestLoad_listsByHEADCountAsUnknownOnes(t *testing.T) {
	t.Parallel()
	const secrets = "/clusters/aaaa/api/v1/namespaces/default/secrets"
	for target, most := range map[string]int{secrets: 1, secrets + "/one": 10} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLoaded(t, 0, proxy.LoadLimits{Bytes: 64 * mebibyte, Parallel: 1})
				l.send(10, http.MethodHead, target, "alice")
				require.Equal(t, most, l.kcp.has("aaaa"))
				close(l.kcp.released)
				l.running.Wait()
				require.Equal(t, 10, l.answered(http.StatusOK))
			})
		})
	}
}

// Few watches of a Workspace begin at once. The control is watches that have begun.
func TestLoad_fewWatchesOfAWorkspaceBeginAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kcp := &swollen{size: 8, beginning: -1, more: make(chan struct{})}
		l, _ := newSwollen(t, kcp)
		l.send(40, http.MethodGet, "/clusters/aaaa/api/v1/secrets?watch=true&resourceVersion=7", "alice")
		require.Equal(t, 16, kcp.sending())
		<-time.After(time.Second)
		require.Equal(t, 40, kcp.sending())
		close(kcp.more)
		l.running.Wait()
		require.Equal(t, 40, l.answered(http.StatusOK))
	})
}

// The attack: deletions of everything that kcp answers with a table, of which each column can be a copy of an object.
func TestLoad_tablesOfDeletionsCountForTheirColumns(t *testing.T) {
	t.Parallel()
	for accept, most := range map[string]int{"application/json;as=Table;v=v1;g=meta.k8s.io": 1, "application/json": 5} {
		t.Run(accept, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLoaded(t, 2, proxy.LoadLimits{Bytes: 64 * mebibyte, Parallel: 1})
				for range 5 {
					l.running.Go(func() {
						r := request(http.MethodDelete, "/clusters/aaaa/apis/example.com/v1/namespaces/default/things?dryRun=All", "alice")
						r.Header.Set("Accept", accept)
						l.do(r)
					})
				}
				require.Equal(t, most, l.kcp.has("aaaa"))
				close(l.kcp.released)
				l.running.Wait()
			})
		})
	}
}
