package httpmw

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/httpapi"
)

// RefuseWrites refuses requests that may write with the error of check. Requests that
// only read pass. It runs after Authenticate and, for clusters, after proxy.Shape.
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

// mayWrite reports whether a request may store anything. A POST for a credential, and
// reviews of access and of identity in kcp, store nothing.
func mayWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return false
	case http.MethodPost:
		if info, ok := request.RequestInfoFrom(r.Context()); ok {
			return info.APIGroup != authorizationv1.GroupName && info.APIGroup != authenticationv1.GroupName
		}
		return r.URL.Path != "/api/credentials"
	}
	return true
}
