package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// writtenCRD is what the hub reports of a write to CustomResourceDefinitions.
func writtenCRD(verb, name string) *tenancy.ObjectWrite {
	return &tenancy.ObjectWrite{Verb: verb, Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: name}
}

func TestWrote_getsEveryWriteThatKCPMayHaveDone(t *testing.T) {
	t.Parallel()
	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	code := 0
	type report struct {
		cluster, org string
		tenancy.ObjectWrite
	}
	var reported []report
	h := newHub(t, "https://kcp", roundTripper(func(r *http.Request) (*http.Response, error) {
		if code == 0 {
			return nil, errors.New("connection reset")
		}
		return &http.Response{
			StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: r,
		}, nil
	}), func(c *proxy.Config) {
		c.Wrote = func(e tenancy.Entry, w tenancy.ObjectWrite) {
			reported = append(reported, report{e.Workspace.ClusterID, e.Workspace.OrgUUID, w})
		}
	})
	for _, c := range []struct {
		name, method, target, user string
		code                       int
		want                       *tenancy.ObjectWrite
	}{
		{"a create", "POST", "/clusters/aaaa" + crds, "alice", 201, writtenCRD("create", "")},
		{"an update", "PUT", "/clusters/aaaa" + crds + "/widgets.example.com", "alice", 200, writtenCRD("update", "widgets.example.com")},
		{"a patch, by the path of the Workspace", "PATCH", "/clusters/" + pathA + crds + "/widgets.example.com", "alice", 200, writtenCRD("patch", "widgets.example.com")},
		{"a delete", "DELETE", "/clusters/aaaa" + crds + "/widgets.example.com", "alice", 200, writtenCRD("delete", "widgets.example.com")},
		{"a delete of all, escaped and with a query", "DELETE", "/clusters/aaaa/apis/apiextensions.k8s.io/v1/customresource%64efinitions?labelSelector=a", "alice", 200, writtenCRD("deletecollection", "")},
		{"a delete of all with watch in the query", "DELETE", "/clusters/aaaa" + crds + "?watch=true", "alice", 202, writtenCRD("deletecollection", "")},
		{"one that kcp could not finish", "POST", "/clusters/aaaa" + crds, "alice", 504, writtenCRD("create", "")},
		{"one with a lost answer", "POST", "/clusters/aaaa" + crds, "alice", 0, writtenCRD("create", "")},
		{"one that kcp refused", "POST", "/clusters/aaaa" + crds, "alice", 403, nil},
		{"one of what exists already", "POST", "/clusters/aaaa" + crds, "alice", 409, nil},
		{"a read", "GET", "/clusters/aaaa" + crds, "alice", 200, nil},
		{"a read without a body", "HEAD", "/clusters/aaaa" + crds, "alice", 200, nil},
		{"a write to no resource", "POST", "/clusters/aaaa/apis/apiextensions.k8s.io/v1", "alice", 200, nil},
		{"one of a foreigner", "POST", "/clusters/aaaa" + crds, "bob", 201, nil},
	} {
		code, reported = c.code, nil
		h.do(request(c.method, c.target, c.user))
		var want []report
		if c.want != nil {
			want = []report{{"aaaa", orgA, *c.want}}
		}
		require.Equal(t, want, reported, c.name)
	}
}

// TestWrote_namesTheObjectAsKCPReadsIt has the URLs in which a name stands where
// another URL has a keyword.
func TestWrote_namesTheObjectAsKCPReadsIt(t *testing.T) {
	t.Parallel()
	var written tenancy.ObjectWrite
	h := newHub(t, kcpURL, &recorder{}, func(c *proxy.Config) {
		c.Wrote = func(_ tenancy.Entry, w tenancy.ObjectWrite) { written = w }
	})
	for path, want := range map[string]tenancy.ObjectWrite{
		"/api/v1/namespaces/default":                                                              {Resource: "namespaces", Name: "default"},
		"/api/v1/namespaces/default/status":                                                       {Resource: "namespaces", Name: "default"},
		"/api/v1/namespaces/default/finalize":                                                     {Resource: "namespaces", Name: "default"},
		"/api/v1/namespaces/default/configmaps/settings":                                          {Resource: "configmaps", Namespace: "default", Name: "settings"},
		"/api/v1/namespaces/default/configmaps/default":                                           {Resource: "configmaps", Namespace: "default", Name: "default"},
		"/api/v1/namespaces/default/configmaps/settings/":                                         {Resource: "configmaps", Namespace: "default", Name: "settings"},
		"/apis/example.com/v1/widgets/hello":                                                      {Group: "example.com", Resource: "widgets", Name: "hello"},
		"/apis/example.com/v1/widgets/hello/status":                                               {Group: "example.com", Resource: "widgets", Name: "hello"},
		"/apis/example.com/v1/namespaces/a/namespaces/b":                                          {Group: "example.com", Resource: "namespaces", Namespace: "a", Name: "b"},
		"/apis/example.com/v1/customresourcedefinitions/a":                                        {Group: "example.com", Resource: "customresourcedefinitions", Name: "a"},
		"/apis/example.com/v1/namespaces/customresourcedefinitions/ws":                            {Group: "example.com", Resource: "ws", Namespace: "customresourcedefinitions"},
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitionsx/a":                              {Group: "apiextensions.k8s.io", Resource: "customresourcedefinitionsx", Name: "a"},
		"/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions/widgets.example.com/status": *writtenCRD("", "widgets.example.com"),
	} {
		written = tenancy.ObjectWrite{}
		require.Equal(t, http.StatusOK, h.do(request(http.MethodPut, "/clusters/aaaa"+path, "alice")).Code, path)
		want.Verb = "update"
		require.Equal(t, want, written, path)
		require.Equal(t, want.Group == "apiextensions.k8s.io" && want.Resource == "customresourcedefinitions", written.DefinesResources(), path)
	}
}
