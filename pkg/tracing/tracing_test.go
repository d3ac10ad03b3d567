package tracing_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tracing"
	"github.com/faroshq/kedge-hub/test/doubles/otlptest"
)

const (
	org       = "11111111-1111-4111-8111-111111111111"
	workspace = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	cluster   = "2vh6tnanyw60negt"
	// What a client sends: sampled, with text of its own.
	foreignTrace  = "0af7651916cd43dd8448eb211c80319c"
	foreignParent = "00-" + foreignTrace + "-b7ad6b7169203331-01"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeKCP answers every request with its body and keeps the traceparents.
type fakeKCP struct {
	*httptest.Server
	code int

	mu      sync.Mutex
	parents []string
	states  []string
}

func newKCP(t *testing.T, code int) *fakeKCP {
	t.Helper()
	f := &fakeKCP{code: code}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeKCP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.parents = append(f.parents, strings.Join(r.Header.Values("Traceparent"), " "))
	f.states = append(f.states, r.Header.Get("Tracestate"))
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.code)
	_, _ = w.Write(body)
}

func (f *fakeKCP) received() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.parents
}

func (f *fakeKCP) clients(t *testing.T, tracer *tracing.Tracer) *kcp.Clients {
	t.Helper()
	clients, err := kcp.NewClients(&rest.Config{Host: f.URL}, prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(clients.Close)
	return clients.Traced(tracer.Calls)
}

// serve sends a request through the middleware to a handler.
func serve(t *testing.T, tracer *tracing.Tracer, handle http.HandlerFunc, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	metrics, err := httpmw.NewMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	router := chi.NewRouter()
	router.Use(httpmw.Observe(zap.NewNop(), metrics, nil), httpmw.Trace(tracer))
	router.HandleFunc("/api/orgs/{org}/members/{user}", handle)
	w := httptest.NewRecorder()
	router.ServeHTTP(w, r)
	return w
}

func newRequest(t *testing.T, method string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/api/orgs/"+org+"/members/alice-smith?q=bob-brown", strings.NewReader("Carol Clark"))
	r.Header.Set("Authorization", "Bearer s3cret-token")
	r.Header.Set("Traceparent", foreignParent)
	r.Header.Set("Tracestate", "person=dave-doe")
	return r
}

func typed(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
}

func organization(name string) *v1alpha1.Organization {
	return &v1alpha1.Organization{TypeMeta: typed("Organization"), ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func membership(name string) *v1alpha1.Membership {
	display := map[string]string{"display": "Erin Evans"}
	return &v1alpha1.Membership{TypeMeta: typed("Membership"), ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: display}}
}

func TestRequest_isTheParentOfTheRequestThatKcpGets(t *testing.T) {
	t.Parallel()
	collector, upstream := otlptest.New(t), newKCP(t, http.StatusCreated)
	tracer := collector.Tracer(t, 1)
	memberships := upstream.clients(t, tracer).Memberships(cluster)
	answer := serve(t, tracer, func(w http.ResponseWriter, r *http.Request) {
		tracing.Place(r.Context(), org, "", cluster)
		_, err := memberships.Create(r.Context(), membership("alice-smith"), metav1.CreateOptions{})
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	}, newRequest(t, http.MethodPost))
	tracer.Close()

	spans := collector.Spans()
	require.Len(t, spans["POST /api/orgs/{org}/members/{user}"], 1)
	require.Len(t, spans["kcp"], 1)
	require.Len(t, spans, 2)
	served, call := spans["POST /api/orgs/{org}/members/{user}"][0], spans["kcp"][0]
	require.Equal(t, map[string]string{
		"http.route": "/api/orgs/{org}/members/{user}", "http.request.method": "POST", "http.response.status_code": "201",
		"kedge.request": answer.Header().Get("X-Request-Id"), "kedge.organization": org, "kedge.cluster": cluster,
	}, otlptest.Attributes(served))
	require.Equal(t, map[string]string{
		"k8s.verb": "create", "k8s.group": "tenancy.kedge.faros.sh", "k8s.resource": "memberships", "kedge.cluster": cluster,
		"http.request.method": "POST", "http.response.status_code": "201",
	}, otlptest.Attributes(call))
	require.Equal(t, served.GetSpanId(), call.GetParentSpanId())
	require.Equal(t, []string{otlptest.Traceparent(call)}, upstream.received(), "kcp gets the hub's own")
	require.Equal(t, []string{""}, upstream.states)
	require.NotContains(t, otlptest.Traceparent(served), foreignTrace)
	require.Empty(t, served.GetParentSpanId())
	require.Len(t, served.GetLinks(), 1)
	require.Contains(t, otlptest.Traceparent(served), "-01")
	require.Zero(t, served.GetLinks()[0].GetFlags()&1, "the client's decision to sample is left out")
	require.Empty(t, served.GetLinks()[0].GetTraceState())
}

// proxy sends a proxied request through the middleware.
func proxy(t *testing.T, tracer *tracing.Tracer, upstream *fakeKCP, resource string) {
	t.Helper()
	base, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	layer := tracer.Proxied(http.DefaultTransport)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	serve(t, tracer, func(w http.ResponseWriter, r *http.Request) {
		tracing.Place(r.Context(), org, workspace, cluster)
		ctx := request.WithRequestInfo(r.Context(), &request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: resource, Name: "alice-smith"})
		out, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String()+"/clusters/x/api/v1/"+resource+"/alice-smith", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := layer.RoundTrip(out)
		if err != nil {
			t.Error(err)
			return
		}
		_ = response.Body.Close()
		w.WriteHeader(response.StatusCode)
	}, newRequest(t, http.MethodGet))
}

func TestProxied_hasItsResourceOnceKcpHasKnownIt(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{http.StatusOK: "configmaps", http.StatusForbidden: "", http.StatusNotFound: ""} {
		collector, upstream := otlptest.New(t), newKCP(t, code)
		tracer := collector.Tracer(t, 1)
		proxy(t, tracer, upstream, "configmaps")
		tracer.Close()
		spans := collector.Spans()
		require.Len(t, spans["kcp proxied"], 1)
		call := spans["kcp proxied"][0]
		require.Equal(t, []string{otlptest.Traceparent(call)}, upstream.received())
		require.Equal(t, want, otlptest.Attributes(call)["k8s.resource"])
		served := spans["GET /api/orgs/{org}/members/{user}"][0]
		require.Equal(t, workspace, otlptest.Attributes(served)["kedge.workspace"])
		require.Equal(t, served.GetSpanId(), call.GetParentSpanId())
	}
}

func TestClient_cannotHaveTheHubTraceEverything(t *testing.T) {
	t.Parallel()
	collector, upstream := otlptest.New(t), newKCP(t, http.StatusOK)
	tracer := collector.Tracer(t, 0)
	for range 10 {
		proxy(t, tracer, upstream, "configmaps")
	}
	tracer.Close()
	require.Empty(t, collector.Spans())
	require.Len(t, upstream.received(), 10)
	for _, parent := range upstream.received() {
		require.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-00$", parent, "kcp does not trace it, either")
		require.NotContains(t, parent, foreignTrace)
	}
}

func TestSpans_nameNoPersonAndHaveNoToken(t *testing.T) {
	t.Parallel()
	collector, upstream := otlptest.New(t), newKCP(t, http.StatusInternalServerError)
	tracer := collector.Tracer(t, 1)
	clients := upstream.clients(t, tracer)
	serve(t, tracer, func(_ http.ResponseWriter, r *http.Request) {
		// A caller may send a name in the place of an ID.
		tracing.Place(r.Context(), "alice-smith", "alice-smith", "alice-smith")
		_, err := clients.WithToken("s3cret-token").Memberships("root:alice-smith").Update(r.Context(), membership("alice-smith"), metav1.UpdateOptions{})
		if err == nil {
			t.Error("kcp fails")
		}
		_, _ = clients.Memberships(cluster).Get(r.Context(), "alice-smith", metav1.GetOptions{})
		panic("alice-smith")
	}, newRequest(t, http.MethodPost))
	proxy(t, tracer, upstream, "alice-smith")
	for _, controller := range []string{"membership", "user", "session", "organization", "workspace"} {
		_, end := tracer.Reconcile(t.Context(), controller, "root:alice-smith", "alice-smith")
		end("failed", true)
	}
	tracer.Close()
	spans := collector.Spans()
	require.Equal(t, "500", otlptest.Attributes(spans["POST /api/orgs/{org}/members/{user}"][0])["http.response.status_code"])
	require.Len(t, spans["kcp"], 2)
	require.Len(t, spans["kcp proxied"], 1)
	require.Len(t, spans["reconcile session"], 1)
	require.Contains(t, collector.Raw(), "memberships", "the control: the bytes are searchable")
	for _, secret := range []string{"alice", "smith", "bob-brown", "Carol", "dave-doe", "Erin", "s3cret"} {
		require.NotContains(t, collector.Raw(), secret)
	}
}

func TestReconcile_linksTheWriteOfItsObject(t *testing.T) {
	t.Parallel()
	collector, upstream := otlptest.New(t), newKCP(t, http.StatusCreated)
	tracer := collector.Tracer(t, 1)
	clients := upstream.clients(t, tracer)
	write := func(clients *kcp.Clients, name string) {
		serve(t, tracer, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = clients.Organizations(cluster).Create(r.Context(), organization(name), metav1.CreateOptions{})
		}, newRequest(t, http.MethodPost))
	}
	refusing := newKCP(t, http.StatusConflict)
	write(clients, org)
	write(refusing.clients(t, tracer), workspace)
	reconcile := func(controller, cluster, name string) {
		ctx, end := tracer.Reconcile(t.Context(), controller, cluster, name)
		// A pass may write, too.
		_, err := clients.Organizations("other").Create(ctx, organization(""), metav1.CreateOptions{})
		require.NoError(t, err)
		end("done", false)
	}
	reconcile("organization", cluster, org)
	reconcile("organization", cluster, org)
	reconcile("billing", cluster, org)
	reconcile("elsewhere", "other", org)
	reconcile("refused", cluster, workspace)
	tracer.Close()

	spans := collector.Spans()
	created := spans["kcp"][0]
	first, second := spans["reconcile organization"][0], spans["reconcile organization"][1]
	require.Equal(t, map[string]string{
		"kedge.controller": "organization", "kedge.cluster": cluster, "kedge.organization": org, "kedge.result": "done",
	}, otlptest.Attributes(first))
	require.Len(t, first.GetLinks(), 1)
	require.Equal(t, created.GetSpanId(), first.GetLinks()[0].GetSpanId())
	require.Equal(t, created.GetTraceId(), first.GetLinks()[0].GetTraceId())
	require.Empty(t, second.GetLinks(), "a controller links a write once")
	require.Len(t, spans["reconcile billing"][0].GetLinks(), 1, "each controller links it")
	require.Empty(t, spans["reconcile elsewhere"][0].GetLinks(), "an object of another logical cluster")
	require.Empty(t, spans["reconcile refused"][0].GetLinks(), "a write that kcp refused")
	require.Equal(t, first.GetSpanId(), spans["kcp"][2].GetParentSpanId(), "what a pass writes is below it")
}

func TestWithoutTracer_thereIsNoLayerAndNoAllocation(t *testing.T) {
	upstream := newKCP(t, http.StatusOK)
	var off *tracing.Tracer
	defer off.Close()
	require.Same(t, http.DefaultTransport, off.Proxied(http.DefaultTransport))
	require.Same(t, http.DefaultTransport, off.Calls(http.DefaultTransport))
	handler := http.NewServeMux()
	require.Same(t, handler, httpmw.Trace(off)(handler))
	ctx := context.WithValue(t.Context(), upstream, upstream)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		tracing.Place(ctx, org, workspace, cluster)
		_, end := off.Reconcile(ctx, "organization", cluster, org)
		end("done", false)
	}))
	proxy(t, off, upstream, "configmaps")
	require.Equal(t, []string{""}, upstream.received())
}
