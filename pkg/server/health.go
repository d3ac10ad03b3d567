package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/version"
)

const (
	probeEvery   = time.Second
	probeTimeout = 2 * time.Second
)

// health is what /readyz tells of.
type health struct {
	kcp   atomic.Bool
	views atomic.Pointer[func() bool]
}

func newHealth() *health { return &health{} }

func (h *health) kcpReachable() bool { return h.kcp.Load() }

func (h *health) assembled(viewsReady func() bool) { h.views.Store(&viewsReady) }

// probe asks kcp every second whether it is there, so that requests need not.
func (h *health) probe(ctx context.Context, clients *kcp.Clients) {
	client, base := clients.HTTP()
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		h.kcp.Store(reachable(ctx, client, base))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func reachable(ctx context.Context, client *http.Client, base string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := client.Do(r)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

type check struct {
	name string
	ok   bool
}

func (h *health) checks() []check {
	views := h.views.Load()
	return []check{
		{"kcp", h.kcp.Load()},
		{"views", views != nil && (*views)()},
		{"controllers", views != nil},
	}
}

func (h *health) readyz(w http.ResponseWriter, r *http.Request) {
	code, b := http.StatusOK, &strings.Builder{}
	for _, c := range h.checks() {
		mark, word := "+", "ok"
		if !c.ok {
			mark, word, code = "-", "not ready", http.StatusServiceUnavailable
		}
		fmt.Fprintf(b, "[%s]%s %s\n", mark, c.name, word)
	}
	if !r.URL.Query().Has("verbose") && code == http.StatusOK {
		b.Reset()
		b.WriteString("ok")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, b.String())
}

func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok")
}

// front answers from the first moment: health at once, everything else when the
// hub is put together.
type front struct {
	router http.Handler
	app    atomic.Pointer[http.Handler]
}

func newFront(h *health) *front {
	f := &front{}
	r := chi.NewRouter()
	r.Get("/healthz", healthz)
	r.Get("/livez", healthz)
	r.Get("/readyz", h.readyz)
	r.Get("/version", func(w http.ResponseWriter, _ *http.Request) {
		_ = httpapi.Write(w, http.StatusOK, map[string]string{"version": version.String()})
	})
	r.NotFound(f.forward)
	r.MethodNotAllowed(f.forward)
	f.router = r
	return f
}

func (f *front) open(app http.Handler) { f.app.Store(&app) }

func (f *front) forward(w http.ResponseWriter, r *http.Request) {
	app := f.app.Load()
	if app == nil {
		e := errs.New(errs.Unavailable, "the hub is still starting; /readyz tells when it is done")
		e.RetryAfter = time.Second
		httpapi.WriteError(w, r, e)
		return
	}
	(*app).ServeHTTP(w, r)
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The router of the front looks at health paths only; the rest must reach the
	// app without a routing context of the front's.
	switch r.URL.Path {
	case "/healthz", "/livez", "/readyz", "/version":
		f.router.ServeHTTP(w, r)
	default:
		f.forward(w, r)
	}
}
