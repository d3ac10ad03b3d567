package kcpfake

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// The verbs of requests, as in RBAC rules. A server-side apply is a verb of its own
// here, because tests tell it from other patches.
const (
	verbGet    = "get"
	verbList   = "list"
	verbWatch  = "watch"
	verbCreate = "create"
	verbUpdate = "update"
	verbPatch  = "patch"
	verbApply  = "apply"
	verbDelete = "delete"
)

// Request is a request for objects.
type Request struct {
	// Verb is get, list, watch, create, update, patch, apply or delete.
	Verb string
	// Method is the HTTP method.
	Method string
	// Base is the path before "/clusters/": empty, or that of a virtual workspace.
	Base string
	// Cluster is a logical cluster, or "*".
	Cluster                  string
	Group, Version, Resource string
	Subresource              string
	Namespace, Name          string
	Query                    url.Values
	Header                   http.Header
	Body                     []byte
	// table says that the client wants the names as a Table.
	table bool
}

// Mutating reports whether the request is a write.
func (r Request) Mutating() bool {
	switch r.Verb {
	case verbCreate, verbUpdate, verbPatch, verbApply, verbDelete:
		return true
	}
	return false
}

// String is the request in the form "patch users/alice/status in root:kedge:users", with
// the namespace before the name where there is one.
func (r Request) String() string {
	of := r.Resource
	for _, part := range []string{r.Namespace, r.Name, r.Subresource} {
		if part != "" {
			of += "/" + part
		}
	}
	return r.Verb + " " + of + " in " + r.Cluster
}

func (r Request) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

func (r Request) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// parse reads a request the way a Kubernetes API server does.
func parse(r *http.Request, body []byte) (Request, error) {
	base, rest, ok := strings.Cut(r.URL.Path, "/clusters/")
	if !ok {
		return Request{}, notServed(r.URL.Path)
	}
	cluster, path, _ := strings.Cut(rest, "/")
	inner := r.Clone(r.Context())
	inner.URL.Path = "/" + path
	factory := request.RequestInfoFactory{APIPrefixes: map[string]sets.Empty{"api": {}, "apis": {}}, GrouplessAPIPrefixes: map[string]sets.Empty{"api": {}}}
	info, err := factory.NewRequestInfo(inner)
	if err != nil {
		return Request{}, errors.NewBadRequest(err.Error())
	}
	in := Request{
		Verb: info.Verb, Method: r.Method, Base: base, Cluster: cluster, Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource,
		Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
		Query: r.URL.Query(), Header: r.Header.Clone(), Body: body, table: strings.Contains(r.Header.Get("Accept"), "as=Table"),
	}
	if in.Resource == "namespaces" && in.Group == "" {
		in.Namespace = ""
	}
	if in.Verb == verbPatch && r.Header.Get("Content-Type") == string(types.ApplyPatchType) {
		in.Verb = verbApply
	}
	if !info.IsResourceRequest {
		return discovery(in, path)
	}
	return in, nil
}

// discovery returns the request for what a group and version serves.
func discovery(in Request, path string) (Request, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case in.Verb != verbGet:
	case len(parts) == 2 && parts[0] == "api":
		in.Version = parts[1]
		return in, nil
	case len(parts) == 3 && parts[0] == "apis":
		in.Group, in.Version = parts[1], parts[2]
		return in, nil
	}
	return in, notServed(path)
}

func notServed(path string) error {
	return &errors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("%q is not served", path),
	}}
}
