package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	widgetManifest  = `{apiVersion: widgets.example.com/v1, kind: Widget, metadata: {name: hello}}`
	nsManifest      = `{apiVersion: v1, kind: Namespace, metadata: {name: made}}`
	bindingManifest = `{apiVersion: apis.kcp.io/v1alpha2, kind: APIBinding, metadata: {name: widgets}, spec: {reference: {export: {path: "root:w", name: w}}, permissionClaims: [{group: "", resource: configmaps, verbs: [get, list], state: Accepted, selector: {matchAll: true}}]}}`
	crdManifest     = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets}}`
)

// templated is a kcp with one Workspace and a template.
type templated struct {
	*kcp
	template *workspace.Template

	mu       sync.Mutex
	bindings map[string]*kcpapisv1alpha2.APIBinding
	// log lists the applied and updated objects; made counts the created bindings.
	log  []string
	made int
	// refuse has the errors of Apply by kind and name; onApply runs on each Apply.
	refuse      map[string]error
	onApply     func(*unstructured.Unstructured)
	established bool
}

func newTemplated(t *testing.T, manifests ...string) *templated {
	k := &templated{
		kcp: newKCP(t), bindings: map[string]*kcpapisv1alpha2.APIBinding{}, refuse: map[string]error{}, onApply: func(*unstructured.Unstructured) {},
	}
	k.ws.Status.Phase, k.missing = kcpcorev1alpha1.LogicalClusterPhaseReady, 0
	var objects []*unstructured.Unstructured
	for _, m := range manifests {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(m), &o.Object))
		objects = append(objects, o)
	}
	list := func(string) []*kcpapisv1alpha2.APIBinding { return slices.Collect(maps.Values(k.bindings)) }
	k.template = workspace.NewTemplate(workspace.TemplateConfig{
		Clock: k.Clock, Objects: objects, Bindings: list, Apply: k.apply,
		UpdateBinding: func(_ context.Context, _ string, b *kcpapisv1alpha2.APIBinding) error {
			k.note(fmt.Sprintf("update APIBinding %s to %d claims", b.Name, len(b.Spec.PermissionClaims)))
			k.bindings[b.Name] = b
			return nil
		},
	})
	k.more = func(c *workspace.Config) { c.Roles.Bindings, c.Template = list, k.template }
	k.running = k.reconciler()
	return k
}

func (k *templated) note(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, what)
}

// apply keeps the claims of other field managers on a binding, as kcp does.
func (k *templated) apply(_ context.Context, cluster string, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name := o.GetKind() + " " + o.GetName()
	k.onApply(o)
	if err := k.refuse[name]; err != nil {
		return nil, err
	}
	k.note(name)
	got := o.DeepCopy()
	switch {
	case cluster != "ws1":
		return nil, errors.New("in " + cluster)
	case o.GetKind() == "CustomResourceDefinition" && k.established:
		got.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	case o.GetKind() == "APIBinding":
		b := &kcpapisv1alpha2.APIBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, b); err != nil {
			return nil, err
		}
		if have := k.bindings[b.Name]; have != nil {
			b.UID, b.Status = have.UID, have.Status
			for _, c := range have.Spec.PermissionClaims {
				if !slices.ContainsFunc(b.Spec.PermissionClaims, func(x kcpapisv1alpha2.AcceptablePermissionClaim) bool {
					return x.Resource == c.Resource
				}) {
					b.Spec.PermissionClaims = append(b.Spec.PermissionClaims, c)
				}
			}
		} else {
			k.made++
			b.UID = types.UID(fmt.Sprint("binding", k.made))
		}
		k.bindings[b.Name] = b
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
		if err != nil {
			return nil, err
		}
		got.Object = raw
	}
	return got, nil
}

// bind sets the status of all bindings, as kcp does after a while.
func (k *templated) bind() {
	for _, b := range k.bindings {
		b.Status.Phase = kcpapisv1alpha2.APIBindingPhaseBound
		b.Status.Conditions = conditionsv1alpha1.Conditions{{Type: kcpapisv1alpha2.PermissionClaimsApplied, Status: corev1.ConditionTrue}}
	}
}

// pass reconciles once and returns the applied objects, the result and the error.
func (k *templated) pass(t *testing.T) ([]string, controller.Result, error) {
	t.Helper()
	k.log = nil
	result, err := k.kcp.pass(t)
	return k.log, result, err
}

// convergedTemplate returns a templated with a Ready Workspace and all objects applied.
func convergedTemplate(t *testing.T, manifests ...string) *templated {
	t.Helper()
	k := newTemplated(t, manifests...)
	k.established = true
	for range 4 {
		_, _, err := k.pass(t)
		require.NoError(t, err)
		k.bind()
	}
	require.True(t, tenancy.WorkspaceOf("", k.ws).Ready())
	log, _, err := k.pass(t)
	require.NoError(t, err)
	require.Empty(t, log, "a pass over what is as it should be writes nothing")
	return k
}

func (k *templated) condition(t *testing.T) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(tenancy.WorkspaceOf("", k.ws).Status.Conditions, v1alpha1.ConditionTemplateApplied)
	require.NotNil(t, c)
	return *c
}
