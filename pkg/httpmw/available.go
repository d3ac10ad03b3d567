package httpmw

import (
	"context"
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// RequireAvailable refuses all requests with the error of wait, which waits a short time for
// kcp to become available. Requests that caches could answer are refused, too: a right may be
// revoked meanwhile.
func RequireAvailable(wait func(context.Context) error) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			if err := wait(r.Context()); err != nil {
				return err
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}
