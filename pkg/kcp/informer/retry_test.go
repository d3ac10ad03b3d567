package informer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp/informer"
)

const user = `{"apiVersion":"tenancy.kedge.faros.sh/v1alpha1","kind":"User","metadata":{"name":"u","resourceVersion":"%d","annotations":{"kcp.io/cluster":"c"}}}`

// A reflector's own back-off would have grown to half a minute in each of these cases.
func TestInformer_followsARecoveredKCPSoon(t *testing.T) {
	t.Parallel()
	const times = 8
	type answer func(w http.ResponseWriter, r *http.Request)
	list := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"apiVersion":"tenancy.kedge.faros.sh/v1alpha1","kind":"UserList","metadata":{"resourceVersion":"7"},"items":[]}`)
	}
	watch := func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":`+user+`}`, 8)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	status := func(code int) answer {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":%d}`, code)
		}
	}
	reset := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		list, watch answer
	}{
		"lists fail":              {list: status(http.StatusInternalServerError)},
		"lists are reset":         {list: reset},
		"watches are refused":     {watch: status(http.StatusInternalServerError)},
		"watches are reset":       {watch: reset},
		"watches are not allowed": {watch: status(http.StatusForbidden)},
		"watches end":             {watch: func(http.ResponseWriter, *http.Request) {}},
		"watches break":           {watch: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"type":`) }},
		"watches break in a flush": {watch: func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
		"watches end with an error": {watch: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"InternalError","code":500}}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lists, watches atomic.Int64
			f := newKCP(t)
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				query := r.URL.Query()
				switch {
				case query.Get("limit") == "1":
					list(w, r) // whether it is served
				case !query.Has("watch") && c.list != nil && lists.Add(1) <= times:
					c.list(w, r)
				case !query.Has("watch"):
					list(w, r)
				case c.watch != nil && watches.Add(1) <= times:
					c.watch(w, r)
				default:
					watch(w, r)
				}
			})
			clients := f.clients(t)
			users := informer.New(clients, informer.Options[*v1alpha1.User]{})
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan struct{})
			began := time.Now()
			go func() { defer close(ended); informer.Watch(ctx, []string{f.URL}, users) }()
			t.Cleanup(func() { stop(); await(t, ended) })
			require.Eventually(t, func() bool { _, ok := users.Get("c", "u"); return ok }, long, time.Millisecond)
			require.Less(t, time.Since(began), 12*time.Second)
			require.Positive(t, lists.Load()+watches.Load(), "the control: it went wrong before")
		})
	}
}

func TestInformer_listsAgainAfterManyBrokenWatches(t *testing.T) {
	t.Parallel()
	var lists atomic.Int64
	f := newKCP(t)
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Has("watch") {
			_, _ = io.WriteString(w, `{"type":"ADDED","object":{"kind":"Unknown"}}`)
			return
		}
		if r.URL.Query().Get("limit") != "1" {
			lists.Add(1)
		}
		_, _ = io.WriteString(w, `{"apiVersion":"tenancy.kedge.faros.sh/v1alpha1","kind":"UserList","metadata":{"resourceVersion":"7"},"items":[]}`)
	})
	users := informer.New(f.clients(t), informer.Options[*v1alpha1.User]{})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); informer.Watch(ctx, []string{f.URL}, users) }()
	t.Cleanup(func() { stop(); await(t, ended) })
	require.Eventually(t, func() bool { return lists.Load() > 1 }, long, time.Millisecond)
}
