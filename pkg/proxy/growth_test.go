package proxy_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/storage"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/contract"
)

// weights is a kcp with one object, whose size is that of the body of the last update.
type weights struct {
	mu   sync.Mutex
	size int
	// refuses is the status of its answer to a dry run, if it is not 0.
	refuses int
	written []string
	seen    []*http.Request
	// answers is the status of its answer to a write, if it is not 0. A negative one is none.
	answers int
	// grown is what the meter was asked, full its answer, and settled what it learned of requests.
	grown   []proxy.Growth
	full    error
	settled []proxy.Outcome
}

func (k *weights) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = append(k.seen, r)
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
	}
	answer := &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r}
	answer.Header = http.Header{"Content-Type": {"application/json"}}
	body := strings.Repeat("x", k.size)
	switch {
	case r.Method == http.MethodGet && k.size == 0:
		answer.StatusCode = http.StatusNotFound
	case r.Method == http.MethodGet:
	case r.URL.Query().Has("dryRun") && k.refuses != 0:
		answer.StatusCode, body = k.refuses, `{"kind":"Status"}`
	case r.URL.Query().Has("dryRun"):
		body = string(sent)
	case k.answers < 0:
		return nil, io.ErrUnexpectedEOF
	case k.answers != 0:
		answer.StatusCode, body = k.answers, "{}"
	default:
		k.written = append(k.written, r.Method+" "+string(sent))
		body = string(sent)
	}
	answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return answer, nil
}

// weighing returns a hub whose store is used by so many per cent.
func weighing(t *testing.T, k *weights, percent int64) *hub {
	t.Helper()
	m, err := storage.NewMonitor(prometheus.NewRegistry())
	require.NoError(t, err)
	m.Measured(t.Context(), storage.EtcdStore, storage.Usage{Used: percent, Limit: 100})
	return newHub(t, "https://kcp", k, func(c *proxy.Config) {
		c.Storage, c.Stores = m, httpmw.MayWrite
		c.Grow = func(_ context.Context, e tenancy.Entry, g proxy.Growth) (func(proxy.Outcome), error) {
			require.Equal(t, wsA, e.Workspace.UUID)
			k.grown = append(k.grown, g)
			return func(o proxy.Outcome) { k.settled = append(k.settled, o) }, k.full
		}
	})
}

func TestGrowth_isRefusedAboveTheFloors(t *testing.T) {
	t.Parallel()
	const one, all = "/clusters/aaaa/api/v1/namespaces/n/configmaps/c", "/clusters/aaaa/api/v1/namespaces/n/configmaps"
	const review = "/clusters/aaaa/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	const before = 2000
	refused := map[string]bool{}
	for name, c := range map[string]struct {
		method, path string
		body         int
		size         int
		// codes are those at 50%, above the first floor and above the second.
		codes [3]int
	}{
		"a creation":                 {http.MethodPost, all, 10, 0, [3]int{200, 507, 507}},
		"a review":                   {http.MethodPost, review, 10, 0, [3]int{200, 200, 200}},
		"a creation that is a trial": {http.MethodPost, all + "?dryRun=All", 10, 0, [3]int{200, 200, 200}},
		"a token":                    {http.MethodPost, "/clusters/aaaa/api/v1/namespaces/n/serviceaccounts/s/token", 10, 0, [3]int{200, 200, 507}},
		"a read":                     {http.MethodGet, one, 0, before, [3]int{200, 200, 200}},
		"a deletion":                 {http.MethodDelete, one, 0, before, [3]int{200, 200, 200}},
		"a deletion of all":          {http.MethodDelete, all, 0, before, [3]int{200, 200, 200}},
		"an update that creates":     {http.MethodPut, one, 10, 0, [3]int{200, 507, 507}},
		"a larger update":            {http.MethodPut, one, 3000, before, [3]int{200, 507, 507}},
		"an update of the same size": {http.MethodPatch, one, 2040, before, [3]int{200, 200, 507}},
		"a smaller update":           {http.MethodPatch, one, 1999, before, [3]int{200, 200, 200}},
	} {
		for i, percent := range []int64{50, 85, 96} {
			k := &weights{size: c.size}
			r := request(c.method, c.path, "alice")
			if c.body > 0 {
				body := strings.Repeat("y", c.body)
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			}
			w := weighing(t, k, percent).do(r)
			require.Equal(t, c.codes[i], w.Code, "%s at %d%%: %s", name, percent, w.Body)
			switch {
			case w.Code == http.StatusInsufficientStorage:
				refused[c.method] = true
				require.Empty(t, k.written, name)
				require.Empty(t, w.Header().Get("Retry-After"), "a repetition does not help")
				status := statusOf(t, w.Body.Bytes())
				require.Contains(t, status.Message, "of the hub's etcd is used")
				require.Contains(t, status.Message, "delete what you do not need")
			case c.method == http.MethodPut || c.method == http.MethodPatch:
				require.Equal(t, []string{c.method + " " + strings.Repeat("y", c.body)}, k.written, "%s: once, and whole", name)
			}
		}
	}
	requireDocumented(t, http.StatusInsufficientStorage, refused)
}

// requireDocumented checks that the OpenAPI document has a status of the hub for these methods, and for no others.
func requireDocumented(t *testing.T, status int, methods map[string]bool) {
	t.Helper()
	document, err := contract.Load()
	require.NoError(t, err)
	for _, o := range document.Operations() {
		if o.Pattern == "/clusters/*" {
			require.Equal(t, methods[o.Method], document.Answers(o, status), "%s with %d", o.Method, status)
		}
	}
}

// Nothing of a caller's request changes who asks kcp how large an object is.
func TestGrowth_isWeighedWithTheCredentialOfTheCaller(t *testing.T) {
	t.Parallel()
	k := &weights{size: 2000}
	r := request(http.MethodPatch, "/clusters/aaaa/api/v1/namespaces/n/configmaps/c?fieldManager=m", "alice",
		"X-Remote-User", "kcp-admin", "Content-Type", "application/merge-patch+json", "Accept-Encoding", "gzip")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("small")), -1
	w := weighing(t, k, 85).do(r)
	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	require.Len(t, k.seen, 3)
	for _, asked := range k.seen {
		require.Equal(t, []string{"Bearer alice" + tokenSuffix}, asked.Header["Authorization"])
		require.Empty(t, asked.Header["X-Remote-User"])
		require.Equal(t, "/clusters/aaaa/api/v1/namespaces/n/configmaps/c", asked.URL.Path)
	}
	require.Equal(t, []string{"GET ", "PATCH fieldManager=m&dryRun=All", "PATCH fieldManager=m"}, []string{
		k.seen[0].Method + " " + k.seen[0].URL.RawQuery, k.seen[1].Method + " " + k.seen[1].URL.RawQuery, k.seen[2].Method + " " + k.seen[2].URL.RawQuery,
	})
}

// A stale update that kcp refuses in the trial, and that another write makes valid meanwhile, is not sent.
func TestGrowth_refusedTrialIsTheAnswer(t *testing.T) {
	t.Parallel()
	k := &weights{size: 2000, refuses: http.StatusConflict}
	r := request(http.MethodPut, "/clusters/aaaa/api/v1/namespaces/n/configmaps/c", "alice")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("small")), 5
	w := weighing(t, k, 85).do(r)
	require.Equal(t, http.StatusConflict, w.Code)
	require.JSONEq(t, `{"kind":"Status"}`, w.Body.String())
	require.Empty(t, k.written)
}

func TestGrowth_bodyThatIsTooLargeIsNotWeighed(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPut, http.MethodPatch} {
		k := &weights{size: 2000}
		r := request(method, "/clusters/aaaa/api/v1/namespaces/n/configmaps/c", "alice")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("y", 4<<20))), 4<<20
		w := weighing(t, k, 85).do(r)
		require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
		require.Empty(t, k.seen)
	}
	requireDocumented(t, http.StatusRequestEntityTooLarge, map[string]bool{http.MethodPut: true, http.MethodPatch: true})
}

// A tenant at a limit keeps its deletions, its reads and its updates of the same size.
func TestGrowth_ofATenantAtItsLimitIsRefused(t *testing.T) {
	t.Parallel()
	const one, all = "/clusters/aaaa/api/v1/namespaces/n/configmaps/c", "/clusters/aaaa/api/v1/namespaces/n/configmaps"
	full := errs.New(errs.InsufficientStorage, "this workspace stores all")
	const apply = "application/apply-patch+yaml"
	for name, c := range map[string]struct {
		method, path, content string
		body, size            int
		// asked is what the meter is asked, weighed what it is asked at the limit behind that, and code the
		// answer at the limit.
		asked, weighed []proxy.Growth
		code           int
	}{
		"a creation":                 {http.MethodPost, all, "", 10, 0, []proxy.Growth{{Resource: "configmaps", Created: true, Bytes: 10}}, nil, 507},
		"a deletion":                 {http.MethodDelete, one, "", 0, 2000, nil, nil, 200},
		"a read":                     {http.MethodGet, one, "", 0, 2000, nil, nil, 200},
		"a larger update":            {http.MethodPut, one, "", 4000, 2000, []proxy.Growth{{Resource: "configmaps", Update: true, Bytes: 4000}}, []proxy.Growth{{Resource: "configmaps", Bytes: 2000}}, 507},
		"an update of the same size": {http.MethodPut, one, "", 2001, 2000, []proxy.Growth{{Resource: "configmaps", Update: true, Bytes: 2001}}, nil, 200},
		"an apply that creates":      {http.MethodPatch, one, apply, 10, 0, []proxy.Growth{{Resource: "configmaps", Created: true, Update: true, Bytes: 10}}, []proxy.Growth{{Resource: "configmaps", Created: true, Bytes: 10}}, 507},
		"an apply to what exists":    {http.MethodPatch, one, apply, 1999, 2000, []proxy.Growth{{Resource: "configmaps", Created: true, Update: true, Bytes: 1999}}, nil, 200},
	} {
		for _, err := range []error{nil, full} {
			k := &weights{size: c.size, full: err}
			r := request(c.method, c.path, "alice", "Content-Type", c.content)
			if c.body > 0 {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("y", c.body))), int64(c.body)
			}
			w := weighing(t, k, 50).do(r)
			want, asked := http.StatusOK, c.asked
			if err != nil {
				want, asked = c.code, append(slices.Clone(c.asked), c.weighed...)
			}
			require.Equal(t, want, w.Code, "%s: %s", name, w.Body)
			require.Equal(t, asked, k.grown, name)
			if err == nil {
				require.Len(t, k.seen, 1, "%s: while there is room kcp is not asked for sizes", name)
			}
		}
	}
}

// What kcp refuses has added nothing, and what it may have done counts.
func TestGrowth_isSettledByTheAnswer(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]proxy.Outcome{
		http.StatusOK: proxy.Changed, http.StatusCreated: proxy.Created, http.StatusConflict: proxy.Refused,
		http.StatusUnprocessableEntity: proxy.Refused, http.StatusInternalServerError: proxy.Unanswered, -1: proxy.Unanswered,
	} {
		for _, method := range []string{http.MethodPost, http.MethodPut} {
			k := &weights{size: 2000, answers: status}
			path := "/clusters/aaaa/api/v1/namespaces/n/configmaps"
			if method == http.MethodPut {
				path += "/c"
			}
			r := request(method, path, "alice")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("small")), 5
			weighing(t, k, 50).do(r)
			require.Equal(t, []proxy.Outcome{want}, k.settled, "%s %d", method, status)
		}
	}
	k := &weights{size: 2000}
	h := weighing(t, k, 50)
	h.unaudited = errs.New(errs.Unavailable, "the audit log is full")
	r := request(http.MethodPost, "/clusters/aaaa/api/v1/namespaces/n/configmaps", "alice")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("small")), 5
	h.do(r)
	require.Equal(t, []proxy.Outcome{proxy.Refused}, k.settled, "it was not sent")
}
