package proxy

import (
	"net/http"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// reportWrite returns a func that reports a write to Config.Wrote. It returns nil for
// a read.
func (p *Proxy) reportWrite(method string, e tenancy.Entry, info *request.RequestInfo) func() {
	if p.config.Wrote == nil || !writes(method) || !info.IsResourceRequest {
		return nil
	}
	written := tenancy.ObjectWrite{
		Verb: info.Verb, Group: info.APIGroup, Resource: info.Resource, Namespace: info.Namespace, Name: info.Name,
	}
	if len(info.Parts) > 0 && info.Parts[0] == "namespaces" && info.Name == info.Namespace {
		// RequestInfo says that a Namespace is in itself.
		written.Namespace = ""
	}
	return func() { p.config.Wrote(e, written) }
}

func writes(method string) bool { return method != http.MethodGet && method != http.MethodHead }

// bindsPeople reports whether a request may give somebody a role.
func bindsPeople(method string, info *request.RequestInfo) bool {
	return writes(method) && info.APIGroup == rbacv1.GroupName
}

// answered reports a write unless kcp has refused it. kcp may have done a write that
// it could not finish or did not answer.
func (e *exchange) answered(code int) {
	if e.wrote != nil && (code < http.StatusMultipleChoices || code >= http.StatusInternalServerError) {
		e.wrote()
	}
}
