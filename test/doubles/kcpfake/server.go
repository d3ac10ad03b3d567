package kcpfake

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// Fault decides what happens to a request. With nil the request goes on. With an
// API status error the server answers that. With any other error the connection
// breaks.
type Fault func(Request) error

// Server is a kcp in memory. Its methods may be called at any time.
type Server struct {
	t    testing.TB
	http *httptest.Server
	// scheme has the kinds of the hub.
	scheme *runtime.Scheme
	// now is the time of creations and deletions.
	now func() time.Time

	mu      sync.Mutex
	objects map[key]*unstructured.Unstructured
	kinds   kinds
	version int
	// applied is what each field manager has applied last.
	applied map[appliedKey]map[string]any
	// events are the changes after the version expired; changed is closed at the next.
	events   []event
	expired  int
	changed  chan struct{}
	requests []Request
	review   func(cluster string, asked authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus
	before   Fault
	after    Fault
	instead  http.Handler
	// stopped is closed by stop, and ends the watches.
	stopped chan struct{}
	stop    func()
}

// New starts an empty server, which ends with the test.
func New(t testing.TB) *Server { return NewAt(t, time.Now) }

// NewAt is New with the clock of the server.
func NewAt(t testing.TB, now func() time.Time) *Server {
	t.Helper()
	s := &Server{
		t: t, now: now, scheme: kcp.NewScheme(), objects: map[key]*unstructured.Unstructured{}, kinds: newKinds(),
		applied: map[appliedKey]map[string]any{}, changed: make(chan struct{}), stopped: make(chan struct{}),
	}
	s.http = httptest.NewUnstartedServer(s)
	s.http.EnableHTTP2 = true
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.http.StartTLS()
	s.stop = sync.OnceFunc(func() { close(s.stopped) })
	t.Cleanup(s.Close)
	return s
}

// URL is the base URL of the server, without "/clusters".
func (s *Server) URL() string { return s.http.URL }

// Config returns a configuration of clients, without a credential.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: s.http.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw}),
	}}
}

// Clients returns clients of the server, which are closed with the test.
func (s *Server) Clients() *kcp.Clients {
	s.t.Helper()
	clients, err := kcp.NewClients(s.Config(), prometheus.NewRegistry())
	require.NoError(s.t, err)
	s.t.Cleanup(clients.Close)
	return clients
}

// FailBefore sets what decides about a request before it is carried out; nil lets
// all requests through. It is called without a lock, so it may change objects.
func (s *Server) FailBefore(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// FailAfter sets what decides about a request after it was carried out and before
// it is answered: with an error the client does not learn the outcome.
func (s *Server) FailAfter(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = f
}

// ServeWith lets another handler answer all requests, for answers that no API server
// gives; nil ends that.
func (s *Server) ServeWith(h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead = h
}

// Close stops the server before the test ends: connections are refused.
func (s *Server) Close() {
	s.stop()
	s.http.Close()
}

// Requests are all requests for objects, in the order of arrival, refused ones
// included.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Writes are those Requests that create, update, patch or delete.
func (s *Server) Writes() []Request {
	return slices.DeleteFunc(s.Requests(), func(r Request) bool { return !r.Mutating() })
}

// ForgetRequests empties what Requests and Writes return.
func (s *Server) ForgetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/readyz") {
		_, _ = io.WriteString(w, "ok")
		return
	}
	s.mu.Lock()
	instead := s.instead
	s.mu.Unlock()
	if instead != nil {
		instead.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	in, err := parse(r, body)
	if err != nil {
		answer(w, in, http.StatusOK, nil, err)
		return
	}
	s.mu.Lock()
	if in.Resource != "" {
		s.requests = append(s.requests, in)
	}
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		err = before(in)
	}
	if err == nil && in.Verb == verbWatch {
		s.watch(w, r, in)
		return
	}
	var got any
	code := http.StatusOK
	if err == nil {
		s.mu.Lock()
		code, got, err = s.do(in)
		s.mu.Unlock()
	}
	if after != nil {
		if failure := after(in); failure != nil {
			got, err = nil, failure
		}
	}
	answer(w, in, code, got, err)
}

// answer writes an object or an error. It breaks the connection with an error that
// is no API status.
func answer(w http.ResponseWriter, in Request, code int, got any, err error) {
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			panic(http.ErrAbortHandler)
		}
		refusal := status.Status()
		refusal.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		code, got = int(refusal.Code), refusal
	} else if in.table {
		got = tableOf(got)
	}
	raw, err := json.Marshal(got)
	if err != nil {
		code, raw = http.StatusInternalServerError, []byte(err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(raw)
}
