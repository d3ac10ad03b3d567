package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	orgA = "11111111-1111-4111-8111-111111111111"
	orgB = "22222222-2222-4222-8222-222222222222"
	wsA  = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	wsB  = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"

	pathA = "root:kedge:orgs:" + orgA + ":" + wsA
	pathB = "root:kedge:orgs:" + orgB + ":" + wsB

	// The bearer token of each person is their name and this.
	tokenSuffix = "-token"
	requestID   = "request-1"
	deadline    = 10 * time.Second
)

type userKey struct{}

// roundTripper is a transport as a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// recorder is a kcp that keeps what it is asked and says yes.
type recorder struct{ requests []*http.Request }

func (rec *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	rec.requests = append(rec.requests, r)
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader("ok")), ContentLength: 2, Request: r,
	}, nil
}

// rights are what people have, and can change while a hub runs.
type rights struct {
	mu      sync.Mutex
	entries map[string][]v1alpha1.MembershipIndexEntry
	sudo    map[string]bool
	// deleted are those who were soft-deleted.
	deleted map[string]bool
	// unenforced has kcp not enforce the admission policy of any Workspace yet.
	unenforced bool
}

func (r *rights) setEnforced(enforced bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unenforced = !enforced
}

// inWorkspace is a row of an index: a role in the Workspace of Org A.
func inWorkspace(role v1alpha1.Role) v1alpha1.MembershipIndexEntry {
	return v1alpha1.MembershipIndexEntry{OrgUUID: orgA, WorkspaceUUID: wsA, Role: role}
}

// adminOf is a row of an index: admin of an Org.
func adminOf(org string) v1alpha1.MembershipIndexEntry {
	return v1alpha1.MembershipIndexEntry{OrgUUID: org, Role: v1alpha1.RoleAdmin}
}

// set gives a person these rows, and no others; sudo is for the Workspace of Org
// A.
func (r *rights) set(user string, sudo bool, entries ...v1alpha1.MembershipIndexEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries[user], r.sudo[user] = entries, sudo
}

// remove soft-deletes a person, whose rows stay.
func (r *rights) remove(user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted[user] = true
}

// user finds a person.
func (r *rights) user(name string) (*v1alpha1.User, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if r.deleted[name] {
		u.Status.DeletionRequestedAt = &metav1.Time{}
	}
	return u, true
}

// hub is a proxy as the server mounts it, with Alice as admin of Org A and Bob of
// Org B; each Org has one Workspace, in the cluster aaaa and bbbb.
type hub struct {
	http.Handler
	proxy    *proxy.Proxy
	rights   *rights
	registry *prometheus.Registry
	logs     *observer.ObservedLogs
	drain    context.CancelFunc
	// elevated are the users of the requests that the hub said were elevated.
	elevated chan string
	// unaudited is the error of the audit log.
	unaudited error
}

func treeOf(tb testing.TB) tenancy.Tree {
	tb.Helper()
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(tb, err)
	return tree
}

func gate(tb testing.TB, r *rights) tenancy.Gate {
	tree := treeOf(tb)
	clusters := map[string]tenancy.Cluster{
		"aaaa":  {Kind: tenancy.ClusterWorkspace, OrgUUID: orgA, WorkspaceUUID: wsA},
		"bbbb":  {Kind: tenancy.ClusterWorkspace, OrgUUID: orgB, WorkspaceUUID: wsB},
		"orga":  {Kind: tenancy.ClusterOrg, OrgUUID: orgA},
		"orgb":  {Kind: tenancy.ClusterOrg, OrgUUID: orgB},
		"users": {Kind: tenancy.ClusterHub},
	}
	workspaces := map[string]tenancy.Workspace{
		orgA + wsA: {UUID: wsA, OrgUUID: orgA, ClusterID: "aaaa"},
		orgB + wsB: {UUID: wsB, OrgUUID: orgB, ClusterID: "bbbb"},
	}
	return tenancy.Gate{
		Tree:    tree,
		Cluster: func(id string) tenancy.Cluster { return clusters[id] },
		Index: func(user string) []v1alpha1.MembershipIndexEntry {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.entries[user]
		},
		Org: func(uuid string) (tenancy.Org, bool) {
			return tenancy.Org{Organization: &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: uuid}}}, uuid == orgA || uuid == orgB
		},
		Workspace: func(org, ws string) (tenancy.Workspace, bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			w, ok := workspaces[org+ws]
			if !r.unenforced {
				w.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPolicyEnforced, Status: metav1.ConditionTrue}}
			}
			return w, ok
		},
		User: r.user,
		Sudo: func(user, org, _ string) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.sudo[user] && org == orgA
		},
	}
}

// bearer is httpmw.BearerToken in short.
func bearer(r *http.Request) (string, error) {
	values := r.Header["Authorization"]
	if len(values) != 1 || !strings.HasPrefix(values[0], "Bearer ") {
		return "", errs.New(errs.Unauthenticated, "send exactly one bearer token")
	}
	return strings.TrimPrefix(values[0], "Bearer "), nil
}

// authenticate is httpmw.Authenticate in short.
func authenticate(next http.Handler) http.Handler {
	return httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
		token, err := bearer(r)
		if err != nil {
			return err
		}
		user, ok := strings.CutSuffix(token, tokenSuffix)
		if !ok {
			return errs.New(errs.Unauthenticated, "the token is not known here")
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
		return nil
	})
}

// caller is httpmw.Caller in short.
type caller struct {
	name, username string
	endsAt         func() time.Time
	valid          func() error
}

func (c caller) Key() string      { return c.name }
func (c caller) Username() string { return c.username }
func (c caller) Valid() error     { return c.valid() }

func (c caller) EndsAt() time.Time {
	if c.endsAt == nil {
		return time.Time{}
	}
	return c.endsAt()
}

// callerOf has a credential that is good for ever.
func callerOf(r *http.Request) proxy.Caller {
	user := r.Context().Value(userKey{}).(string)
	return caller{name: user, username: "kedge:" + user, valid: func() error { return nil }}
}

func newHub(tb testing.TB, upstream string, transport http.RoundTripper, options ...func(*proxy.Config)) *hub {
	tb.Helper()
	u, err := url.Parse(upstream)
	require.NoError(tb, err)
	core, logs := observer.New(zap.InfoLevel)
	logger := zap.New(core)
	draining, drain := context.WithCancel(log.Into(context.Background(), logger))
	tb.Cleanup(drain)
	h := &hub{
		rights: &rights{
			entries: map[string][]v1alpha1.MembershipIndexEntry{"alice": {adminOf(orgA)}, "bob": {adminOf(orgB)}},
			sudo:    map[string]bool{}, deleted: map[string]bool{},
		},
		registry: prometheus.NewRegistry(), logs: logs, drain: drain, elevated: make(chan string, 100),
	}
	policy, err := tenancy.NewPolicy("kcp-admin")
	require.NoError(tb, err)
	config := proxy.Config{
		Guards:   policy.Guards,
		Upstream: u, Transport: transport, Enter: gate(tb, h.rights).Enter,
		Caller: callerOf,
		Intend: func(r *http.Request, _ tenancy.Entry, sudo bool) error {
			if sudo {
				h.elevated <- callerOf(r).Key()
			}
			return h.unaudited
		},
		Token: bearer, Draining: draining, Metrics: h.registry,
	}
	for _, option := range options {
		option(&config)
	}
	h.proxy, err = proxy.New(config)
	require.NoError(tb, err)
	chain := proxy.Shape(treeOf(tb))(authenticate(h.proxy))
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", requestID)
		chain.ServeHTTP(w, r.WithContext(log.Into(r.Context(), logger)))
	})
	return h
}

// streams is the value of kedge_proxy_streams.
func (h *hub) streams(tb testing.TB) float64 {
	tb.Helper()
	value, _ := h.metric(tb, "kedge_proxy_streams")
	return value
}

// cuts is how many streams kedge_proxy_revocation_seconds has seen.
func (h *hub) cuts(tb testing.TB) int {
	tb.Helper()
	_, count := h.metric(tb, "kedge_proxy_revocation_seconds")
	return int(count)
}

// metric is the value of a gauge and the count of a histogram.
func (h *hub) metric(tb testing.TB, name string) (float64, uint64) {
	tb.Helper()
	families, err := h.registry.Gather()
	require.NoError(tb, err)
	for _, family := range families {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			return m.GetGauge().GetValue(), m.GetHistogram().GetSampleCount()
		}
	}
	tb.Fatal(name + " is not there")
	return 0, 0
}

// closed waits until no stream is open.
func (h *hub) closed(tb testing.TB) {
	tb.Helper()
	require.Eventually(tb, func() bool { return h.streams(tb) == 0 }, deadline, time.Millisecond)
}

// request is one as it comes off the wire; header are pairs.
func request(method, target, user string, header ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	if user != "" {
		r.Header.Set("Authorization", "Bearer "+user+tokenSuffix)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header[http.CanonicalHeaderKey(header[i])] = append(r.Header[http.CanonicalHeaderKey(header[i])], header[i+1])
	}
	return r
}

func (h *hub) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// statusOf reads the metav1.Status that every answer of the hub is.
func statusOf(tb testing.TB, body []byte) metav1.Status {
	tb.Helper()
	var s metav1.Status
	require.NoError(tb, json.Unmarshal(body, &s), "%s", body)
	require.Equal(tb, "Status", s.Kind)
	require.NotEmpty(tb, s.Message)
	return s
}

// kcp is a TLS server and the transport that trusts it.
func kcp(tb testing.TB, handler http.HandlerFunc) (*httptest.Server, *http.Transport) {
	tb.Helper()
	server := httptest.NewTLSServer(handler)
	tb.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server, transportFor(tb, roots)
}

func transportFor(tb testing.TB, roots *x509.CertPool) *http.Transport {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableCompression: true, MaxIdleConnsPerHost: 64,
	}
	tb.Cleanup(transport.CloseIdleConnections)
	return transport
}

// upgrade asks a hub for another protocol, SPDY, through conn.
func upgrade(tb testing.TB, conn net.Conn, user string) (*bufio.Reader, *http.Response) {
	tb.Helper()
	tb.Cleanup(func() { _ = conn.Close() })
	require.NoError(tb, conn.SetDeadline(time.Now().Add(deadline)))
	_, err := fmt.Fprintf(conn, "POST /clusters/aaaa/api/v1/namespaces/a/pods/b/exec HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer %s%s\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n", user, tokenSuffix)
	require.NoError(tb, err)
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	require.NoError(tb, err)
	return reader, response
}

// accept is kcp's side of upgrade.
func accept(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nSet-Cookie: a=b\r\n\r\n")
	return conn, buffered, err
}

// serve puts a hub behind a TLS listener of its own and returns a client of it.
func serve(tb testing.TB, h http.Handler) (string, *http.Client) {
	tb.Helper()
	server := httptest.NewTLSServer(h)
	tb.Cleanup(server.Close)
	return server.URL, server.Client()
}
