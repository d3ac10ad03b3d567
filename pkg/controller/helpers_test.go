package controller_test

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

var acme = controller.Key{Cluster: "orgs", Name: "acme"}

type (
	org  = v1alpha1.Organization
	step = controller.Step[*org]
)

// stepFunc is a step that is shown as the condition of its name.
type stepFunc[T any] struct {
	name string
	f    func(context.Context, T) (controller.Result, error)
}

func (s stepFunc[T]) Condition() string { return s.name }

func (s stepFunc[T]) Reconcile(ctx context.Context, o T) (controller.Result, error) {
	return s.f(ctx, o)
}

func on(name string, f func(context.Context, *org) (controller.Result, error)) step {
	return stepFunc[*org]{name, f}
}

// gives is a step that always comes to the same.
func gives(name string, result controller.Result, err error) step {
	return on(name, func(context.Context, *org) (controller.Result, error) { return result, err })
}

// sent is a patch as it was sent.
type sent struct {
	body        map[string]any
	subresource string
}

// server keeps one Organization as an API server does: a patch with another uid
// or resourceVersion is a conflict, the main resource does not take a status nor
// the subresource anything else, and a change of the spec is a new generation.
type server struct {
	t     *testing.T
	clock *clocktesting.FakeClock

	mu      sync.Mutex
	stored  *org
	memory  *org // what the hub holds; nil is what is stored
	patches []sent
	refuse  error // of the next patch
}

func newServer(t *testing.T) *server {
	t.Helper()
	o := &org{ObjectMeta: metav1.ObjectMeta{Name: acme.Name, UID: "uid-1", ResourceVersion: "1", Generation: 1}}
	o.Spec.DisplayName = "Acme"
	start := time.Date(2030, 1, 1, 12, 0, 0, 123456789, time.UTC)
	return &server{t: t, stored: o, clock: clocktesting.NewFakeClock(start)}
}

func (s *server) get(key controller.Key) (*org, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key != acme {
		return nil, false
	}
	if s.memory != nil {
		return s.memory, true
	}
	return s.stored, s.stored != nil
}

func (s *server) patch(_ context.Context, key controller.Key, patch []byte, subresource string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(s.t, acme, key)
	p := sent{subresource: subresource}
	require.NoError(s.t, json.Unmarshal(patch, &p.body))
	s.patches = append(s.patches, p)
	if err := s.refuse; err != nil {
		s.refuse = nil
		return err
	}
	resource := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "organizations"}
	if s.stored == nil {
		return apierrors.NewNotFound(resource, key.Name)
	}
	metadata := p.body["metadata"].(map[string]any)
	if metadata["uid"] != string(s.stored.UID) || metadata["resourceVersion"] != s.stored.ResourceVersion {
		return apierrors.NewConflict(resource, key.Name, nil)
	}
	next := s.merged(patch)
	if subresource == "status" {
		status := next.Status
		next = s.stored.DeepCopy()
		next.Status = status
	} else {
		next.Status = *s.stored.Status.DeepCopy()
	}
	s.put(next)
	return nil
}

func (s *server) merged(patch []byte) *org {
	old, err := json.Marshal(s.stored)
	require.NoError(s.t, err)
	raw, err := jsonpatch.MergePatch(old, patch)
	require.NoError(s.t, err)
	next := &org{}
	require.NoError(s.t, json.Unmarshal(raw, next))
	return next
}

func (s *server) put(next *org) {
	version, err := strconv.Atoi(s.stored.ResourceVersion)
	require.NoError(s.t, err)
	next.ResourceVersion = strconv.Itoa(version + 1)
	if !equality.Semantic.DeepEqual(next.Spec, s.stored.Spec) {
		next.Generation++
	}
	s.stored = next
}

// edit changes the object as somebody else would.
func (s *server) edit(f func(*org)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.stored.DeepCopy()
	f(next)
	s.put(next)
}

// lag keeps the hub's memory as it is now.
func (s *server) lag() { s.memory = s.stored }

func (s *server) catchUp() { s.memory = nil }

// recreate puts another object of the same name in the place of this one.
func (s *server) recreate() {
	s.edit(func(o *org) { o.UID = types.UID("uid-2"); o.Status = v1alpha1.OrganizationStatus{} })
}

// taken returns the patches since the last call.
func (s *server) taken() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.patches
	s.patches = nil
	return p
}

func (s *server) reconciler(steps ...step) controller.Func {
	return controller.Reconcile(controller.Kind[*org]{
		Get:    s.get,
		Copy:   (*org).DeepCopy,
		Status: func(o *org) *v1alpha1.CommonStatus { return &o.Status.CommonStatus },
		Patch:  s.patch,
		Clock:  s.clock,
		// No other test has conditions of these types.
		Informative: []string{"Informative"},
		Independent: []string{"Independent"},
	}, steps...)
}

// pass runs one pass that must not fail.
func (s *server) pass(f controller.Func) controller.Result {
	s.t.Helper()
	result, err := f(s.t.Context(), acme)
	require.NoError(s.t, err)
	return result
}

func (s *server) condition(name string) *metav1.Condition {
	return meta.FindStatusCondition(s.stored.Status.Conditions, name)
}

func annotate(value string) func(*org) {
	return func(o *org) { metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.OperationAnnotation, value) }
}

func removeAnnotation(o *org) { delete(o.Annotations, v1alpha1.OperationAnnotation) }

func deleting(o *org) {
	o.DeletionTimestamp = &metav1.Time{Time: time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)}
	o.Finalizers = []string{"example.com/held"}
}
