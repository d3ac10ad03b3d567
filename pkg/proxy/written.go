package proxy

import (
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/errs"
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

// notEnforced refuses a write that the admission policy could not refuse yet. Clients
// of Kubernetes repeat the request by themselves.
func notEnforced() error {
	return errs.New(errs.Unavailable,
		"the workspace is new: kcp does not enforce its admission policy yet, which takes it about a second; "+
			"try again").After(time.Second)
}

// answered ends the turn of a request, settles what it adds, and reports a write unless kcp has refused it. kcp may have
// done a write that it could not finish or did not answer.
func (e *exchange) answered(code int) {
	e.leave()
	e.settled(outcomeOf(code))
	if e.wrote != nil && (code < http.StatusMultipleChoices || code >= http.StatusInternalServerError) {
		e.wrote()
	}
}
