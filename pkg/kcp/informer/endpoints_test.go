package informer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kcpapisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
)

// shards is a kcp with an export whose endpoints come and go. Each endpoint has Users and
// Organizations that do not change.
type shards struct {
	t         *testing.T
	url       string
	endpoints *informer.Endpoints
	// outages counts the calls of OnOutage.
	outages atomic.Int64
	users   *kind[*v1alpha1.User]
	orgs    *kind[*v1alpha1.Organization]

	mu      sync.Mutex
	version int
	named   []string
	changed chan struct{}
	// objects are, of each endpoint and resource, "cluster/name/version".
	objects map[string][]string
	// held are the lists that are answered only after their channel is closed.
	held map[string]chan struct{}
	// silent are the endpoints that do not answer; cut ends the watches when that changes. silence is
	// what a request to them meets.
	silent  map[string]bool
	silence http.HandlerFunc
	cut     chan struct{}
	// unserved are the kinds that an endpoint does not have yet, as "endpoint/resource".
	unserved map[string]bool
}

// kind keeps the events of a kind.
type kind[T kcp.Object] struct {
	t        *testing.T
	informer *informer.Informer[T]
	// before is called with every event, where it is not nil.
	before func(event string)

	mu     sync.Mutex
	seen   map[string]string
	events []string
}

func newKind[T kcp.Object](t *testing.T, i *informer.Informer[T]) *kind[T] {
	k := &kind[T]{t: t, informer: i, seen: map[string]string{}}
	var none T
	i.OnChange(func(old, new T) {
		o, event := new, "change "
		switch {
		case any(old) == any(none):
			event = "add "
		case any(new) == any(none):
			o, event = old, "remove "
		}
		event += o.GetName()
		if k.before != nil {
			k.before(event)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.events = append(k.events, event)
		delete(k.seen, o.GetName())
		if any(new) != any(none) {
			k.seen[o.GetName()] = o.GetResourceVersion()
		}
	})
	return k
}

// taken are the events since the last call.
func (k *kind[T]) taken() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	events := k.events
	k.events = nil
	slices.Sort(events)
	return events
}

func (k *kind[T]) names() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.seen))
}

// followed asserts that the events describe what the informer has cached.
func (k *kind[T]) followed() {
	k.t.Helper()
	held := map[string]string{}
	for o := range k.informer.All() {
		held[o.GetName()] = o.GetResourceVersion()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	require.Equal(k.t, held, k.seen)
}

// newShards names the endpoint "one" and waits until its objects are cached.
func newShards(t *testing.T, objects map[string][]string) *shards {
	t.Helper()
	s := &shards{t: t, objects: objects, changed: make(chan struct{}), held: map[string]chan struct{}{}, silent: map[string]bool{}, cut: make(chan struct{}), unserved: map[string]bool{}}
	f := startKCP(t, false)
	f.Config.Handler = s
	s.url = f.URL
	clients := f.clients(t)
	s.users = newKind(t, informer.New(clients, informer.Options[*v1alpha1.User]{}))
	s.orgs = newKind(t, informer.New(clients, informer.Options[*v1alpha1.Organization]{}))
	s.endpoints = informer.NewEndpoints(clients, "providers", "export", []string{"hub"}, s.users.informer, s.orgs.informer)
	s.endpoints.OnOutage(func() { s.outages.Add(1) })
	require.False(t, s.endpoints.Synced())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.name("one")
	go func() { defer close(ended); s.endpoints.Run(ctx) }()
	t.Cleanup(func() { stop(); await(t, ended) })
	s.synced(true)
	s.users.taken()
	s.orgs.taken()
	return s
}

func (s *shards) synced(want bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.endpoints.Synced() == want }, long, time.Millisecond)
}

// name makes the slice name these endpoints.
func (s *shards) name(endpoints ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.named = endpoints
	close(s.changed)
	s.changed = make(chan struct{})
}

// answer sets whether an endpoint answers.
func (s *shards) answer(endpoint string, answers bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent[endpoint] = !answers
	close(s.cut)
	s.cut = make(chan struct{})
}

// serve sets whether an endpoint has a kind.
func (s *shards) serve(endpoint, resource string, serves bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unserved[endpoint+"/"+resource] = !serves
}

// hold holds a list back until release is called.
func (s *shards) hold(endpoint, resource string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{})
	s.held[endpoint+"/"+resource] = c
	return sync.OnceFunc(func() { close(c) })
}

func (s *shards) slice() (raw []byte, version int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := kcpapisv1alpha1.APIExportEndpointSlice{}
	o.APIVersion, o.Kind = kcpapisv1alpha1.SchemeGroupVersion.String(), "APIExportEndpointSlice"
	o.Name, o.ResourceVersion = "export", fmt.Sprint(s.version)
	for _, endpoint := range s.named {
		o.Status.APIExportEndpoints = append(o.Status.APIExportEndpoints, kcpapisv1alpha1.APIExportEndpoint{URL: s.url + "/" + endpoint})
	}
	raw, _ = json.Marshal(o)
	return raw, s.version, s.changed
}

func (s *shards) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	if strings.Contains(r.URL.Path, "/apiexportendpointslices") {
		raw, version, changed := s.slice()
		if !query.Has("watch") {
			_, _ = w.Write(raw)
			return
		}
		for {
			if query.Get("resourceVersion") != fmt.Sprint(version) {
				_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, raw)
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-changed:
			}
			raw, version, changed = s.slice()
		}
	}
	parts := strings.Split(r.URL.Path, "/")
	from := parts[1] + "/" + parts[len(parts)-1]
	s.mu.Lock()
	objects, held, silent, cut, version := s.objects[from], s.held[from], s.silent[parts[1]], s.cut, "7"
	if s.unserved[from] {
		objects, version = nil, ""
	}
	s.mu.Unlock()
	switch {
	case silent:
		s.silence(w, r)
		return
	case query.Has("watch"):
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-cut:
		}
		return
	case held != nil && query.Get("limit") != "1":
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	kind := map[string]string{"users": "User", "organizations": "Organization"}[parts[len(parts)-1]]
	var items []string
	for _, o := range objects {
		of := strings.Split(o, "/")
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":%q,"annotations":{"kcp.io/cluster":%q}}}`, of[1], of[2], of[0]))
	}
	_, _ = io.WriteString(w, fmt.Sprintf(`{"apiVersion":"tenancy.kedge.faros.sh/v1alpha1","kind":"%sList","metadata":{"resourceVersion":%q},"items":[%s]}`, kind, version, strings.Join(items, ",")))
}

// The handler of one kind blocks at a removal while the other kind is replaced.
func TestEndpoints_replacementNotifiesInOrder(t *testing.T) {
	t.Parallel()
	s := newShards(t, map[string][]string{
		"one/users": {"c/same/1", "c/altered/1", "c/gone/1"}, "one/organizations": {"c/org/1", "c/gone/1"},
		"two/users": {"c/same/1", "c/altered/2", "c/new/2"}, "two/organizations": {"c/org/1"},
	})
	busy, done := make(chan struct{}), make(chan struct{})
	s.users.before = func(event string) {
		if event == "remove gone" {
			close(busy)
			<-done
		}
	}
	s.name("two")
	await(t, busy)
	require.Equal(t, []string{"gone", "org"}, s.orgs.names(), "of the kinds whose turn has not come nothing is gone")
	_, ok := s.orgs.informer.Get("c", "org")
	require.True(t, ok)
	close(done)

	require.Eventually(t, func() bool { return slices.Equal(s.orgs.names(), []string{"org"}) }, long, time.Millisecond)
	require.Equal(t, []string{"add new", "change altered", "remove gone"}, s.users.taken())
	require.Equal(t, []string{"remove gone"}, s.orgs.taken())
	s.users.followed()
	s.orgs.followed()
	require.True(t, s.endpoints.Synced(), "it took no longer than callers wait")
}

// An endpoint is kept until its replacement is filled. If that takes long the health
// becomes unavailable.
func TestEndpoints_keepObjectsWhileOneIsReplaced(t *testing.T) {
	t.Parallel()
	s := newShards(t, map[string][]string{
		"one/users": {"c/u/1"}, "one/organizations": {"c/o/1"},
		"two/users": {"c/u/1"}, "two/organizations": {"c/o/1"},
	})
	lost := make(chan struct{})
	s.endpoints.Health().OnUnavailable(func() { close(lost) })
	there, err := s.endpoints.Health().Await(t.Context())
	require.NoError(t, err)
	release := s.hold("two", "organizations")
	defer release()
	s.name("two")
	await(t, lost)
	require.Error(t, there.Err(), "writers that rely on the cache are stopped")
	require.Error(t, s.endpoints.Health().Wait(t.Context()))
	require.False(t, s.endpoints.Synced())
	s.users.followed()
	s.orgs.followed()
	require.Equal(t, []string{"u"}, s.users.names())
	require.Equal(t, []string{"o"}, s.orgs.names())

	release()
	s.synced(true)
	require.NoError(t, s.endpoints.Health().Wait(t.Context()), "the control: it is answered again")
	require.Empty(t, s.users.taken())
	require.Empty(t, s.orgs.taken())
	require.Len(t, s.users.informer.InCluster("c"), 1)
}

func TestEndpoints_keepObjectsWhileTheSliceIsEmpty(t *testing.T) {
	t.Parallel()
	s := newShards(t, map[string][]string{
		"one/users": {"c/u/1"}, "one/organizations": {"c/o/1"}, "other/users": {"other/v/1"},
	})
	for _, instead := range [][]string{nil, {"other"}} {
		s.name(instead...)
		s.synced(false)
		require.Contains(t, s.users.names(), "u", "an endpoint of another shard does not take its place")
		s.users.followed()
		s.name(append(instead, "one")...)
		s.synced(true)
	}
	require.Equal(t, []string{"add v"}, s.users.taken(), "the control: what came is told")
	require.Empty(t, s.orgs.taken())
}

func TestEndpoints_dropAnEndpointWithoutObjects(t *testing.T) {
	t.Parallel()
	s := newShards(t, map[string][]string{"one/users": {"c/u/1"}, "late/users": {"d/v/1"}})
	release := s.hold("late", "users")
	defer release()
	s.name("one", "empty", "late")
	s.synced(false)
	s.name("one", "empty")
	s.synced(true)
	s.name("one")
	require.Never(t, func() bool { return !s.endpoints.Synced() }, 2*transport.MaxWait, 10*time.Millisecond)
	require.Empty(t, s.users.taken())

	release()
	s.name("one", "late")
	require.Eventually(t, func() bool { return slices.Equal(s.users.names(), []string{"u", "v"}) }, long, time.Millisecond)
	s.name("one")
	s.synced(false)
	require.Equal(t, []string{"u", "v"}, s.users.names(), "the control: who is on it is not gone")
}

func TestEndpoints_anOutageIsThatOfOneShard(t *testing.T) {
	t.Parallel()
	for name, silence := range map[string]http.HandlerFunc{
		"a gateway without a connection": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusBadGateway) },
		// client-go takes it for a watch without events.
		"a connection that ends": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outageOfOneShard(t, silence)
		})
	}
}

func outageOfOneShard(t *testing.T, silence http.HandlerFunc) {
	t.Helper()
	s := newShards(t, map[string][]string{
		"one/users": {"hub/u/1"}, "one/organizations": {"near/o/1"}, "two/users": {"far/v/1"}, "two/organizations": {"far/o/1"},
	})
	s.silence = silence
	s.name("one", "two")
	// A shard without a list of every kind is not followed yet, and its silence is not an outage.
	require.Eventually(t, func() bool {
		_, listed := s.orgs.informer.Get("far", "o")
		return listed && slices.Equal(s.users.names(), []string{"u", "v"})
	}, long, time.Millisecond)
	s.synced(true)
	require.ElementsMatch(t, [][]string{{"hub"}, {"far"}}, s.endpoints.Clusters())
	refused := func(clusters ...string) func() bool {
		return func() bool { return errs.Is(s.endpoints.Err(clusters...), errs.Unavailable) }
	}
	require.False(t, refused("hub", "near", "far")())
	require.NoError(t, s.endpoints.Outage())

	s.answer("two", false)
	require.Eventually(t, refused("far"), long, time.Millisecond)
	require.ErrorContains(t, s.endpoints.Outage(), s.url+"/two")
	require.NotContains(t, s.endpoints.Outage().Error(), s.url+"/one")
	require.True(t, refused("near", "far")())
	require.False(t, refused("hub", "near", "unknown")(), "what lies on the other shard is followed")
	require.True(t, s.endpoints.Synced())
	require.EqualValues(t, 1, s.outages.Load())
	require.Equal(t, []string{"u", "v"}, s.users.names(), "nothing is taken for deleted")
	s.answer("two", true)
	require.Eventually(t, func() bool { return !refused("far")() }, long, time.Millisecond)
	require.NoError(t, s.endpoints.Outage())

	s.answer("one", false)
	s.synced(false)
	require.True(t, refused("near")())
	require.False(t, refused("far")())
	s.answer("one", true)
	s.synced(true)
	require.False(t, refused("hub", "near", "far")())
}

// kcp answers for a kind that a shard does not have yet with an empty list without a version. Its
// watch never brings an event.
func TestEndpoints_waitForAKindThatIsNotServedYet(t *testing.T) {
	t.Parallel()
	s := newShards(t, map[string][]string{"one/users": {"c/u/1"}, "two/users": {"d/v/1"}})
	s.serve("two", "users", false)
	s.name("one", "two")
	s.synced(false)
	require.Equal(t, []string{"u"}, s.users.names())
	s.serve("two", "users", true)
	s.synced(true)
	require.Equal(t, []string{"u", "v"}, s.users.names())
}
