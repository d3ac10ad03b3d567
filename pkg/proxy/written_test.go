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

func TestTheHubIsToldOfWritesThatKCPDidOrMayHaveDoneAndOfNothingElse(t *testing.T) {
	t.Parallel()
	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	code := 0
	var told []string
	h := newHub(t, "https://kcp", roundTripper(func(r *http.Request) (*http.Response, error) {
		if code == 0 {
			return nil, errors.New("connection reset")
		}
		return &http.Response{
			StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: r,
		}, nil
	}), func(c *proxy.Config) {
		c.Wrote = func(e tenancy.Entry, method, path string) {
			told = append(told, e.Workspace.ClusterID+" "+e.Workspace.OrgUUID+" "+method+" "+path)
		}
	})
	for _, c := range []struct {
		name, method, target, user string
		code                       int
		want                       string
	}{
		{"a create", "POST", "/clusters/aaaa" + crds, "alice", 201, crds},
		{"an update", "PUT", "/clusters/aaaa" + crds + "/widgets.example.com", "alice", 200, crds + "/widgets.example.com"},
		{"a patch, by the path of the Workspace", "PATCH", "/clusters/" + pathA + crds + "/widgets.example.com", "alice", 200, crds + "/widgets.example.com"},
		{"a delete", "DELETE", "/clusters/aaaa" + crds + "/widgets.example.com", "alice", 200, crds + "/widgets.example.com"},
		{"a delete of all, escaped and with a query", "DELETE", "/clusters/aaaa/apis/apiextensions.k8s.io/v1/customresource%64efinitions?labelSelector=a", "alice", 200, crds},
		{"one that kcp takes for a watch", "DELETE", "/clusters/aaaa" + crds + "?watch=true", "alice", 202, crds},
		{"one that kcp could not finish", "POST", "/clusters/aaaa" + crds, "alice", 504, crds},
		{"one whose answer was lost", "POST", "/clusters/aaaa" + crds, "alice", 0, crds},
		{"one that kcp refused", "POST", "/clusters/aaaa" + crds, "alice", 403, ""},
		{"one that was there already", "POST", "/clusters/aaaa" + crds, "alice", 409, ""},
		{"a read", "GET", "/clusters/aaaa" + crds, "alice", 200, ""},
		{"a read without a body", "HEAD", "/clusters/aaaa" + crds, "alice", 200, ""},
		{"one of a foreigner", "POST", "/clusters/aaaa" + crds, "bob", 201, ""},
	} {
		code, told = c.code, nil
		h.do(request(c.method, c.target, c.user))
		var want []string
		if c.want != "" {
			want = []string{"aaaa " + orgA + " " + c.method + " " + c.want}
		}
		require.Equal(t, want, told, c.name)
	}
}
