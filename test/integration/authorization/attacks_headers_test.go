package authorization

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	selfReview = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	reviewPath = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
)

// overHTTP2 returns a copy of the hub's client that speaks HTTP/2.
func (w *matrixWorld) overHTTP2() *framework.Client {
	transport := framework.TransportOf(w.hub.HTTP).Clone()
	transport.ForceAttemptHTTP2 = true
	second := *w.hub.HTTP
	second.Transport = transport
	return &framework.Client{URL: w.hub.URL, CA: w.hub.CA, HTTP: &second}
}

// whoami reads the user and the groups from kcp's answer to a SelfSubjectReview.
func whoami(a framework.Answer) (username string, groups []any) {
	status, _ := a.JSON["status"].(map[string]any)
	info, _ := status["userInfo"].(map[string]any)
	username, _ = info["username"].(string)
	groups, _ = info["groups"].([]any)
	return username, groups
}

// forgedHeaders sends the headers from which some proxy or API server takes an identity,
// a route or a method. The caller is a plain member of a Workspace.
func (w *matrixWorld) forgedHeaders(t *testing.T) {
	t.Parallel()
	const me = "dave"
	place := w.places[attacked]
	require.Equal(t, me, matrixPeople[asWorkspaceMember])
	clients := map[string]*framework.Client{"HTTP/1.1": w.hub.Client, "HTTP/2": w.overHTTP2()}
	for name, header := range map[string]http.Header{
		"none: the positive control":    {},
		"X-Remote":                      {"X-Remote-User": {"alice"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Uid": {"uid-alice"}, "X-Remote-Extra-Scopes": {"x"}},
		"X_Remote":                      {"X_Remote_User": {"alice"}, "X_Remote_Group": {"system:masters"}, "x-remote_user": {"alice"}},
		"X-Forwarded":                   {"X-Forwarded-User": {"alice"}, "X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Proto": {"http"}, "X-Forwarded-Prefix": {"/evil"}, "X-Forwarded-Client-Cert": {"x"}},
		"Forwarded":                     {"Forwarded": {"for=127.0.0.1;host=evil.example;proto=http"}, "X-Real-Ip": {"127.0.0.1"}, "Via": {"1.1 evil"}},
		"another URL":                   {"X-Original-Url": {"/api/admin/users"}, "X-Rewrite-Url": {"/api/admin/users"}, "X-Original-Uri": {"/api/admin/users"}},
		"another method":                {"X-Http-Method-Override": {"DELETE"}, "X-Http-Method": {"DELETE"}, "X-Method-Override": {"DELETE"}},
		"kcp's own":                     {"X-Kubernetes-Sharded-Request": {"true"}, "X-Kcp-Cluster": {"root"}, "X-Kubernetes-Shard": {"root"}},
		"the hub's own, made up":        {"X-Kedge-User": {"alice"}, "X-Kedge-Role": {"admin"}, "X-Kedge-Platform-Admin": {"true"}, "X-Kedge-Cluster": {"root"}},
		"cookies":                       {"Cookie": {"session=" + framework.Token("alice") + "; kedge=alice"}},
		"another Authorization":         {"Proxy-Authorization": {"Bearer " + framework.Token("alice")}, "X-Authorization": {"Bearer " + framework.Token("alice")}, "Authorization-": {"Bearer " + framework.Token("alice")}},
		"an Origin":                     {"Origin": {"https://evil.example"}, "Referer": {"https://evil.example/"}, "Sec-Fetch-Site": {"cross-site"}},
		"what Connection would strip":   {"Connection": {"Authorization, X-Kedge-Org"}, "Keep-Alive": {"timeout=1000"}},
		"tracing that is not the hub's": {"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Audit-Id": {"forged"}},
	} {
		for version, client := range clients {
			if version == "HTTP/2" && header["Connection"] != nil {
				// HTTP/2 forbids the Connection header, and no client sends it.
				continue
			}
			t.Run(name+"/"+version, func(t *testing.T) {
				t.Parallel()
				do := func(c call, code int) framework.Answer {
					c.Header = header.Clone()
					a := client.Do(t, c, code)
					require.NotContains(t, string(a.Raw), "evil")
					require.NotContains(t, string(a.Raw), "alice")
					for _, answered := range []string{"Location", "Access-Control-Allow-Origin", "Set-Cookie"} {
						require.Empty(t, a.Header.Values(answered), answered)
					}
					require.NotEqual(t, "forged", a.Header.Get("X-Request-Id"))
					return a
				}
				require.Equal(t, me, do(call{As: me, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK).Text("name"))
				username, groups := whoami(do(call{As: me, Method: http.MethodPost, Path: "/clusters/" + place.cluster + reviewPath, Body: selfReview}, http.StatusCreated))
				require.Equal(t, me, username)
				require.NotContains(t, groups, "system:masters")

				work := do(call{As: me, Method: http.MethodGet, Path: "/api/orgs/" + place.org + "/workspaces/" + place.ws, Org: place.org, Workspace: place.ws}, http.StatusOK)
				require.Equal(t, w.hub.URL+"/clusters/"+place.cluster, work.Text("url"))
				do(call{As: me, Method: http.MethodGet, Path: "/api/orgs/" + place.org, Org: place.org}, http.StatusForbidden)
				do(call{As: me, Method: http.MethodGet, Path: "/api/admin/users"}, http.StatusForbidden)
				do(call{As: me, Method: http.MethodGet, Path: "/clusters/" + w.foreign.cluster + "/api/v1/namespaces"}, http.StatusForbidden)
				do(call{As: me, Method: http.MethodGet, Path: "/clusters/root/api/v1/namespaces"}, http.StatusForbidden)
				do(call{Method: http.MethodGet, Path: "/api/users/me"}, http.StatusUnauthorized)
				do(call{Method: http.MethodGet, Path: "/clusters/" + place.cluster + "/api/v1/namespaces"}, http.StatusUnauthorized)
			})
		}
	}
}

// impersonation asks kcp for the user of each request. Bob is a member with sudo, Carol
// an admin without sudo.
func (w *matrixWorld) impersonation(t *testing.T) {
	t.Parallel()
	place, elsewhere := w.places[attacked], w.places["viewing"]
	group := tenancy.SudoGroup(place.ws)
	sudo := http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {group}}
	review := func(as, cluster string, header http.Header) call {
		return call{As: as, Method: http.MethodPost, Path: "/clusters/" + cluster + reviewPath, Body: selfReview, Header: header}
	}
	binding := call{
		As: "bob", Method: http.MethodPost, Path: "/clusters/" + place.cluster + "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?dryRun=All", Body: matrixBinding,
	}
	// kcp authorizes from its own cache, which lags behind the new bindings.
	framework.Eventually(t, framework.Long, func() error {
		c := binding
		c.Header = sudo.Clone()
		_, err := w.try(c, http.StatusCreated)
		return err
	})
	w.hub.Do(t, binding, http.StatusForbidden)
	username, groups := whoami(w.hub.Do(t, review("bob", place.cluster, sudo.Clone()), http.StatusCreated))
	require.Equal(t, "bob", username)
	require.Contains(t, groups, group)
	require.NotContains(t, groups, "system:masters")

	for name, c := range map[string]struct {
		as, cluster string
		header      http.Header
	}{
		"somebody else":                {"bob", place.cluster, http.Header{"Impersonate-User": {"alice"}, "Impersonate-Group": {group}}},
		"the hub's admin":              {"bob", place.cluster, http.Header{"Impersonate-User": {"system:admin"}}},
		"oneself, without the group":   {"bob", place.cluster, http.Header{"Impersonate-User": {"bob"}}},
		"oneself, twice":               {"bob", place.cluster, http.Header{"Impersonate-User": {"bob", "alice"}, "Impersonate-Group": {group}}},
		"the group alone":              {"bob", place.cluster, http.Header{"Impersonate-Group": {group}}},
		"masters":                      {"bob", place.cluster, http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {"system:masters"}}},
		"masters beside the group":     {"bob", place.cluster, http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {group, "system:masters"}}},
		"another Workspace's group":    {"bob", place.cluster, http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {tenancy.SudoGroup(elsewhere.ws)}}},
		"a uid":                        {"bob", place.cluster, http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {group}, "Impersonate-Uid": {"uid-alice"}}},
		"an extra":                     {"bob", place.cluster, http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {group}, "Impersonate-Extra-Authentication.kcp.io%2fscopes": {"cluster:root"}}},
		"a header that is not kcp's":   {"bob", place.cluster, http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {group}, "impersonate_user": {"alice"}}},
		"the group, where it is not":   {"bob", elsewhere.cluster, sudo},
		"its own group, where no sudo": {"bob", elsewhere.cluster, http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {tenancy.SudoGroup(elsewhere.ws)}}},
		"in a foreign Workspace":       {"bob", w.foreign.cluster, http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {tenancy.SudoGroup(w.foreign.ws)}}},
		"an admin without sudo":        {"carol", place.cluster, http.Header{"Impersonate-User": {"carol"}, "Impersonate-Group": {group}}},
		"an Org's admin without sudo":  {"alice", place.cluster, http.Header{"Impersonate-User": {"alice"}, "Impersonate-Group": {group}}},
		"a member, as who has sudo":    {"dave", place.cluster, sudo},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, client := range []*framework.Client{w.hub.Client, w.overHTTP2()} {
				a := client.Do(t, review(c.as, c.cluster, c.header.Clone()), http.StatusForbidden)
				require.Equal(t, "Forbidden", a.Text("reason"))
				var want any
				if c.cluster != w.foreign.cluster {
					want = map[string]any{"causes": []any{map[string]any{"reason": "NeedsSudo", "message": a.Text("message")}}}
				}
				require.Equal(t, want, a.JSON["details"], "the hub refuses, and not kcp after it")
			}
		})
	}
	// The REST API ignores impersonation headers.
	me := w.hub.Do(t, call{As: "bob", Method: http.MethodGet, Path: "/api/users/me", Header: http.Header{"Impersonate-User": {"alice"}, "Impersonate-Group": {"system:masters"}}}, http.StatusOK)
	require.Equal(t, "bob", me.Text("name"))
	require.NotContains(t, string(me.Raw), "alice")
}
