package store_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	kcpclients "github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// server is as much of a kcp as one object at a time needs: it keeps objects by
// path and resource version, and does to its answers what a test asks for.
type server struct {
	t    testing.TB
	http *httptest.Server

	mu      sync.Mutex
	objects map[string]object
	version int
	// before is called, unlocked, before a request is carried out; lose tells whether
	// its answer is to be lost, refuse is answered in its place where it is not nil.
	before func(method string)
	lose   func(method string) bool
	refuse func(method string) *apierrors.StatusError
	calls  []string
}

type object = map[string]any

func newServer(t testing.TB) *server {
	s := &server{t: t, objects: map[string]object{}}
	s.http = httptest.NewUnstartedServer(s)
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.http.StartTLS()
	t.Cleanup(s.http.Close)
	return s
}

// store is a hub's store over the server.
func (s *server) store() *store.Store {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	clients, err := kcpclients.NewClients(&rest.Config{Host: s.http.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, prometheus.NewRegistry())
	require.NoError(s.t, err)
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(s.t, err)
	return store.New(clients.FailFast(), tree, "users", "orgs")
}

// put keeps an object under its path, as a new version.
func (s *server) put(at string, o object) object {
	s.version++
	o["metadata"].(object)["resourceVersion"] = strconv.Itoa(s.version)
	s.objects[at] = o
	return o
}

// made is put for a test that is not a request, with a uid.
func (s *server) made(at, uid string, o any) {
	raw, err := json.Marshal(o)
	require.NoError(s.t, err)
	var fields object
	require.NoError(s.t, json.Unmarshal(raw, &fields))
	fields["metadata"].(object)["uid"] = uid
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(at, fields)
}

func (s *server) remove(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, at)
}

// held reads an object; false where there is none.
func (s *server) held(at string, into any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[at]
	if !ok {
		return false
	}
	raw, err := json.Marshal(o)
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(raw, into))
	return true
}

// under are the paths of what is directly below one.
func (s *server) under(at string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var in []string
	for of := range s.objects {
		if path.Dir(of) == at {
			in = append(in, of)
		}
	}
	return in
}

// took are the methods of the requests since it was last asked.
func (s *server) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.before != nil {
		s.before(r.Method)
	}
	body, err := io.ReadAll(r.Body)
	if !assert.NoError(s.t, err) {
		return
	}
	s.mu.Lock()
	s.calls = append(s.calls, r.Method)
	var answer any
	failure := error(nil)
	if s.refuse != nil {
		if refusal := s.refuse(r.Method); refusal != nil {
			failure = refusal
		}
	}
	if failure == nil {
		answer, failure = s.do(r.Method, r.URL.Path, body)
	}
	lost := s.lose != nil && s.lose(r.Method)
	s.mu.Unlock()
	if lost {
		// The connection breaks when the work is done.
		panic(http.ErrAbortHandler)
	}
	code := http.StatusOK
	if failure != nil {
		status := failure.(apierrors.APIStatus).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		code, answer = int(status.Code), status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *server) do(method, at string, body []byte) (any, error) {
	resource := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "things"}
	at, status := strings.CutSuffix(at, "/status")
	name := path.Base(at)
	o, ok := s.objects[at]
	switch method {
	case http.MethodPost:
		var fields object
		require.NoError(s.t, json.Unmarshal(body, &fields))
		metadata := fields["metadata"].(object)
		at += "/" + metadata["name"].(string)
		if _, taken := s.objects[at]; taken {
			return nil, apierrors.NewAlreadyExists(resource, path.Base(at))
		}
		metadata["uid"] = "made " + strconv.Itoa(s.version)
		return s.put(at, fields), nil
	case http.MethodGet:
		if path.Base(at) == "memberships" {
			var items []object
			for of, o := range s.objects {
				if path.Dir(of) == at {
					items = append(items, o)
				}
			}
			return object{"kind": "MembershipList", "apiVersion": v1alpha1.SchemeGroupVersion.String(), "items": items}, nil
		}
	}
	if !ok {
		return nil, apierrors.NewNotFound(resource, name)
	}
	switch method {
	case http.MethodPatch:
		var given struct{ Metadata metav1.ObjectMeta }
		require.NoError(s.t, json.Unmarshal(body, &given))
		if !is(o, given.Metadata.UID, given.Metadata.ResourceVersion) {
			return nil, apierrors.NewConflict(resource, name, errors.New("changed"))
		}
		before, err := json.Marshal(o)
		require.NoError(s.t, err)
		after, err := jsonpatch.MergePatch(before, body)
		require.NoError(s.t, err)
		var fields object
		require.NoError(s.t, json.Unmarshal(after, &fields))
		// Of status and everything else each is written through a path of its own.
		rest, its := fields, o["status"]
		if status {
			rest, its = o, fields["status"]
		}
		next := maps.Clone(rest)
		if delete(next, "status"); its != nil {
			next["status"] = its
		}
		if reflect.DeepEqual(next, o) {
			return o, nil
		}
		next["metadata"] = maps.Clone(next["metadata"].(object))
		return s.put(at, next), nil
	case http.MethodDelete:
		var given metav1.DeleteOptions
		require.NoError(s.t, json.Unmarshal(body, &given))
		if p := given.Preconditions; p != nil && !is(o, *p.UID, *p.ResourceVersion) {
			return nil, apierrors.NewConflict(resource, name, errors.New("changed"))
		}
		delete(s.objects, at)
	}
	return o, nil
}

// is tells whether an object is the one that a request is about; empty is any.
func is(o object, uid types.UID, version string) bool {
	metadata := o["metadata"].(object)
	return (uid == "" || string(uid) == metadata["uid"]) && (version == "" || version == metadata["resourceVersion"])
}
