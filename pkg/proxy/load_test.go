package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const mebibyte = 1 << 20

// held is a kcp that answers when the test says so, and counts the requests that it has by cluster.
type held struct {
	mu       sync.Mutex
	open     map[string]int
	all      int
	released chan struct{}
}

func (k *held) RoundTrip(r *http.Request) (*http.Response, error) {
	cluster := strings.Split(r.URL.Path, "/")[2]
	k.count(cluster, 1)
	defer k.count(cluster, -1)
	select {
	case <-k.released:
	case <-r.Context().Done():
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return (&recorder{}).RoundTrip(r)
}

func (k *held) count(cluster string, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open[cluster] += n
	k.all += max(n, 0)
}

func (k *held) has(cluster string) int {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.open[cluster]
}

// loaded is a hub with limits of its load. The Workspace aaaa stores objects of 1 MiB each, and bbbb is
// not measured.
type loaded struct {
	*hub
	kcp     *held
	refused *refusals
	running sync.WaitGroup
	mu      sync.Mutex
	codes   []int
}

func newLoaded(t *testing.T, objects int64, limits proxy.LoadLimits, options ...func(*proxy.Config)) *loaded {
	t.Helper()
	l := &loaded{kcp: &held{open: map[string]int{}, released: make(chan struct{})}, refused: &refusals{}}
	limits.Stored = func(w tenancy.Workspace) (int64, int64, bool) {
		return objects, objects * mebibyte, w.ClusterID == "aaaa"
	}
	limits.Served = func(tenancy.Workspace) (definitions, bindings int64) { return objects, 0 }
	limits.Refused = l.refused.add
	l.hub = newHub(t, kcpURL, l.kcp, append(options, func(c *proxy.Config) { c.Load = limits })...)
	return l
}

func (l *loaded) send(n int, method, target, user string) {
	for range n {
		l.running.Go(func() {
			w := l.do(request(method, target, user))
			l.mu.Lock()
			defer l.mu.Unlock()
			l.codes = append(l.codes, w.Code)
		})
	}
	synctest.Wait()
}

func (l *loaded) answered(code int) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.codes {
		if c == code {
			n++
		}
	}
	return n
}

// The attack: as many lists of everything in a full Workspace as a client can send. Few of them are in
// progress, and the neighbour's requests are not among those that wait.
func TestLoad_aFloodOfListsHoldsUpItsOrganizationAlone(t *testing.T) {
	t.Parallel()
	const secrets = "/clusters/aaaa/api/v1/secrets"
	for _, tc := range []struct {
		name, method, target string
		// flying is the number of requests that kcp has at once. 64 MiB are in progress at most, and
		// 16 MiB of them are of one Organization.
		flying int
	}{
		{"lists of more than the share", http.MethodGet, secrets, 1},
		{"lists with a limit", http.MethodGet, secrets + "?limit=3", 3},
		{"lists of Workspaces in which the limit is no limit", http.MethodGet, secrets + "?limit=500", 1},
		{"lists with a limit that kcp ignores", http.MethodGet, secrets + "?limit=3&resourceVersion=0", 1},
		{"lists with a limit and a selector", http.MethodGet, secrets + "?limit=3&labelSelector=a%3Db", 1},
		{"lists with a limit and a selector of fields", http.MethodGet, secrets + "?limit=3&fieldSelector=type%3Da", 1},
		{"limits that are none", http.MethodGet, secrets + "?limit=0", 1},
		{"negative limits", http.MethodGet, secrets + "?limit=-1", 1},
		{"deletions of everything", http.MethodDelete, secrets, 1},
		{"watches of everything", http.MethodGet, secrets + "?watch=1", 1},
		{"watches of everything that the cache has", http.MethodGet, secrets + "?watch=1&resourceVersion=0", 1},
		{"watches that write 0 in another way", http.MethodGet, secrets + "?watch=1&resourceVersion=00", 1},
		{"watches with a version and everything before it", http.MethodGet, secrets + "?watch=1&resourceVersion=7&sendInitialEvents=true", 1},
		{"watches with two versions", http.MethodGet, secrets + "?watch=1&resourceVersion=7&resourceVersion=0", 1},
		{"watches of a name in all namespaces", http.MethodGet, secrets + "?watch=1&fieldSelector=metadata.name%3Done", 1},
		{
			"watches of one object: the positive control", http.MethodGet,
			secrets[:len(secrets)-len("secrets")] + "namespaces/default/secrets?watch=1&fieldSelector=metadata.name%3Done", 100,
		},
		{"watches of what is new", http.MethodGet, secrets + "?watch=1&resourceVersion=7", 16},
		{"the OpenAPI document of many definitions", http.MethodGet, "/clusters/aaaa/openapi/v2", 1},
		{"parts of the OpenAPI document", http.MethodGet, "/clusters/aaaa/openapi/v3/apis/example.com/v1", 1},
		{"objects: the positive control", http.MethodGet, secrets[:len(secrets)-len("secrets")] + "namespaces/default/secrets/one", 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLoaded(t, 200, proxy.LoadLimits{Bytes: 64 * mebibyte})
				l.send(100, tc.method, tc.target, "alice")
				require.Equal(t, tc.flying, l.kcp.has("aaaa"))
				// Nobody knows what the neighbour's Workspace has: a list counts for a quarter of the share.
				l.send(3, http.MethodGet, strings.ReplaceAll(secrets, "aaaa", "bbbb"), "bob")
				require.Equal(t, 3, l.kcp.has("bbbb"))
				<-time.After(2 * 10 * time.Second)
				require.Equal(t, 100-tc.flying, l.answered(http.StatusTooManyRequests))
				require.Contains(t, append(l.refused.all(), "bytes_in_flight_per_org"), "bytes_in_flight_per_org")
				close(l.kcp.released)
				l.running.Wait()
				require.Equal(t, tc.flying+3, l.answered(http.StatusOK))
				used, _ := l.metric(t, "kedge_proxy_in_flight_bytes")
				require.Zero(t, used)
			})
		})
	}
}

// The attack: make as many Organizations as have all of the room together, each with its share.
func TestLoad_theBytesOfOnePersonsOrganizationsLeaveSomeToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mallorys := []string{"alice", "carol", "dave", "erin"}
		l := newLoaded(t, 16, proxy.LoadLimits{Bytes: 64 * mebibyte}, func(c *proxy.Config) {
			enter := c.Enter
			// Each of these people has a Workspace of an Organization of their own.
			c.Enter = func(user, cluster string) (tenancy.Entry, error) {
				e, err := enter(user, cluster)
				e.Workspace.OrgUUID = user
				return e, err
			}
			c.Payer = func(org string) string {
				if slices.Contains(mallorys, org) {
					return "mallory"
				}
				return org
			}
		})
		for _, user := range append(mallorys, "frank") {
			l.rights.set(user, false, adminOf(orgA))
		}
		const list = "/clusters/aaaa/api/v1/secrets"
		for _, user := range mallorys {
			l.send(1, http.MethodGet, list, user)
		}
		require.Equal(t, 3, l.kcp.has("aaaa"))
		require.Equal(t, 1, l.answered(http.StatusTooManyRequests))
		require.Equal(t, []string{"bytes_in_flight"}, l.refused.all())
		l.send(1, http.MethodGet, list, "frank")
		require.Equal(t, 4, l.kcp.has("aaaa"), "the share of another person's Organization")
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 4, l.answered(http.StatusOK))
	})
}

// The attack: lists that are small enough to have many in progress, which keep all cores of kcp busy.
func TestLoad_aFloodOfListsHasFewCores(t *testing.T) {
	t.Parallel()
	for _, parallel := range []int{1, 2} {
		t.Run(fmt.Sprint(parallel), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLoaded(t, 200, proxy.LoadLimits{Bytes: 64 * mebibyte, Parallel: parallel})
				l.send(10, http.MethodGet, "/clusters/aaaa/api/v1/secrets?limit=3", "alice")
				require.Equal(t, parallel, l.kcp.has("aaaa"))
				l.send(10, http.MethodGet, "/clusters/aaaa/api/v1/namespaces/default/secrets/one", "alice")
				require.Equal(t, parallel+10, l.kcp.has("aaaa"), "small requests do not wait")
				l.send(1, http.MethodGet, "/clusters/bbbb/api/v1/secrets", "bob")
				require.Equal(t, 1, l.kcp.has("bbbb"), "another Organization does not wait")
				close(l.kcp.released)
				l.running.Wait()
				require.Equal(t, 21, l.answered(http.StatusOK))
			})
		})
	}
}

func TestLoad_isLimitedPerWorkspace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1600, proxy.LoadLimits{Requests: 10})
		// A list of 1600 objects counts for four pages.
		l.send(3, http.MethodGet, "/clusters/aaaa/api/v1/configmaps", "alice")
		require.Equal(t, 2, l.kcp.has("aaaa"))
		// Watches of what is new have limits of their own.
		l.send(5, http.MethodGet, watchPath+"&resourceVersion=7", "alice")
		require.Equal(t, 7, l.kcp.has("aaaa"))
		l.send(10, http.MethodGet, "/clusters/bbbb/api/v1/namespaces/default/configmaps/one", "bob")
		require.Equal(t, 10, l.kcp.has("bbbb"))
		l.send(100, http.MethodGet, "/clusters/bbbb/api/v1/namespaces/default/configmaps/one", "bob")
		require.Equal(t, []string{"requests_in_flight_per_workspace"}, l.refused.all()[:1])
		require.Equal(t, 20, l.answered(http.StatusTooManyRequests), "eighty wait")
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 3+5+90, l.answered(http.StatusOK))
	})
}

// The attack: change one object as often as a client can. kcp would begin all of them again for each that it stores.
func TestLoad_changesOfOneObjectFollowEachOther(t *testing.T) {
	t.Parallel()
	const object = "/clusters/aaaa/api/v1/namespaces/default/configmaps/one"
	for _, tc := range []struct {
		name, method, target, user string
		// flying is the number of requests that kcp has at once, of three that follow three patches of the object.
		flying int
	}{
		{"patches", http.MethodPatch, object, "alice", 1},
		{"updates", http.MethodPut, object, "alice", 1},
		{"patches of its status", http.MethodPatch, object + "/status", "alice", 1},
		{"patches that kcp does not store", http.MethodPatch, object + "?dryRun=All", "alice", 1},
		{"patches of another object", http.MethodPatch, strings.Replace(object, "one", "two", 1), "alice", 2},
		{"patches in another namespace", http.MethodPatch, strings.Replace(object, "default", "other", 1), "alice", 2},
		{"patches by somebody else", http.MethodPatch, object, "bob", 2},
		{"deletions", http.MethodDelete, object, "alice", 4},
		{"reads", http.MethodGet, object, "alice", 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLoaded(t, 1, proxy.LoadLimits{Requests: 100})
				l.rights.set("bob", true, inWorkspace(v1alpha1.RoleMember))
				l.send(3, http.MethodPatch, object, "alice")
				l.send(3, tc.method, tc.target, tc.user)
				require.Equal(t, tc.flying, l.kcp.has("aaaa"))
				close(l.kcp.released)
				l.running.Wait()
				require.Equal(t, 6, l.answered(http.StatusOK), "in turn, all")
			})
		})
	}
}

// A change that has waited for ten seconds is refused, and so is one that is too many to wait.
func TestLoad_changesOfOneObjectDoNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1, proxy.LoadLimits{Requests: 100})
		const object = "/clusters/aaaa/api/v1/namespaces/default/configmaps/one"
		l.send(300, http.MethodPatch, object, "alice")
		require.Equal(t, 1, l.kcp.has("aaaa"))
		require.Equal(t, 300-257, l.answered(http.StatusTooManyRequests))
		<-time.After(11 * time.Second)
		require.Equal(t, 299, l.answered(http.StatusTooManyRequests))
		require.Equal(t, "changes_in_flight_per_object", l.refused.all()[0])
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 1, l.answered(http.StatusOK))
	})
}

// The attack: take all connections to kcp, and hold them. A quarter of them is for Organizations with few.
func TestLoad_takingAllConnectionsHoldsUpOneOrganizationAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 1, proxy.LoadLimits{All: 32})
		const object = "/api/v1/namespaces/default/configmaps/one"
		l.send(40, http.MethodGet, "/clusters/aaaa"+object, "alice")
		require.Equal(t, 24, l.kcp.has("aaaa"))
		require.Equal(t, 16, l.answered(http.StatusTooManyRequests), "at once")
		used, _ := l.metric(t, "kedge_proxy_in_flight_requests")
		require.InDelta(t, 24, used, 0)
		l.send(2, http.MethodGet, "/clusters/bbbb"+object, "bob")
		require.Equal(t, 2, l.kcp.has("bbbb"))
		require.Equal(t, "requests_in_flight", l.refused.all()[0])
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 26, l.answered(http.StatusOK))
		// The control: nothing is left of what was counted.
		l.send(20, http.MethodGet, "/clusters/aaaa"+object, "alice")
		l.running.Wait()
		require.Equal(t, 46, l.answered(http.StatusOK))
	})
}

// The attack: have a request wait, and lose the right to it meanwhile.
func TestLoad_aRightThatEndsWhileARequestWaitsIsNotUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(t, 200, proxy.LoadLimits{Bytes: 64 * mebibyte})
		l.send(2, http.MethodGet, "/clusters/aaaa/api/v1/secrets", "alice")
		require.Equal(t, 1, l.kcp.has("aaaa"))
		l.rights.set("alice", false)
		l.proxy.Recheck("alice")
		close(l.kcp.released)
		l.running.Wait()
		require.Equal(t, 2, l.answered(http.StatusForbidden))
		require.Equal(t, 1, l.kcp.all, "kcp never gets the one that waited")
	})
}

// The attack: ask for an answer and do not read it.
func TestLoad_whoDoesNotReadLosesTheRoom(t *testing.T) {
	t.Parallel()
	server, transport := kcp(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 64 {
			if _, err := w.Write(make([]byte, mebibyte)); err != nil {
				return
			}
		}
	})
	for target, metric := range map[string]string{
		"secrets":                        "kedge_proxy_in_flight_bytes",
		"namespaces/default/secrets/one": "kedge_proxy_in_flight_requests",
	} {
		for version := 1; version <= 2; version++ {
			h := newHub(t, server.URL, transport, func(c *proxy.Config) {
				c.Load = proxy.LoadLimits{
					All: 2, Bytes: 64 * mebibyte, Time: time.Second,
					Stored: func(tenancy.Workspace) (int64, int64, bool) { return 64, 64 * mebibyte, true },
				}
			})
			url, client := serveHTTP(t, h, version)
			response := get(t, client, url+"/clusters/aaaa/api/v1/"+target)
			require.Equal(t, http.StatusOK, response.StatusCode)
			used, _ := h.metric(t, metric)
			require.NotZero(t, used, "the control")
			// Where the client's window is full, the alert that closes TLS waits for it for five seconds more.
			require.Eventually(t, func() bool {
				used, _ := h.metric(t, metric)
				return used == 0
			}, deadline*9/10, time.Millisecond, "before the client gives up")
			read, err := io.Copy(io.Discard, response.Body)
			require.Error(t, err, "it does not take a part for the whole")
			require.Less(t, read, int64(64*mebibyte))
			require.NoError(t, response.Body.Close())
		}
	}
}

// A connection goes on for minutes after a large answer.
func TestLoad_endsNoLaterAnswerOfTheConnection(t *testing.T) {
	t.Parallel()
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	h := newHub(t, kcpURL, roundTripper(func(r *http.Request) (*http.Response, error) {
		require.Len(t, w.write, 1, "the control")
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}), func(c *proxy.Config) {
		c.Load = proxy.LoadLimits{
			Bytes: 64 * mebibyte, Time: time.Minute,
			Stored: func(tenancy.Workspace) (int64, int64, bool) { return 64, 64 * mebibyte, true },
		}
	})
	h.ServeHTTP(w, request(http.MethodGet, "/clusters/aaaa/api/v1/secrets", "alice"))
	require.Equal(t, http.StatusOK, w.Code)
	require.Zero(t, w.write[len(w.write)-1])
}

func TestLoad_withoutLimitsEverythingPasses(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	h := newHub(t, kcpURL, rec)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(http.MethodGet, "/clusters/aaaa/api/v1/secrets", "alice"))
	require.Equal(t, http.StatusOK, w.Code)
	require.Len(t, rec.requests, 1)
}
