package proxy

import (
	"io"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

// count counts a request that the gate and the limits have admitted. The caller must call End.
func (p *Proxy) count(s *stream, method string, w tenancy.Workspace, info *request.RequestInfo) usage.Request {
	by := usage.Caller{ID: s.key.user}
	if account, ok := tenancy.BotAccountOf(s.key.user); ok {
		by = usage.Caller{Bot: true, ID: account}
	}
	class := usage.Read
	switch {
	case info.Verb == "watch":
		class = usage.Watch
	case writes(method):
		class = usage.Write
	}
	return p.config.Usage.Begin(usage.Workspace{Org: w.OrgUUID, UUID: w.UUID}, by, class, s.longRunning)
}

// countingWriter counts what a client gets.
type countingWriter struct {
	io.Writer
	used usage.Request
}

func (w countingWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.used.Out(n)
	return n, err
}
