package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/faroshq/kedge-hub/test/framework"
)

// between is the pause between two requests of a worker of the load.
const between = 20 * time.Millisecond

// load is what people do all the time, in an Organization of its own: alice writes ConfigMaps, adds frank and removes
// him, and two informers of Kubernetes' own client watch the ConfigMaps, as alice and as a bot.
type load struct {
	client               *framework.Client
	org, objects         string
	cluster              string
	stop                 context.CancelFunc
	working              sync.WaitGroup
	informers            []cache.SharedIndexInformer
	answered, unanswered atomic.Int64
	// watched and listed count the watches and lists of the informers that were answered.
	watched, listed atomic.Int64

	// mu is of made and wrong.
	mu sync.Mutex
	// made are the ConfigMaps whose create was answered.
	made map[string]bool
	// wrong are answers that no upgrade explains.
	wrong []string

	// turn is held while frank is added, removed or looked at.
	turn sync.Mutex
	// may are the possible roles of frank: one if every request was answered.
	may []string
}

func newLoad(t *testing.T, h *hub) *load {
	t.Helper()
	client, err := framework.NewClient(h.URL, h.CA)
	require.NoError(t, err)
	l := &load{client: client, org: h.CreateOrg(t, "alice", "Load"), made: map[string]bool{}, may: []string{""}}
	s := &scene{a: "alice", org: l.org, key: "load"}
	made := h.CreateWorkspace(t, "alice", l.org, "Load")
	s.ws, l.cluster = made.Text("uuid"), made.Text("clusterID")
	l.objects = "/clusters/" + l.cluster + "/api/v1/namespaces/default/configmaps"
	s.bot = h.Do(t, createBot(s), http.StatusCreated).Text("uuid")
	secret := h.Do(t, onBot(http.MethodPost, "/tokens", map[string]any{})(s), http.StatusCreated).Text("token")
	framework.Eventually(t, framework.Long, func() error {
		code, err := enters(h, secret, l.cluster)
		return framework.Check(err == nil && code == http.StatusOK, "the bot gets %d: %v", code, err)
	})

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	l.stop = stop
	t.Cleanup(func() {
		stop()
		l.working.Wait()
	})
	for _, token := range []string{framework.Token("alice"), secret} {
		l.watches(ctx, t, token)
	}
	l.working.Go(func() { l.repeats(ctx, l.creates) })
	l.working.Go(func() { l.repeats(ctx, l.toggles) })
	return l
}

// watches starts an informer.
func (l *load) watches(ctx context.Context, t *testing.T, token string) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(&rest.Config{
		Host: l.client.URL + "/clusters/" + l.cluster, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: l.client.CA},
		WrapTransport: func(next http.RoundTripper) http.RoundTripper { return counted{l, next} },
	})
	require.NoError(t, err)
	informer := cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "configmaps", "default", fields.Everything()), &corev1.ConfigMap{}, 0, cache.Indexers{})
	// The default prints each error, and a hub that is not there is no news.
	require.NoError(t, informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}))
	l.informers = append(l.informers, informer)
	l.working.Go(func() { informer.RunWithContext(ctx) })
}

// counted is the transport of an informer.
type counted struct {
	load *load
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := c.next.RoundTrip(r)
	switch {
	case err != nil || a.StatusCode != http.StatusOK:
	case r.URL.Query().Get("watch") == "":
		c.load.listed.Add(1)
	default:
		c.load.watched.Add(1)
	}
	return a, err
}

// repeats does something until the load ends.
func (l *load) repeats(ctx context.Context, do func(n int)) {
	tick := time.NewTicker(between)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(n)
		}
	}
}

// sends reports whether a request succeeded, and whether it was refused with one of the codes. A hub that starts or
// ends does not answer, or with 503.
func (l *load) sends(c framework.Call, codes ...int) (done, refused bool) {
	a, err := l.client.TryOnce(c)
	switch {
	case err != nil || a.Code > http.StatusInternalServerError:
		l.unanswered.Add(1)
		return false, false
	case a.Code/100 == 2:
		l.answered.Add(1)
		return true, false
	case slices.Contains(codes, a.Code):
		return false, true
	case a.Code != http.StatusTooManyRequests:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wrong = append(l.wrong, fmt.Sprintf("%s %s: %d %s", c.Method, c.Path, a.Code, a.Raw))
	}
	return false, false
}

// creates makes a ConfigMap.
func (l *load) creates(n int) {
	name := fmt.Sprint("load-", n)
	done, _ := l.sends(framework.Call{As: "alice", Method: http.MethodPost, Path: l.objects, Body: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
	}})
	if done {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.made[name] = true
	}
}

// toggles adds frank to the Organization if he is not in it, and removes him otherwise.
func (l *load) toggles(int) {
	l.turn.Lock()
	defer l.turn.Unlock()
	if slices.Equal(l.may, []string{""}) {
		l.may = append(l.may, "member")
		if done, _ := l.sends(framework.InOrg("alice", http.MethodPost, l.org, "/members", framework.Adding("frank", "member"))); done {
			l.may = []string{"member"}
		}
		return
	}
	if !slices.Contains(l.may, "") {
		l.may = append(l.may, "")
	}
	// A removal that got no answer may have happened.
	done, gone := l.sends(framework.InOrg("alice", http.MethodDelete, l.org, "/members/frank", nil), http.StatusNotFound)
	if done || gone {
		l.may = []string{""}
	}
}

// holds requires that all that was answered is so, and that the informers have gone on.
func (l *load) holds(t *testing.T, h *hub) {
	t.Helper()
	l.turn.Lock()
	defer l.turn.Unlock()
	role := framework.RolesListed(h.Do(t, framework.InOrg("alice", http.MethodGet, l.org, "/members", nil), http.StatusOK))["frank"]
	require.Contains(t, l.may, role)
	l.may = []string{role}
	code := h.Do(t, framework.InOrg("frank", http.MethodGet, l.org, "", nil), http.StatusOK, http.StatusForbidden, http.StatusNotFound).Code
	require.Equal(t, role != "", code == http.StatusOK, "frank is %q and gets %d", role, code)
	if role == "" {
		h.kcp().Refuses(t, "frank", l.cluster)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.wrong)
	there := map[string]bool{}
	var list corev1.ConfigMapList
	require.NoError(t, json.Unmarshal(h.Do(t, framework.Call{As: "alice", Method: http.MethodGet, Path: l.objects}, http.StatusOK).Raw, &list))
	for _, o := range list.Items {
		there[o.Name] = true
	}
	for name := range l.made {
		require.True(t, there[name], "%s was acknowledged and is lost", name)
	}
	for _, informer := range l.informers {
		framework.Eventually(t, framework.Long, func() error {
			for name := range there {
				if _, has, err := informer.GetStore().GetByKey("default/" + name); err != nil || !has {
					return fmt.Errorf("an informer of %d lacks %s of %d: %w", len(informer.GetStore().ListKeys()), name, len(there), err)
				}
			}
			return nil
		})
	}
}

// ends stops the load.
func (l *load) ends(t *testing.T) {
	t.Helper()
	l.stop()
	l.working.Wait()
	require.Empty(t, l.wrong)
	require.Positive(t, l.unanswered.Load())
	require.GreaterOrEqual(t, l.watched.Load(), int64(4*len(l.informers)), "each version has answered watches")
}

func (l *load) String() string {
	return fmt.Sprintf("%d requests of the load answered, %d not; %d watches and %d lists of the informers answered",
		l.answered.Load(), l.unanswered.Load(), l.watched.Load(), l.listed.Load())
}
