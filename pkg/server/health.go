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
	"github.com/go-chi/chi/v5/middleware"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/version"
)

// health has the checks of /readyz.
type health struct {
	clients atomic.Pointer[kcp.Clients]
	views   atomic.Pointer[func() bool]
	disk    atomic.Pointer[dataDisk]
}

func newHealth() *health { return &health{} }

func (h *health) kcpReachable() bool { return h.kcp() == "" }

func (h *health) assembled(viewsReady func() bool) { h.views.Store(&viewsReady) }

// probe checks kcp continuously, so that requests need not.
func (h *health) probe(ctx context.Context, clients *kcp.Clients) {
	h.clients.Store(clients)
	clients.Transport().Probe(ctx)
}

// kcp returns what is wrong with kcp, or the empty string.
func (h *health) kcp() (why string) {
	clients := h.clients.Load()
	if clients == nil {
		return "it has not been asked yet"
	}
	switch health := clients.Health(); {
	case clients.Transport().Refused() != nil:
		return clients.Transport().Refused().Error()
	case health.Err() != nil:
		return "it does not answer"
	case !health.Ready():
		return "it does not say that it is ready"
	}
	return ""
}

// watch checks the disk of the embedded kcp continuously.
func (h *health) watch(ctx context.Context, d *dataDisk) {
	h.disk.Store(d)
	d.watch(ctx)
}

// check is one check of readiness.
type check struct {
	// why is the problem, or empty.
	name, why string
	// lenient means that the hub stays ready in spite of the problem.
	lenient bool
}

func (h *health) checks() []check {
	inMemory, controllers := "memory is not filled yet", "they have not started yet"
	if views := h.views.Load(); views != nil {
		controllers = ""
		if (*views)() {
			inMemory = ""
		}
	}
	all := []check{{name: "kcp", why: h.kcp()}, {name: "views", why: inMemory}, {name: "controllers", why: controllers}}
	if d := h.disk.Load(); d != nil {
		disk := check{name: "disk", lenient: true}
		if d.err() != nil {
			disk.why = "it is full; reads are answered, writes are refused until there is room"
		}
		all = append(all, disk)
	}
	return all
}

// ready reports whether the hub can serve, and lists every check in the form of
// kube-apiserver's /readyz?verbose.
func (h *health) ready() (code int, well bool, details string) {
	code, well = http.StatusOK, true
	b := &strings.Builder{}
	for _, c := range h.checks() {
		if c.why == "" {
			fmt.Fprintf(b, "[+]%s ok\n", c.name)
			continue
		}
		if well = false; !c.lenient {
			code = http.StatusServiceUnavailable
		}
		fmt.Fprintf(b, "[-]%s not ready: %s\n", c.name, c.why)
	}
	return code, well, b.String()
}

// readyz is the public readiness probe. It gives no details: they are for operators.
func (h *health) readyz(w http.ResponseWriter, _ *http.Request) {
	code, _, _ := h.ready()
	if code == http.StatusOK {
		writeText(w, code, "ok")
		return
	}
	writeText(w, code, "not ready")
}

// details is the readiness probe of the metrics listener. It lists the checks where one
// fails, and with ?verbose always.
func (h *health) details(w http.ResponseWriter, r *http.Request) {
	httpmw.Identify(w, r)
	code, well, details := h.ready()
	if well && !r.URL.Query().Has("verbose") {
		details = "ok"
	}
	writeText(w, code, details)
}

func healthz(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") }

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text)
}

// front answers from the first moment: the health probes at once, and everything else
// as soon as open is called.
type front struct {
	router http.Handler
	app    atomic.Pointer[http.Handler]
}

func newFront(h *health) *front {
	f := &front{}
	r := chi.NewRouter()
	r.Use(identify, middleware.GetHead)
	r.Get("/healthz", healthz)
	r.Get("/livez", healthz)
	r.Get("/readyz", h.readyz)
	r.Get("/version", func(w http.ResponseWriter, _ *http.Request) {
		_ = httpapi.Write(w, http.StatusOK, map[string]string{"version": version.String()})
	})
	r.MethodNotAllowed(httpapi.MethodNotAllowed)
	f.router = r
	return f
}

// identify gives every answer its X-Request-Id.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpmw.Identify(w, r)
		next.ServeHTTP(w, r)
	})
}

func (f *front) open(app http.Handler) { f.app.Store(&app) }

func (f *front) forward(w http.ResponseWriter, r *http.Request) {
	app := f.app.Load()
	if app == nil {
		httpmw.Identify(w, r)
		e := errs.New(errs.Unavailable, "the hub is still starting; /readyz tells when it is done")
		e.RetryAfter = time.Second
		httpapi.WriteError(w, r, e)
		return
	}
	(*app).ServeHTTP(w, r)
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Only health paths go through the router of the front: the app needs a request
	// without a routing context.
	switch r.URL.Path {
	case "/healthz", "/livez", "/readyz", "/version":
		f.router.ServeHTTP(w, r)
	default:
		f.forward(w, r)
	}
}
