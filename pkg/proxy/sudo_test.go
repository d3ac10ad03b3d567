package proxy_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	user  = "Impersonate-User"
	group = "Impersonate-Group"

	alice = "kedge:alice"
	// The sudo group of the Workspace of Org A.
	sudoers = "kedge:workspace:" + wsA + ":sudo"
	// A group that kcp gives to people by itself.
	everybody = "system:authenticated"
)

// sudoCases are tried by Alice, a member with sudo in the cluster aaaa.
var sudoCases = []struct {
	name string
	// header are pairs; names are as they stand in the request.
	header []string
	// groups are what goes on to kcp; nil for a refusal.
	groups []string
	// http1 is set where HTTP/2 clients cannot send it.
	http1 bool
}{
	{name: "rightful: the positive control", header: []string{user, alice, group, sudoers}, groups: []string{sudoers}},
	{name: "rightful, as kcp completes it", header: []string{user, alice, group, sudoers, group, everybody}, groups: []string{sudoers, everybody}},
	{name: "rightful, the other way round", header: []string{group, everybody, group, sudoers, user, alice}, groups: []string{sudoers, everybody}},
	{name: "another user", header: []string{user, "kedge:bob", group, sudoers}},
	{name: "the name of the User rather than of the identity", header: []string{user, "alice", group, sudoers}},
	{name: "oneself in upper case", header: []string{user, "KEDGE:ALICE", group, sudoers}},
	{name: "oneself with more behind it", header: []string{user, alice + ",kedge:bob", group, sudoers}},
	{name: "a bot", header: []string{user, "system:serviceaccount:default:bot", group, sudoers}},
	{name: "the admin of kcp", header: []string{user, "kcp-admin", group, sudoers}},
	{name: "the empty user", header: []string{user, "", group, sudoers}},
	{name: "no user", header: []string{group, sudoers}},
	{name: "oneself twice", header: []string{user, alice, user, alice, group, sudoers}},
	{name: "another user behind oneself", header: []string{user, alice, user, "kedge:bob", group, sudoers}},
	{name: "another user before oneself", header: []string{user, "kedge:bob", user, alice, group, sudoers}},
	{name: "no group", header: []string{user, alice}},
	{name: "the empty group", header: []string{user, alice, group, ""}},
	{name: "the empty group beside the sudo group", header: []string{user, alice, group, sudoers, group, ""}},
	{name: "everybody alone", header: []string{user, alice, group, everybody}},
	{name: "the sudo group twice", header: []string{user, alice, group, sudoers, group, sudoers}},
	{name: "everybody twice", header: []string{user, alice, group, sudoers, group, everybody, group, everybody}},
	{name: "the sudo group of another workspace", header: []string{user, alice, group, "kedge:workspace:" + wsB + ":sudo"}},
	{name: "the sudo group of another workspace, too", header: []string{user, alice, group, sudoers, group, "kedge:workspace:" + wsB + ":sudo"}},
	{name: "the sudo group in upper case", header: []string{user, alice, group, strings.ToUpper(sudoers)}},
	{name: "two groups in one line", header: []string{user, alice, group, sudoers + "," + everybody}},
	{name: "system:masters", header: []string{user, alice, group, "system:masters"}},
	{name: "system:masters beside the sudo group", header: []string{user, alice, group, sudoers, group, "system:masters"}},
	{name: "system:kcp:admin beside the sudo group", header: []string{user, alice, group, sudoers, group, "system:kcp:admin"}},
	{name: "system:unauthenticated", header: []string{user, alice, group, sudoers, group, "system:unauthenticated"}},
	{name: "a uid", header: []string{user, alice, group, sudoers, "Impersonate-Uid", "1"}},
	{name: "an empty uid", header: []string{user, alice, group, sudoers, "Impersonate-Uid", ""}},
	{name: "extra", header: []string{user, alice, group, sudoers, "Impersonate-Extra-Scopes", "x"}},
	{name: "an extra that kcp reads", header: []string{user, alice, group, sudoers, "Impersonate-Extra-Authentication.kcp.io%2fscopes", "cluster:root"}},
	{name: "an extra without a name", header: []string{user, alice, group, sudoers, "Impersonate-Extra-", "x"}},
	{name: "what may come to mean something", header: []string{user, alice, group, sudoers, "Impersonate-Userextra", "x"}},
	{name: "the bare word", header: []string{user, alice, group, sudoers, "Impersonate", "x"}},
	{name: "another user in lower case", header: []string{user, alice, "impersonate-user", "kedge:bob", group, sudoers}},
	{name: "another group in upper case", header: []string{user, alice, group, sudoers, "IMPERSONATE-GROUP", "system:masters"}},
	{name: "underscores", header: []string{user, alice, group, sudoers, "Impersonate_User", "kedge:bob"}},
	{name: "nothing but underscores", header: []string{"Impersonate_User", alice, "Impersonate_Group", sudoers}},
	{name: "the user named in Connection", header: []string{"Connection", user, user, alice, group, sudoers}, http1: true},
	{name: "the group named in Connection", header: []string{"Connection", "close, impersonate-group", user, alice, group, sudoers}, http1: true},
	{name: "named in Connection and not there", header: []string{"Connection", "Impersonate-Uid"}, http1: true},
}

// raw is a request with its headers as given, however they are spelt.
func raw(r *http.Request, header []string) *http.Request {
	r.Header["Authorization"] = []string{"Bearer alice" + tokenSuffix}
	for i := 0; i < len(header); i += 2 {
		r.Header[header[i]] = append(r.Header[header[i]], header[i+1])
	}
	return r
}

// impersonated are the headers of impersonation in a request, in any spelling.
func impersonated(h http.Header) http.Header {
	found := http.Header{}
	for name, values := range h {
		if strings.HasPrefix(strings.ToLower(name), "impersonate") {
			found[name] = values
		}
	}
	return found
}

func TestSudo_isOneselfWithTheSudoGroupOnly(t *testing.T) {
	t.Parallel()
	for _, tc := range sudoCases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, target := range []string{"/clusters/aaaa/api", "/clusters/" + pathA + "/api/v1/secrets?watch=1"} {
				rec := &recorder{}
				h := newHub(t, kcpURL, rec)
				h.rights.set("alice", true, inWorkspace(v1alpha1.RoleMember))
				w := h.do(raw(httptest.NewRequest(http.MethodGet, target, nil), tc.header))
				if tc.groups == nil {
					require.Equal(t, http.StatusForbidden, w.Code)
					require.Contains(t, statusOf(t, w.Body.Bytes()).Message, "kubectl --as "+alice+" --as-group "+sudoers)
					require.Empty(t, rec.requests)
					require.Empty(t, h.elevated)
					continue
				}
				require.Equal(t, http.StatusOK, w.Code, w.Body)
				require.Equal(t, http.Header{
					"Authorization": {"Bearer alice" + tokenSuffix}, "Audit-Id": {requestID}, "User-Agent": {""}, user: {alice}, group: tc.groups,
				}, rec.requests[0].Header)
				require.Len(t, h.elevated, 1)
				require.Equal(t, "alice", <-h.elevated)
			}
		})
	}
}

// TestSudo_overTheWire tries the same through a server, whose reading of headers
// comes before the hub's, in both versions of HTTP.
func TestSudo_overTheWire(t *testing.T) {
	t.Parallel()
	reached := make(chan http.Header, 1)
	server, transport := kcp(t, func(_ http.ResponseWriter, r *http.Request) { reached <- r.Header })
	h := newHub(t, server.URL, transport)
	h.rights.set("alice", true, inWorkspace(v1alpha1.RoleMember))
	for version := 1; version <= 2; version++ {
		url, client := serveHTTP(t, h, version)
		for _, tc := range sudoCases {
			if tc.http1 && version == 2 {
				continue
			}
			r, err := http.NewRequest(http.MethodGet, url+"/clusters/aaaa/api", nil)
			require.NoError(t, err)
			response, err := client.Do(raw(r, tc.header))
			require.NoError(t, err, tc.name)
			require.Equal(t, version, response.ProtoMajor)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			if tc.groups == nil {
				require.Equal(t, http.StatusForbidden, response.StatusCode, tc.name)
				statusOf(t, body)
				require.Empty(t, reached, tc.name)
				require.Empty(t, h.elevated, tc.name)
				continue
			}
			require.Equal(t, http.StatusOK, response.StatusCode, tc.name)
			require.Equal(t, http.Header{user: {alice}, group: tc.groups}, impersonated(<-reached), tc.name)
			require.Equal(t, "alice", <-h.elevated, tc.name)
		}
	}
}

// serveHTTP is serve in a version of HTTP.
func serveHTTP(tb testing.TB, h http.Handler, version int) (string, *http.Client) {
	tb.Helper()
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = version == 2
	if version == 1 {
		server.TLS = &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	}
	server.StartTLS()
	tb.Cleanup(server.Close)
	return server.URL, server.Client()
}

func TestSudo_isForThoseWhoWereGivenIt(t *testing.T) {
	t.Parallel()
	rightful := []string{user, alice, group, sudoers}
	for _, tc := range []struct {
		name    string
		cluster string
		sudo    bool
		entries []v1alpha1.MembershipIndexEntry
		without func(*proxy.Config)
		code    int
	}{
		{name: "given: the positive control", cluster: "aaaa", sudo: true, entries: []v1alpha1.MembershipIndexEntry{inWorkspace(v1alpha1.RoleMember)}, code: 200},
		{name: "a member", cluster: "aaaa", entries: []v1alpha1.MembershipIndexEntry{inWorkspace(v1alpha1.RoleMember)}, code: 403},
		{name: "an admin", cluster: "aaaa", entries: []v1alpha1.MembershipIndexEntry{inWorkspace(v1alpha1.RoleAdmin)}, code: 403},
		{name: "the Org's admin", cluster: "aaaa", entries: []v1alpha1.MembershipIndexEntry{adminOf(orgA)}, code: 403},
		{name: "in another workspace", cluster: "bbbb", sudo: true, entries: []v1alpha1.MembershipIndexEntry{inWorkspace(v1alpha1.RoleMember), adminOf(orgB)}, code: 403},
		{name: "in a foreign workspace", cluster: "bbbb", sudo: true, entries: []v1alpha1.MembershipIndexEntry{inWorkspace(v1alpha1.RoleMember)}, code: 403},
		{name: "after the membership", cluster: "aaaa", sudo: true, code: 403},
		{name: "nobody to tell of it", cluster: "aaaa", sudo: true, entries: []v1alpha1.MembershipIndexEntry{inWorkspace(v1alpha1.RoleMember)},
			without: func(c *proxy.Config) { c.Intend = nil }, code: 403},
		{name: "an identity that is empty", cluster: "aaaa", sudo: true, entries: []v1alpha1.MembershipIndexEntry{inWorkspace(v1alpha1.RoleMember)},
			without: func(c *proxy.Config) {
				c.Caller = func(*http.Request) proxy.Caller { return caller{name: "alice", valid: func() error { return nil }} }
			}, code: 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.without == nil {
				tc.without = func(*proxy.Config) {}
			}
			rec := &recorder{}
			h := newHub(t, kcpURL, rec, tc.without)
			h.rights.set("alice", tc.sudo, tc.entries...)
			w := h.do(request(http.MethodGet, "/clusters/"+tc.cluster+"/api", "alice", rightful...))
			require.Equal(t, tc.code, w.Code, w.Body)
			if tc.code == http.StatusOK {
				require.Equal(t, http.Header{user: {alice}, group: {sudoers}}, impersonated(rec.requests[0].Header))
				require.Len(t, h.elevated, 1)
				return
			}
			require.NotContains(t, statusOf(t, w.Body.Bytes()).Message, "kedge:workspace:", "the group is not for those without sudo")
			require.Empty(t, rec.requests)
			require.Empty(t, h.elevated)
		})
	}
}

func TestSudo_elevatesNothingThatDoesNotAsk(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	h := newHub(t, kcpURL, rec)
	h.rights.set("alice", true, inWorkspace(v1alpha1.RoleMember))
	for _, header := range [][]string{nil, {"X-Impersonate-User", "kedge:bob"}, {"X-Remote-Group", sudoers}} {
		w := h.do(request(http.MethodGet, "/clusters/aaaa/api", "alice", header...))
		require.Equal(t, http.StatusOK, w.Code)
		require.Empty(t, impersonated(rec.requests[len(rec.requests)-1].Header))
	}
	require.Empty(t, h.elevated)
	require.Equal(t, sudoers, tenancy.SudoGroup(wsA))
}
