package httpmw

import (
	"net/http"
	"slices"

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
			if MayWrite(r) {
				if err := check(); err != nil {
					return err
				}
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// MayWrite reports whether a request may store anything. A POST for a credential, and
// reviews of access and of identity in kcp, store nothing.
func MayWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return false
	case http.MethodPost:
		if info, ok := request.RequestInfoFrom(r.Context()); ok {
			return !review(info)
		}
		return r.URL.Path != "/api/credentials"
	}
	return true
}

// review reports whether a POST asks kcp about access or identity. kcp lets admins of a Workspace
// define other resources and versions in the groups of its reviews, and stores their objects.
func review(info *request.RequestInfo) bool {
	if info.Verb != "create" || info.APIVersion != "v1" || info.Subresource != "" || info.Name != "" {
		return false
	}
	switch info.APIGroup {
	case authorizationv1.GroupName:
		return slices.Contains([]string{"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews", "localsubjectaccessreviews"}, info.Resource)
	case authenticationv1.GroupName:
		return slices.Contains([]string{"selfsubjectreviews", "tokenreviews"}, info.Resource)
	}
	return false
}
