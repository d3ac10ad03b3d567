package transport

import (
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Admission returns the error for a request that creates an object, while it may not.
type Admission func() error

// admit returns a layer that asks before every request that may create an object. Other writes pass:
// what takes something away is a DELETE, or an update of what exists.
func admit(admission Admission) layer {
	return func(next http.RoundTripper) http.RoundTripper { return admitted{next: next, admission: admission} }
}

type admitted struct {
	next      http.RoundTripper
	admission Admission
}

func (a admitted) RoundTrip(r *http.Request) (*http.Response, error) {
	if creates(r) {
		if err := a.admission(); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
	}
	return a.next.RoundTrip(r)
}

// creates reports whether a request may create an object. The reviews of kcp are not stored, and a
// server-side apply creates what does not exist.
func creates(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost:
		return !strings.Contains(r.URL.Path, "/apis/"+authenticationv1.GroupName+"/") &&
			!strings.Contains(r.URL.Path, "/apis/"+authorizationv1.GroupName+"/")
	case http.MethodPatch:
		return strings.HasPrefix(r.Header.Get("Content-Type"), string(types.ApplyPatchType))
	}
	return false
}
