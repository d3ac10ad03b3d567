package proxy

import (
	"io"
	"net/http"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// handler is a handler that returns its error, as httpapi.Handler, but for the
// way refuse writes it.
type handler func(w http.ResponseWriter, r *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		refuse(w, r, err)
	}
}

// refuse answers with a metav1.Status, but for one thing: kubectl begins with
// discovery, and shows nothing but "unknown" of a refusal of that unless it is
// plain text. So a client that asks for aggregated discovery, as kubectl does and
// nothing else here, is told in plain text why it may not or what is not there.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	code, message := httpapi.Describe(err)
	if code != http.StatusForbidden && code != http.StatusNotFound ||
		!strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") {
		httpapi.WriteError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, message)
}
