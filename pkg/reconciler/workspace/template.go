package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/controller"
)

// ConditionTemplateApplied says that a child Workspace holds what the operator's
// template asks for.
const ConditionTemplateApplied = "TemplateApplied"

const (
	// reapply is after how long everything is applied again, altered or not: a
	// little less than the controllers' resync, so that every one of those does it.
	reapply = 9 * time.Minute
	// pollCRD is how often it is looked whether kcp serves a CRD: no event tells.
	pollCRD = 500 * time.Millisecond
	// applies is how many objects of a Workspace are applied at once.
	applies = 8
)

// TemplateConfig is what a Template holds and how it gets into a Workspace.
type TemplateConfig struct {
	Clock clock.PassiveClock
	// Objects are the operator's, in any order; APIBindings of v1alpha2 only.
	Objects []*unstructured.Unstructured
	// Bindings reads what is bound in a logical cluster.
	Bindings func(cluster string) []*kcpapisv1alpha2.APIBinding
	// Apply applies an object server-side and returns what kcp then holds.
	Apply func(ctx context.Context, cluster string, o *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// UpdateBinding replaces just the binding whose resource version it carries.
	UpdateBinding func(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) error
}

// Template is what the operator wants every child Workspace to hold. What was
// taken out of a template stays where it was applied: with an APIBinding would go
// all that a tenant made with it.
type Template struct {
	TemplateConfig
	bindings []desiredBinding
	// apis is what makes an API, each list needing those before it. contents need
	// the APIs.
	apis, contents [][]*unstructured.Unstructured
	memory         memory
}

// NewTemplate returns the template; one without objects asks for nothing.
func NewTemplate(c TemplateConfig) *Template {
	t := &Template{TemplateConfig: c, memory: memory{clusters: map[string]*applied{}}}
	stages := map[stage][]*unstructured.Unstructured{}
	for _, o := range c.Objects {
		at := stageOf(o.GroupVersionKind().GroupKind())
		stages[at] = append(stages[at], o)
		if at == stageBindings {
			t.bindings = append(t.bindings, desiredBinding{object: o, APIBinding: bindingOf(o)})
		}
	}
	t.apis = [][]*unstructured.Unstructured{stages[stageSchemas], stages[stageExports]}
	t.contents = [][]*unstructured.Unstructured{stages[stageNamespaces], stages[stageRest]}
	return t
}

// stage is a place in the order in which a template is applied.
type stage int

const (
	stageSchemas stage = iota
	stageExports
	stageBindings
	stageNamespaces
	stageRest
)

func stageOf(kind schema.GroupKind) stage {
	switch kind {
	case schema.GroupKind{Group: "apis.kcp.io", Kind: "APIResourceSchema"}, kindCRD:
		return stageSchemas
	case schema.GroupKind{Group: "apis.kcp.io", Kind: "APIExport"}:
		return stageExports
	case schema.GroupKind{Group: "apis.kcp.io", Kind: "APIBinding"}:
		return stageBindings
	case schema.GroupKind{Kind: "Namespace"}:
		return stageNamespaces
	}
	return stageRest
}

var kindCRD = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// template is the step that keeps the Template in a Workspace.
type template struct{ *Template }

func (*template) Condition() string { return ConditionTemplateApplied }

func (s *template) Reconcile(ctx context.Context, o *object) (controller.Result, error) {
	if len(s.Objects) == 0 {
		return controller.Result{}, nil
	}
	cluster := o.Spec.Cluster
	pass := s.memory.begin(cluster, s.Clock.Now(), controller.Forced(ctx))
	bound, result, err := s.makeAPIs(ctx, cluster, pass.due)
	if err != nil || result.Message != "" {
		return result, err
	}
	if pass.due || bound != pass.bound {
		for _, objects := range s.contents {
			if _, err := s.applyAll(ctx, cluster, objects); err != nil {
				return controller.Result{}, err
			}
		}
		s.memory.done(cluster, pass, bound, s.Clock.Now())
	}
	return controller.Result{}, nil
}

// makeAPIs applies what brings APIs, the APIBindings where they are not as they
// should be and the rest where it is due, and tells what kcp is still at. bound
// identifies the bindings: objects of an API are gone with the binding that
// brought it.
func (s *template) makeAPIs(ctx context.Context, cluster string, due bool) (bound string, result controller.Result, err error) {
	var waiting []string
	for _, objects := range s.apis {
		if !due {
			break
		}
		got, err := s.applyAll(ctx, cluster, objects)
		if err != nil {
			return "", controller.Result{}, err
		}
		for _, o := range got {
			if o.GroupVersionKind().GroupKind() == kindCRD && !established(o) {
				waiting = append(waiting, "CustomResourceDefinition "+o.GetName()+" is not established yet")
				result.RequeueAfter = pollCRD
			}
		}
	}
	have := map[string]*kcpapisv1alpha2.APIBinding{}
	for _, b := range s.Bindings(cluster) {
		have[b.Name] = b
	}
	kept := make([]*kcpapisv1alpha2.APIBinding, len(s.bindings))
	if err := each(s.bindings, func(i int, want desiredBinding) (err error) {
		kept[i], err = s.keep(ctx, cluster, have[want.Name], want, due)
		return err
	}); err != nil {
		return "", controller.Result{}, err
	}
	for _, b := range kept {
		bound += string(b.UID) + " "
		if missing := unbound(b); missing != "" {
			waiting = append(waiting, "APIBinding "+b.Name+" "+missing)
		}
	}
	result.Message = strings.Join(waiting, "; ")
	return bound, result, nil
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}

// applyAll applies objects that do not depend on each other.
func (s *template) applyAll(ctx context.Context, cluster string, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	got := make([]*unstructured.Unstructured, len(objects))
	err := each(objects, func(i int, o *unstructured.Unstructured) (err error) {
		got[i], err = s.Apply(ctx, cluster, o)
		return err
	})
	return got, err
}

// each calls f for all items, side by side, whether or not it fails for one. Of
// the failures, which are in the items' order, those count that tell something of
// the items: kcp being out of breath does not.
func each[T any](items []T, f func(int, T) error) error {
	failures := make([]error, len(items))
	var group errgroup.Group
	group.SetLimit(applies)
	for i, item := range items {
		group.Go(func() error {
			failures[i] = f(i, item)
			return nil
		})
	}
	_ = group.Wait()
	var refused, later []error
	for _, err := range failures {
		switch {
		case err == nil:
		case passing(err):
			later = append(later, err)
		default:
			refused = append(refused, err)
		}
	}
	if len(refused) == 0 && len(later) > 0 {
		return fmt.Errorf("%w: %w", controller.ErrRetry, errors.Join(later...))
	}
	return errors.Join(refused...)
}

// passing tells a failure that says nothing about what was to be written: a
// Workspace that has it all is not called unready for it.
func passing(err error) bool {
	if errors.Is(err, controller.ErrRetry) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	switch status.Status().Reason {
	case metav1.StatusReasonConflict, metav1.StatusReasonTooManyRequests, metav1.StatusReasonServiceUnavailable,
		metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout:
		return true
	}
	return false
}
