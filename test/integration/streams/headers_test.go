package streams

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// exchange is a request to kcp with the headers by which clients change the answer.
type exchange struct {
	method, path, body string
	header             http.Header
	code               int
}

// exchanges are what kubectl and client-go send: discovery in each form, caching, compression,
// lists, watches, an upgrade, warnings and refusals.
func exchanges() map[string]exchange {
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	const openAPI = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	json := http.Header{"Content-Type": {"application/json"}}
	const unknownField = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"warned"},"unknown":1}`
	get, post := http.MethodGet, http.MethodPost
	return map[string]exchange{
		"version":                {get, "/version", "", nil, http.StatusOK},
		"health":                 {get, "/readyz", "", nil, http.StatusOK},
		"discovery":              {get, "/apis", "", nil, http.StatusOK},
		"aggregated discovery":   {get, "/apis", "", http.Header{"Accept": {aggregated}}, http.StatusOK},
		"discovery of a group":   {get, "/apis/rbac.authorization.k8s.io/v1", "", nil, http.StatusOK},
		"OpenAPI v2":             {get, "/openapi/v2", "", http.Header{"Accept": {openAPI}}, http.StatusOK},
		"OpenAPI v3":             {get, "/openapi/v3", "", nil, http.StatusOK},
		"compressed OpenAPI":     {get, "/openapi/v2", "", http.Header{"Accept-Encoding": {"gzip"}}, http.StatusOK},
		"OpenAPI of a version":   {get, "/openapi/v3/api/v1", "", nil, http.StatusOK},
		"OpenAPI of an old hash": {get, "/openapi/v3/api/v1?hash=OLD", "", nil, 0},
		"list":                   {get, "/api/v1/namespaces", "", nil, http.StatusOK},
		"protobuf":               {get, "/api/v1/namespaces", "", http.Header{"Accept": {"application/vnd.kubernetes.protobuf"}}, http.StatusOK},
		"watch":                  {get, "/api/v1/namespaces?watch=true&timeoutSeconds=1", "", nil, http.StatusOK},
		"upgraded watch": {get, "/api/v1/namespaces?watch=true", "", http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"a2VkZ2UgaW50ZWdyYXRpbw=="}, "Origin": {"https://console.test"},
		}, http.StatusSwitchingProtocols},
		"warning":                         {post, "/api/v1/namespaces/default/configmaps?dryRun=All&fieldValidation=Warn", unknownField, json, http.StatusCreated},
		"invalid":                         {post, "/api/v1/namespaces/default/configmaps", `{"metadata":{}}`, json, http.StatusUnprocessableEntity},
		"no JSON":                         {post, "/api/v1/namespaces/default/configmaps", "{", json, http.StatusBadRequest},
		"a media type that is not served": {get, "/api/v1/namespaces", "", http.Header{"Accept": {"image/png"}}, http.StatusNotAcceptable},
		"missing object":                  {get, "/api/v1/namespaces/missing", "", nil, http.StatusNotFound},
		"missing resource":                {get, "/apis/none.example/v1/things", "", nil, http.StatusForbidden},
		"forbidden":                       {http.MethodDelete, "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster", "", nil, http.StatusForbidden},
		"expired":                         {get, "/api/v1/namespaces?watch=true&resourceVersion=1&timeoutSeconds=1", "", nil, 0},
	}
}

// send sends a request over HTTP/1.1 and returns the answer without its body, and the ETag.
func (x exchange) send(t *testing.T, client *http.Client, base, token string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), x.method, base+x.path, strings.NewReader(x.body))
	require.NoError(t, err)
	// Go would ask for gzip, and remove the headers of what it decompresses.
	request.Header.Set("Accept-Encoding", "identity")
	for name, values := range x.header {
		request.Header[name] = values
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	require.NoError(t, err)
	if response.StatusCode != http.StatusSwitchingProtocols {
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
	}
	require.NoError(t, response.Body.Close())
	return response
}

// The hub passes on every header that a real kcp sends, and adds its own.
func TestAnswers_haveTheHeadersOfKCP(t *testing.T) {
	t.Parallel()
	hub := kcp.Shared(t, 1)[0]
	org := hub.CreateOrg(t, "alice", "ACME")
	cluster := hub.CreateWorkspace(t, "alice", org, "platform").Text("clusterID")
	hub.Enters(t, "alice", cluster)
	anonymous, err := kcp.Clients(t).Anonymous()
	require.NoError(t, err)
	straight, base := anonymous.HTTP()
	through := watchClient(t, hub, false)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	straight.CheckRedirect, through.CheckRedirect = stay, stay
	path := "/clusters/" + cluster
	// The values of these differ from one answer to the next.
	changing := []string{"Date", "Audit-Id", "Etag", "Last-Modified"}
	seen := map[string]bool{}
	compare := func(t *testing.T, x exchange) *http.Response {
		direct, got := x.send(t, straight, base+path, framework.Token("alice")), x.send(t, through, hub.URL+path, framework.Token("alice"))
		if x.code != 0 {
			require.Equal(t, x.code, direct.StatusCode)
		}
		require.Equal(t, direct.StatusCode, got.StatusCode)
		for name, values := range direct.Header {
			if seen[name] = true; name == "Content-Length" {
				// A server of HTTP/2 tells it for more answers than one of HTTP/1.1.
				continue
			}
			require.NotEmpty(t, got.Header.Values(name), "%s: %s", name, values)
			if name == "Location" {
				// kcp leaves the cluster out of a redirection to another hash.
				require.Equal(t, path+direct.Header.Get(name), got.Header.Get(name))
				continue
			}
			if !slices.Contains(changing, name) {
				require.Equal(t, values, got.Header.Values(name), name)
			}
		}
		for name := range got.Header {
			hubs := slices.Contains([]string{"X-Request-Id", "Content-Security-Policy", "X-Content-Type-Options", "Content-Length"}, name)
			require.True(t, hubs || direct.Header.Values(name) != nil, name)
		}
		require.Equal(t, []string{"nosniff"}, got.Header.Values("X-Content-Type-Options"))
		return got
	}
	for name, x := range exchanges() {
		t.Run(name, func(t *testing.T) {
			got := compare(t, x)
			if tag := got.Header.Get("Etag"); tag != "" && got.StatusCode == http.StatusOK {
				x.header = x.header.Clone()
				if x.header == nil {
					x.header = http.Header{}
				}
				x.header.Set("If-None-Match", tag)
				x.code = http.StatusNotModified
				compare(t, x)
			}
		})
	}
	t.Log(slices.Sorted(maps.Keys(seen)))
	for _, name := range []string{
		"Audit-Id", "Cache-Control", "Content-Type", "Etag", "Vary", "Warning", "X-Kubernetes-Pf-Flowschema-Uid", "Sec-Websocket-Accept",
	} {
		require.True(t, seen[name], "the control: kcp sends %s", name)
	}
}
