package proxy

import (
	"net/http"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// telling returns what tells Config.Wrote of a request, nil where there is nothing
// to tell.
func (p *Proxy) telling(r *http.Request, e tenancy.Entry, path string) func() {
	if p.config.Wrote == nil || !writes(r.Method) {
		return nil
	}
	return func() { p.config.Wrote(e, r.Method, path) }
}

func writes(method string) bool { return method != http.MethodGet && method != http.MethodHead }

// bindsPeople tells whether a request may give somebody a role; path is what follows
// the cluster, decoded.
func bindsPeople(method, path string) bool {
	return writes(method) && strings.HasPrefix(path, "/apis/rbac.authorization.k8s.io/")
}

// answered tells of a write unless kcp has refused it: one that it could not
// finish, or gave no answer to, may be done all the same.
func (e *exchange) answered(code int) {
	if e.wrote != nil && (code < http.StatusMultipleChoices || code >= http.StatusInternalServerError) {
		e.wrote()
	}
}
