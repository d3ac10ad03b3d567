package httpmw

import (
	"net/http"
	"strings"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// RefuseWrites answers requests that may write with what check returns, unless that is
// nil. Those that read pass whatever it returns. It stands behind Authenticate.
func RefuseWrites(check func() error) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			if mayWrite(r) {
				if err := check(); err != nil {
					return err
				}
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// mayWrite tells whether anything may be stored because of a request. Who wants a
// credential to read with, or asks kcp what they may do, or who they are, does so by
// POST, too.
func mayWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return false
	case http.MethodPost:
		// "", "clusters", cluster, "apis", group, what follows
		parts := strings.SplitN(r.URL.Path, "/", 6)
		if len(parts) == 6 && parts[1] == "clusters" && parts[3] == "apis" {
			return parts[4] != "authorization.k8s.io" && parts[4] != "authentication.k8s.io"
		}
		return r.URL.Path != "/api/credentials"
	}
	return true
}
