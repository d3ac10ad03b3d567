package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

func TestCommit_metadataOrSpecAndStatusNeverGoInOnePass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*org)
		field  string
	}{
		"a finalizer":   {func(o *org) { o.Finalizers = []string{"example.com/held"} }, "metadata"},
		"a label":       {func(o *org) { o.Labels = map[string]string{"a": "b"} }, "metadata"},
		"the spec":      {func(o *org) { o.Spec.WorkspaceQuota = 7 }, "spec"},
		"both of these": {func(o *org) { o.Spec.WorkspaceQuota = 7; o.Labels = map[string]string{"a": "b"} }, "spec"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			f := s.reconciler(on("A", func(_ context.Context, o *org) (controller.Result, error) {
				c.change(o)
				return controller.Result{}, nil
			}))
			s.pass(f)
			first := s.taken()
			require.Len(t, first, 1)
			require.Empty(t, first[0].subresource)
			require.Contains(t, first[0].body, c.field)
			require.NotContains(t, first[0].body, "status")

			s.pass(f)
			second := s.taken()
			require.Len(t, second, 1)
			require.Equal(t, "status", second[0].subresource)
			require.NotContains(t, second[0].body, "spec")
			require.Equal(t, map[string]any{"uid": "uid-1", "resourceVersion": "2"}, second[0].body["metadata"])
			require.Equal(t, v1alpha1.PhaseReady, s.stored.Status.Phase)

			s.pass(f)
			require.Empty(t, s.taken(), "then there is nothing left to send")
		})
	}
}

func TestCommit_aFailingStepDoesNotKeepBackWhatThoseBeforeItChanged(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, err := s.reconciler(on("A", func(_ context.Context, o *org) (controller.Result, error) {
		o.Finalizers = []string{"example.com/held"}
		return controller.Result{}, nil
	}), gives("B", controller.Result{}, errors.New("boom")))(t.Context(), acme)
	require.ErrorContains(t, err, "boom")
	require.Equal(t, []string{"example.com/held"}, s.stored.Finalizers)
}

func TestCommit_neverHitsANewerObjectNorAnotherOfTheName(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*server){
		"newer":     func(s *server) { s.edit(func(o *org) { o.Spec.DisplayName = "Other" }) },
		"recreated": (*server).recreate,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			f := s.reconciler(gives("A", controller.Result{}, nil))
			s.lag()
			meanwhile(s)
			_, err := f(t.Context(), acme)
			require.ErrorIs(t, err, controller.ErrRetry)
			require.Empty(t, s.stored.Status.Phase)

			s.catchUp()
			s.pass(f)
			require.Equal(t, v1alpha1.PhaseReady, s.stored.Status.Phase)
		})
	}
}

func TestCommit_anObjectThatIsGoneIsForgottenOnceMemoryKnows(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := s.reconciler(gives("A", controller.Result{}, nil))
	s.lag()
	s.stored = nil
	_, err := f(t.Context(), acme)
	require.ErrorIs(t, err, controller.ErrRetry)
	s.catchUp()
	s.pass(f)
	require.Len(t, s.taken(), 1)
}

func TestCommit_aFailureIsNotTakenForTheConflictBesideIt(t *testing.T) {
	t.Parallel()
	boom, refused := errors.New("boom"), errors.New("refused")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "organizations"}, acme.Name, nil)
	for name, c := range map[string]struct {
		step, patch error
		retry       bool
		is          []error
	}{
		"nothing":                       {},
		"only a conflict of the patch":  {patch: conflict, retry: true},
		"only a conflict of the step":   {step: controller.ErrRetry, retry: true},
		"two conflicts":                 {step: controller.ErrRetry, patch: conflict, retry: true},
		"a failure and a conflict":      {step: boom, patch: conflict, is: []error{boom}},
		"a conflict and a failure":      {step: controller.ErrRetry, patch: refused, is: []error{refused}},
		"two failures":                  {step: boom, patch: refused, is: []error{boom, refused}},
		"the failure of the patch only": {patch: refused, is: []error{refused}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.refuse = c.patch
			_, err := s.reconciler(gives("A", controller.Result{}, c.step))(t.Context(), acme)
			require.Equal(t, c.retry, errors.Is(err, controller.ErrRetry))
			require.Equal(t, c.retry || c.is != nil, err != nil)
			for _, want := range c.is {
				require.ErrorIs(t, err, want)
			}
		})
	}
}

func TestCommit_anObjectThatCannotBeEncodedIsAnError(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	boom := errors.New("boom")
	_, err := controller.Reconcile(controller.Kind[*org]{
		Get: s.get, Copy: (*org).DeepCopy, Clock: s.clock, Patch: s.patch,
		Status: func(o *org) *v1alpha1.CommonStatus { return &o.Status.CommonStatus },
		Encode: func(*org) ([]byte, error) { return nil, boom },
	})(t.Context(), acme)
	require.ErrorIs(t, err, boom)
	require.Empty(t, s.taken())
}

// thing keeps its common status in an annotation.
type thing struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]string `json:"spec,omitempty"`
	common            v1alpha1.CommonStatus
}

func (o *thing) copy() *thing {
	out := &thing{ObjectMeta: *o.DeepCopy(), Spec: map[string]string{}, common: *o.common.DeepCopy()}
	for k, v := range o.Spec {
		out.Spec[k] = v
	}
	return out
}

func (o *thing) encode() ([]byte, error) {
	out := o.copy()
	if len(o.common.Conditions) > 0 {
		raw, err := json.Marshal(o.common)
		if err != nil {
			return nil, err
		}
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.StatusAnnotation, string(raw))
	}
	return json.Marshal(out)
}

func TestCommit_aStatusInAnAnnotationHasAPassOfItsOwnToo(t *testing.T) {
	t.Parallel()
	held := &thing{ObjectMeta: metav1.ObjectMeta{Name: acme.Name, UID: "uid-1", ResourceVersion: "1", Generation: 1, Annotations: map[string]string{"kept": "yes"}}}
	var sentTo, patches []string
	f := controller.Reconcile(controller.Kind[*thing]{
		Get:    func(controller.Key) (*thing, bool) { return held, true },
		Copy:   (*thing).copy,
		Status: func(o *thing) *v1alpha1.CommonStatus { return &o.common },
		Encode: (*thing).encode,
		Patch: func(_ context.Context, _ controller.Key, patch []byte, subresource string) error {
			sentTo, patches = append(sentTo, subresource), append(patches, string(patch))
			return nil
		},
		Clock: clocktesting.NewFakeClock(newServer(t).clock.Now()),
	}, stepFunc[*thing]{"A", func(_ context.Context, o *thing) (controller.Result, error) {
		o.Spec["a"] = "b"
		o.Annotations["added"] = "yes"
		return controller.Result{}, nil
	}})

	_, err := f(t.Context(), acme)
	require.NoError(t, err)
	held = held.copy()
	held.Spec["a"], held.Annotations["added"], held.ResourceVersion = "b", "yes", "2"
	_, err = f(t.Context(), acme)
	require.NoError(t, err)

	require.Equal(t, []string{"", ""}, sentTo, "an annotation is no subresource")
	require.JSONEq(t, `{"metadata":{"annotations":{"added":"yes"},"uid":"uid-1","resourceVersion":"1"},"spec":{"a":"b"}}`, patches[0])
	require.JSONEq(t, `{"metadata":{"uid":"uid-1","resourceVersion":"2","annotations":{"tenancy.kedge.faros.sh/status":"{\"observedGeneration\":1,\"conditions\":[{\"type\":\"A\",\"status\":\"True\",\"observedGeneration\":1,\"lastTransitionTime\":\"2030-01-01T12:00:00Z\",\"reason\":\"AsDesired\",\"message\":\"\"},{\"type\":\"Ready\",\"status\":\"True\",\"observedGeneration\":1,\"lastTransitionTime\":\"2030-01-01T12:00:00Z\",\"reason\":\"AsDesired\",\"message\":\"\"}],\"phase\":\"Ready\"}"}}}`, patches[1])
}
