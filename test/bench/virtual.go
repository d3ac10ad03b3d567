package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// virtualWorkspace is a fake of the virtual workspace of the tenancy export for a generated
// platform. It answers lists; its watches have no events.
type virtualWorkspace struct{ kinds map[string]kind }

// kind is the number of objects of a resource, and a func that returns the i-th.
type kind struct {
	gvk   schema.GroupVersionKind
	count int
	at    func(i int) kcp.Object
}

func newVirtualWorkspace(p platform) virtualWorkspace {
	ours := v1alpha1.SchemeGroupVersion.WithKind
	return virtualWorkspace{map[string]kind{
		"organizations":         {ours("Organization"), p.orgs, func(i int) kcp.Object { return p.organization(i) }},
		"workspaces":            {kcptenancyv1alpha1.SchemeGroupVersion.WithKind("Workspace"), p.orgs + p.workspaces, func(i int) kcp.Object { return p.kcpWorkspace(i) }},
		"users":                 {ours("User"), p.people, func(i int) kcp.Object { return p.user(i) }},
		"usermembershipindexes": {ours("UserMembershipIndex"), p.people, func(i int) kcp.Object { return p.index(i) }},
		"memberships":           {ours("Membership"), p.people * memberships, func(i int) kcp.Object { return p.membership(i) }},
	}}
}

// start serves it and returns a client configuration for it.
func (v virtualWorkspace) start() (config *rest.Config, stop func()) {
	server := httptest.NewTLSServer(v)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, server.Close
}

// ServeHTTP implements http.Handler.
func (v virtualWorkspace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k, ok := v.kinds[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	if query.Get("watch") == "true" {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	// Like kcp, a list with resourceVersion 0 ignores the limit.
	count := k.count
	if query.Get("limit") == "1" && query.Get("resourceVersion") != "0" {
		count = min(count, 1)
	}
	// An error here means that the client has gone.
	_ = k.write(w, count)
}

func (k kind) write(w io.Writer, count int) error {
	version, name := k.gvk.ToAPIVersionAndKind()
	if _, err := fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"1"},"items":[`, version, name+"List"); err != nil {
		return err
	}
	for i := range count {
		o := k.at(i)
		o.GetObjectKind().SetGroupVersionKind(k.gvk)
		raw, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if i > 0 {
			raw = append([]byte{','}, raw...)
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "]}")
	return err
}
