package health

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// Checks are the checks of /readyz.
type Checks struct {
	clients atomic.Pointer[kcp.Clients]
	views   atomic.Pointer[func() bool]

	// restoring says why the hub does not serve yet, after a restore.
	restoring atomic.Pointer[func() string]

	mu sync.Mutex
	// details do not change whether the hub is ready.
	details []detail
}

type detail struct {
	name string
	err  func() error
}

// NewChecks returns checks that fail until the hub has started.
func NewChecks() *Checks { return &Checks{} }

// KCPReachable reports whether kcp answers and says that it is ready.
func (h *Checks) KCPReachable() bool { return h.kcp() == "" }

// Assembled says that the controllers have started. viewsReady is checked from then on.
func (h *Checks) Assembled(viewsReady func() bool) { h.views.Store(&viewsReady) }

// Restoring takes what everybody is told while a hub that was restored does not serve. says returns nothing otherwise.
func (h *Checks) Restoring(says func() string) { h.restoring.Store(&says) }

// why is what everybody may know of a hub that does not serve.
func (h *Checks) why() string {
	if says := h.restoring.Load(); says != nil {
		return (*says)()
	}
	return ""
}

// Probe checks kcp continuously, so that requests need not.
func (h *Checks) Probe(ctx context.Context, clients *kcp.Clients) {
	h.clients.Store(clients)
	clients.Transport().Probe(ctx)
}

// kcp returns what is wrong with kcp, or the empty string.
func (h *Checks) kcp() (why string) {
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

// AddDetail adds a check that the hub stays ready in spite of. The text of err is for operators.
func (h *Checks) AddDetail(name string, err func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.details = append(h.details, detail{name, err})
}

// check is one check of readiness.
type check struct {
	// why is the problem, or empty.
	name, why string
	// lenient means that the hub stays ready in spite of the problem.
	lenient bool
}

func (h *Checks) checks() []check {
	inMemory, controllers := "memory is not filled yet", "they have not started yet"
	if views := h.views.Load(); views != nil {
		controllers = ""
		if (*views)() {
			inMemory = ""
		}
	}
	all := []check{{name: "kcp", why: h.kcp()}, {name: "views", why: inMemory}, {name: "controllers", why: controllers}}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.details {
		c := check{name: d.name, lenient: true}
		if err := d.err(); err != nil {
			c.why = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		all = append(all, c)
	}
	return all
}

// ready reports whether the hub can serve, and lists every check in the form of
// kube-apiserver's /readyz?verbose.
func (h *Checks) ready() (code int, well bool, details string) {
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
func (h *Checks) readyz(w http.ResponseWriter, _ *http.Request) {
	code, _, _ := h.ready()
	if code == http.StatusOK {
		writeText(w, code, "ok")
		return
	}
	if why := h.why(); why != "" {
		writeText(w, code, "not ready: "+why)
		return
	}
	writeText(w, code, "not ready")
}

// Details is the readiness probe of the metrics listener. It lists the checks where one
// fails, and with ?verbose always.
func (h *Checks) Details(w http.ResponseWriter, r *http.Request) {
	httpmw.Identify(w)
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
