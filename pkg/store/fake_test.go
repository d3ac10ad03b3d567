package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	kcpclients "github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// server is the fake kcp with faults by HTTP method. Objects are named by their path.
type server struct {
	*kcpfake.Server
	t testing.TB
	// before is called before a request is carried out. refuse returns the answer to give
	// in place of carrying it out, or nil. lose tells whether the answer gets lost.
	before func(method string)
	refuse func(method string) *apierrors.StatusError
	lose   func(method string) bool
}

func newServer(t testing.TB) *server {
	s := &server{Server: kcpfake.New(t), t: t}
	s.FailBefore(func(r kcpfake.Request) error {
		if s.before != nil {
			s.before(r.Method)
		}
		if s.refuse != nil {
			if refusal := s.refuse(r.Method); refusal != nil {
				return refusal
			}
		}
		return nil
	})
	s.FailAfter(func(r kcpfake.Request) error {
		if s.lose != nil && s.lose(r.Method) {
			return errors.New("the answer gets lost")
		}
		return nil
	})
	return s
}

// store returns a store over the server.
func (s *server) store() *store.Store {
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(s.t, err)
	return store.New(s.Clients().FailFast(), tree, "users", "orgs")
}

// clusterIn is the logical cluster of a path.
func clusterIn(path string) string {
	cluster, _, _ := strings.Cut(strings.TrimPrefix(path, "/clusters/"), "/")
	return cluster
}

// made puts an object with a UID at a path.
func (s *server) made(at, uid string, o kcpclients.Object) {
	o = o.DeepCopyObject().(kcpclients.Object)
	o.SetUID(types.UID(uid))
	s.Put(clusterIn(at), o)
	require.NotNil(s.t, s.Get(at))
}

func (s *server) remove(at string) {
	if o := s.Get(at); o != nil {
		s.Remove(clusterIn(at), o)
	}
}

// held reads an object; it tells whether there is one.
func (s *server) held(at string, into kcpclients.Object) bool {
	into.SetName(at[strings.LastIndex(at, "/")+1:])
	return s.Read(clusterIn(at), into)
}

// took returns the methods of the requests since the last call.
func (s *server) took() (methods []string) {
	for _, r := range s.Requests() {
		methods = append(methods, r.Method)
	}
	s.ForgetRequests()
	return methods
}
