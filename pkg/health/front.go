package health

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/version"
)

// Front answers the health probes at once, and everything else as soon as Open is called.
type Front struct {
	router chi.Router
	checks *Checks
	app    atomic.Pointer[http.Handler]
}

// NewFront returns a Front that serves the checks on /readyz, and document on /openapi.json:
// neither needs kcp.
func NewFront(h *Checks, document http.Handler) *Front {
	f := &Front{checks: h}
	r := chi.NewRouter()
	r.Use(identify, middleware.GetHead)
	r.Get("/healthz", healthz)
	r.Get("/livez", healthz)
	r.Get("/readyz", h.readyz)
	r.Get("/version", func(w http.ResponseWriter, _ *http.Request) {
		_ = httpapi.Write(w, http.StatusOK, map[string]string{"version": version.String()})
	})
	r.Get("/openapi.json", document.ServeHTTP)
	r.MethodNotAllowed(httpapi.MethodNotAllowed)
	f.router = r
	return f
}

// identify gives every answer its X-Request-Id.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpmw.Identify(w)
		next.ServeHTTP(w, r)
	})
}

// Routes returns the routes that the Front serves itself.
func (f *Front) Routes() chi.Routes { return f.router }

// Open lets app answer everything but the health probes.
func (f *Front) Open(app http.Handler) { f.app.Store(&app) }

func (f *Front) forward(w http.ResponseWriter, r *http.Request) {
	app := f.app.Load()
	if app == nil {
		httpmw.Identify(w)
		e := errs.New(errs.Unavailable, "the hub is still starting; /readyz tells when it is done").After(time.Second)
		if why := f.checks.why(); why != "" {
			e = errs.New(errs.Unavailable, why+"; it serves by itself when none is").After(10 * time.Second)
		}
		httpapi.WriteError(w, r, e)
		return
	}
	(*app).ServeHTTP(w, r)
}

func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Only health paths go through the router of the front: the app needs a request
	// without a routing context.
	switch r.URL.Path {
	case "/healthz", "/livez", "/readyz", "/version", "/openapi.json":
		f.router.ServeHTTP(w, r)
	default:
		f.forward(w, r)
	}
}
