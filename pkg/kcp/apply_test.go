package kcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

// served is as much of a kcp as applying needs: a discovery for each logical
// cluster, and answers by path.
type served struct {
	mu        sync.Mutex
	log       []string
	discovery map[string]metav1.APIResource
	answers   map[string]*apierrors.StatusError
	body      map[string]any
}

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	refuse := func(err *apierrors.StatusError) {
		err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		w.WriteHeader(int(err.ErrStatus.Code))
		_ = json.NewEncoder(w).Encode(err.ErrStatus)
	}
	missing := apierrors.NewNotFound(schema.GroupResource{}, "")
	cluster, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/clusters/"), "/")
	if r.Method == http.MethodGet {
		resource, ok := s.discovery[cluster]
		if !ok || path != "apis/widgets.example.com/v1" {
			refuse(missing)
			return
		}
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{APIResources: []metav1.APIResource{
			{Name: resource.Name + "/status", Kind: "Widget"}, {Name: "others", Kind: "Other"}, resource,
		}})
		return
	}
	if err := s.answers[r.URL.Path]; err != nil {
		refuse(err)
		return
	}
	resource := s.discovery[cluster]
	want := "apis/widgets.example.com/v1/" + resource.Name + "/hello"
	if resource.Namespaced {
		want = "apis/widgets.example.com/v1/namespaces/default/" + resource.Name + "/hello"
	}
	if path != want {
		refuse(missing)
		return
	}
	s.body = nil
	_ = json.NewDecoder(r.Body).Decode(&s.body)
	s.body["status"] = "done, with " + r.Header.Get("Content-Type") + " " + r.URL.RawQuery
	_ = json.NewEncoder(w).Encode(s.body)
}

func (s *served) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}

func widget(kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "widgets.example.com/v1", "kind": kind, "metadata": map[string]any{"name": "hello"},
	}}
}

func newApplier(t *testing.T) (*served, func(cluster, kind string) (*unstructured.Unstructured, error)) {
	t.Helper()
	s := &served{answers: map[string]*apierrors.StatusError{}, discovery: map[string]metav1.APIResource{
		"a": {Name: "widgets", Kind: "Widget", Namespaced: true},
		"b": {Name: "widgets", Kind: "Widget", Namespaced: true},
		"c": {Name: "wodgets", Kind: "Widget"},
	}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	clients, err := kcp.NewClients(&rest.Config{Host: server.URL}, prometheus.NewRegistry())
	require.NoError(t, err)
	return s, func(cluster, kind string) (*unstructured.Unstructured, error) {
		got, err := clients.Apply(context.WithoutCancel(t.Context()), cluster, widget(kind))
		return got, kcp.ExplainRefusal(widget(kind), err)
	}
}

func TestApply_discoversAKindOnce(t *testing.T) {
	t.Parallel()
	s, apply := newApplier(t)
	got, err := apply("a", "Widget")
	require.NoError(t, err)
	require.Equal(t, "done, with application/apply-patch+yaml fieldManager=kedge-hub&force=true", got.Object["status"])
	require.Equal(t, []string{
		"GET /clusters/a/apis/widgets.example.com/v1",
		"PATCH /clusters/a/apis/widgets.example.com/v1/namespaces/default/widgets/hello",
	}, s.taken())
	for _, cluster := range []string{"a", "b"} {
		_, err = apply(cluster, "Widget")
		require.NoError(t, err)
		require.Equal(t, []string{"PATCH /clusters/" + cluster + "/apis/widgets.example.com/v1/namespaces/default/widgets/hello"}, s.taken())
	}
}

// Logical clusters need not agree on what a kind is called.
func TestApply_discoversAgainAfterNotFound(t *testing.T) {
	t.Parallel()
	s, apply := newApplier(t)
	_, err := apply("a", "Widget")
	require.NoError(t, err)
	s.taken()
	_, err = apply("c", "Widget")
	require.NoError(t, err)
	require.Equal(t, []string{
		"PATCH /clusters/c/apis/widgets.example.com/v1/namespaces/default/widgets/hello",
		"GET /clusters/c/apis/widgets.example.com/v1",
		"PATCH /clusters/c/apis/widgets.example.com/v1/wodgets/hello",
	}, s.taken())
}

// A kind that nothing served once is found when it is.
func TestApply_discoversUnservedKindsEachTime(t *testing.T) {
	t.Parallel()
	s, apply := newApplier(t)
	_, err := apply("none", "Widget")
	require.ErrorContains(t, err, "Widget hello: no API serves widgets.example.com/v1 Widget here")
	_, err = apply("a", "Gadget")
	require.ErrorContains(t, err, "Gadget hello: no API serves widgets.example.com/v1 Gadget here")
	s.discovery["none"] = metav1.APIResource{Name: "widgets", Kind: "Widget", Namespaced: true}
	_, err = apply("none", "Widget")
	require.NoError(t, err)

	// And one that was served is noticed to be gone.
	delete(s.discovery, "none")
	_, err = apply("none", "Widget")
	require.ErrorContains(t, err, "no API serves")
}

func TestExplainRefusal_hidesTheMessageOfKCP(t *testing.T) {
	t.Parallel()
	const path = "/clusters/a/apis/widgets.example.com/v1/namespaces/default/widgets/hello"
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Widget"}, "hello", nil)
	invalid.ErrStatus.Message = "secret"
	for _, f := range []string{"spec.a", "spec.b", "spec.c", "spec.d"} {
		invalid.ErrStatus.Details.Causes = append(invalid.ErrStatus.Details.Causes, metav1.StatusCause{Field: f, Message: "secret"})
	}
	for name, c := range map[string]struct {
		status *apierrors.StatusError
		want   string
	}{
		"forbidden":            {apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "hello", context.Canceled), "Widget hello: kcp refuses it (Forbidden)"},
		"invalid":              {invalid, "Widget hello: kcp refuses it (Invalid: spec.a, spec.b, spec.c)"},
		"without a namespace":  {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "default"), "Widget hello: kcp refuses it (NotFound: namespaces default)"},
		"its own name missing": {apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "hello"), "Widget hello: kcp refuses it (NotFound)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, apply := newApplier(t)
			s.answers[path] = c.status
			_, err := apply("a", "Widget")
			var shown *errs.Error
			require.ErrorAs(t, err, &shown)
			require.Equal(t, c.want, shown.Message)
			require.Equal(t, c.status.ErrStatus.Reason, apierrors.ReasonForError(err), "who reads the error can still tell")
			require.ErrorContains(t, err, c.status.ErrStatus.Message, "and the log has it whole")
		})
	}
}
