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

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// reapply is the interval at which all objects are applied again. It is shorter than
	// the resync period of the controllers, so each resync applies them.
	reapply = 9 * time.Minute
	// pollCRD is the interval at which a CRD is read, because no informer watches CRDs.
	pollCRD = 500 * time.Millisecond
	// applies is the number of objects of a Workspace that are applied in parallel.
	applies = 8
)

// TemplateConfig configures a Template.
type TemplateConfig struct {
	Clock clock.PassiveClock
	// Objects are the objects of the template, in any order. APIBindings are of v1alpha2.
	Objects []*unstructured.Unstructured
	// Bindings returns the APIBindings in a logical cluster from the cache.
	Bindings func(cluster string) []*kcpapisv1alpha2.APIBinding
	// Apply applies an object server-side and returns the result.
	Apply func(ctx context.Context, cluster string, o *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// UpdateBinding replaces the binding if its resource version is unchanged.
	UpdateBinding func(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) error
}

// Template is the Workspace template. An object that is removed from the template stays
// in the Workspaces: deleting an APIBinding would delete the objects that tenants created
// with it.
type Template struct {
	TemplateConfig
	bindings []desiredBinding
	// apis are the objects that provide APIs, in the order of their dependencies.
	// contents depend on these APIs.
	apis, contents [][]*unstructured.Unstructured
	records        records
}

// NewTemplate returns the template. It can be empty.
func NewTemplate(c TemplateConfig) *Template {
	t := &Template{TemplateConfig: c, records: records{clusters: map[string]*applied{}}}
	stages := map[stage][]*unstructured.Unstructured{}
	for _, o := range c.Objects {
		at := stageOf(o.GroupVersionKind().GroupKind())
		if at != stageBindings {
			o = tenancy.Protect(o)
		}
		stages[at] = append(stages[at], o)
		if at == stageBindings {
			t.bindings = append(t.bindings, desiredBinding{object: o, APIBinding: bindingOf(o)})
		}
	}
	t.apis = [][]*unstructured.Unstructured{stages[stageSchemas], stages[stageExports]}
	t.contents = [][]*unstructured.Unstructured{stages[stageNamespaces], stages[stageRest]}
	return t
}

// stage is the stage in which an object of the template is applied.
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

// template is the step that applies the Template in a Workspace.
type template struct{ *Template }

func (*template) Condition() string { return v1alpha1.ConditionTemplateApplied }

func (s *template) Reconcile(ctx context.Context, o *object) (controller.Result, error) {
	if len(s.Objects) == 0 {
		return controller.Result{}, nil
	}
	cluster := o.Spec.Cluster
	pass := s.records.begin(cluster, s.Clock.Now(), controller.Forced(ctx))
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
		s.records.done(cluster, bound, s.Clock.Now())
	}
	return controller.Result{}, nil
}

// makeAPIs applies the objects that provide APIs: APIBindings that are not as desired,
// and others if due. The message of the result says what kcp has not finished. bound
// identifies the APIBindings, because kcp deletes the objects of an API with its binding.
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
		kept[i], err = s.applyBinding(ctx, cluster, have[want.Name], want, due)
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

// applyAll applies independent objects.
func (s *template) applyAll(ctx context.Context, cluster string, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	got := make([]*unstructured.Unstructured, len(objects))
	err := each(objects, func(i int, o *unstructured.Unstructured) (err error) {
		got[i], err = s.Apply(ctx, cluster, o)
		return err
	})
	return got, err
}

// each calls f for all items in parallel, also after a failure. It returns the failures
// in the order of the items. It returns transient failures of kcp only if there are no
// others.
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

// passing reports whether a failure is transient. A transient failure says nothing about
// the object and must not change the Ready condition of a Workspace.
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
