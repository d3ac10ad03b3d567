package workspace_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestTemplate_isAppliedInOrderAndThenTheWorkspaceIsReady(t *testing.T) {
	t.Parallel()
	k := newTemplated(t, widgetManifest, nsManifest, bindingManifest, crdManifest)
	log, result, err := k.pass(t)
	require.NoError(t, err)
	require.Equal(t, []string{"CustomResourceDefinition gadgets", "APIBinding widgets"}, log, "nothing before its API")
	require.Positive(t, result.RequeueAfter, "no event tells of a CRD")
	_, _, err = k.pass(t)
	require.NoError(t, err)
	require.Equal(t, "CustomResourceDefinition gadgets is not established yet; APIBinding widgets is not bound yet", k.condition(t).Message)
	require.False(t, tenancy.WorkspaceOf("", k.ws).Ready())

	k.established = true
	k.bindings["widgets"].Status.Conditions = conditionsv1alpha1.Conditions{{Type: kcpapisv1alpha2.InitialBindingCompleted, Status: corev1.ConditionFalse, Reason: kcpapisv1alpha2.WaitingForEstablishedReason, Message: "secret"}}
	_, _, err = k.pass(t)
	require.NoError(t, err)
	require.Equal(t, "APIBinding widgets is not bound yet (WaitingForEstablished)", k.condition(t).Message)
	k.bindings["widgets"].Status.Phase = kcpapisv1alpha2.APIBindingPhaseBound
	_, _, err = k.pass(t)
	require.NoError(t, err)
	require.Equal(t, "APIBinding widgets has claims that are not applied yet", k.condition(t).Message)

	k.bind()
	log, _, err = k.pass(t)
	require.NoError(t, err)
	require.Equal(t, []string{"Namespace made", "Widget hello"}, log[len(log)-2:])
	require.True(t, tenancy.WorkspaceOf("", k.ws).Ready())
}

func TestTemplate_noneAsksForNothing(t *testing.T) {
	t.Parallel()
	k := convergedTemplate(t)
	require.Equal(t, metav1.ConditionTrue, k.condition(t).Status, "a complaint of a template that was taken away must not stay")
}

func TestTemplate_isAppliedAgain(t *testing.T) {
	t.Parallel()
	all := []string{"APIBinding widgets", "Widget hello"}
	for name, c := range map[string]struct {
		when func(k *templated)
		want []string
	}{
		"when nothing happened":           {func(*templated) {}, nil},
		"with a resync":                   {func(k *templated) { k.Clock.SetTime(k.Clock.Now().Add(10 * time.Minute)) }, all},
		"not yet before one":              {func(k *templated) { k.Clock.SetTime(k.Clock.Now().Add(5 * time.Minute)) }, nil},
		"after the Workspace was another": {func(k *templated) { k.template.Forget("ws1") }, all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := convergedTemplate(t, widgetManifest, bindingManifest)
			c.when(k)
			log, _, err := k.pass(t)
			require.NoError(t, err)
			require.Equal(t, c.want, log)
		})
	}
}

// The admission policy keeps tenants from objects with a label of the hub. kcp asks it about kinds
// that it serves by itself; tenants may add fields to other objects.
func TestTemplate_labelsObjectsOfKcpsOwnKinds(t *testing.T) {
	t.Parallel()
	k := convergedTemplate(t, widgetManifest, bindingManifest, nsManifest)
	labeled := map[string]bool{}
	k.onApply = func(o *unstructured.Unstructured) { labeled[o.GetKind()+" "+o.GetName()] = len(o.GetLabels()) > 0 }
	k.template.Forget("ws1")
	_, _, err := k.pass(t)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"Widget hello": false, "APIBinding widgets": false, "Namespace made": true}, labeled)
}

// kcp deletes the objects of an API with its APIBinding.
func TestTemplate_objectsComeBackWithABindingThatWasDeleted(t *testing.T) {
	t.Parallel()
	k := convergedTemplate(t, widgetManifest, bindingManifest)
	now := metav1.Now()
	k.bindings["widgets"].DeletionTimestamp = &now
	log, _, err := k.pass(t)
	require.NoError(t, err)
	require.Empty(t, log, "what is going is left alone")
	require.Contains(t, k.condition(t).Message, "is being removed")
	delete(k.bindings, "widgets")
	log, _, err = k.pass(t)
	require.NoError(t, err)
	require.Equal(t, []string{"APIBinding widgets"}, log)
	k.bind()
	log, _, err = k.pass(t)
	require.NoError(t, err)
	require.Equal(t, []string{"Widget hello"}, log)
	require.True(t, tenancy.WorkspaceOf("", k.ws).Ready())
}

func TestTemplate_aForcedPassAppliesEverything(t *testing.T) {
	t.Parallel()
	k := convergedTemplate(t, widgetManifest, bindingManifest)
	k.ws.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationReconcile
	_, _, err := k.pass(t)
	require.NoError(t, err)
	log, _, err := k.pass(t)
	require.NoError(t, err)
	require.Equal(t, []string{"APIBinding widgets", "Widget hello"}, log)
	log, _, err = k.pass(t)
	require.NoError(t, err)
	require.Empty(t, log)
}

// The binding accepts exactly the claims of the template, whatever a tenant changes.
func TestTemplate_claimsThatWereAlteredArePutRight(t *testing.T) {
	t.Parallel()
	claim := func(resource string, state kcpapisv1alpha2.AcceptablePermissionClaimState) kcpapisv1alpha2.AcceptablePermissionClaim {
		c := kcpapisv1alpha2.AcceptablePermissionClaim{State: state}
		c.Resource, c.Verbs, c.Selector.MatchAll = resource, []string{"list", "get"}, true
		return c
	}
	changed := func(change func(*kcpapisv1alpha2.AcceptablePermissionClaim)) []kcpapisv1alpha2.AcceptablePermissionClaim {
		c := claim("configmaps", kcpapisv1alpha2.ClaimAccepted)
		change(&c)
		return []kcpapisv1alpha2.AcceptablePermissionClaim{c}
	}
	own := claim("configmaps", kcpapisv1alpha2.ClaimAccepted)
	for name, c := range map[string]struct {
		claims []kcpapisv1alpha2.AcceptablePermissionClaim
		log    []string
	}{
		"as it should be, in another order": {changed(func(*kcpapisv1alpha2.AcceptablePermissionClaim) {}), nil},
		"another one rejected":              {[]kcpapisv1alpha2.AcceptablePermissionClaim{claim("secrets", kcpapisv1alpha2.ClaimRejected), own}, nil},
		"another one accepted":              {[]kcpapisv1alpha2.AcceptablePermissionClaim{claim("secrets", kcpapisv1alpha2.ClaimAccepted), own}, []string{"update APIBinding widgets to 1 claims", "APIBinding widgets"}},
		"none":                              {nil, []string{"APIBinding widgets"}},
		"ours rejected":                     {changed(func(c *kcpapisv1alpha2.AcceptablePermissionClaim) { c.State = kcpapisv1alpha2.ClaimRejected }), []string{"update APIBinding widgets to 0 claims", "APIBinding widgets"}},
		"more verbs":                        {changed(func(c *kcpapisv1alpha2.AcceptablePermissionClaim) { c.Verbs = append(c.Verbs, "delete") }), []string{"update APIBinding widgets to 0 claims", "APIBinding widgets"}},
		"fewer verbs":                       {changed(func(c *kcpapisv1alpha2.AcceptablePermissionClaim) { c.Verbs = c.Verbs[:1] }), []string{"update APIBinding widgets to 0 claims", "APIBinding widgets"}},
		"another selector": {changed(func(c *kcpapisv1alpha2.AcceptablePermissionClaim) {
			c.Selector.MatchAll, c.Selector.MatchLabels = false, map[string]string{"a": "b"}
		}), []string{"update APIBinding widgets to 0 claims", "APIBinding widgets"}},
		"of another identity": {changed(func(c *kcpapisv1alpha2.AcceptablePermissionClaim) { c.IdentityHash = "x" }), []string{"update APIBinding widgets to 0 claims", "APIBinding widgets"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := convergedTemplate(t, widgetManifest, bindingManifest)
			k.bindings["widgets"].Spec.PermissionClaims = c.claims
			log, _, err := k.pass(t)
			require.NoError(t, err)
			require.Equal(t, c.log, log)
			accepted := map[string][]string{}
			for _, c := range k.bindings["widgets"].Spec.PermissionClaims {
				if c.State == kcpapisv1alpha2.ClaimAccepted {
					accepted[c.Resource] = slices.Sorted(slices.Values(c.Verbs))
				}
			}
			require.Equal(t, map[string][]string{"configmaps": {"get", "list"}}, accepted)
			require.True(t, tenancy.WorkspaceOf("", k.ws).Ready(), "nobody calls it unready for that")
		})
	}
}

// refused returns an error of kcp with the wrapping of the Apply func.
func refused(name string, status *apierrors.StatusError) error {
	return errs.Wrap(errs.Conflict, status, name+": kcp refuses it ("+string(status.ErrStatus.Reason)+")")
}

func TestTemplate_whatKcpRefusesIsShownAndHeals(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "x", errors.New("secret"))
	for name, c := range map[string]struct {
		refuse []string
		says   string
		done   []string
	}{
		"a binding":   {[]string{"APIBinding widgets"}, "APIBinding widgets: kcp refuses it (Forbidden)", nil},
		"an object":   {[]string{"Widget hello"}, "Widget hello: kcp refuses it (Forbidden)", []string{"Namespace made"}},
		"two of them": {[]string{"Namespace made", "Widget hello"}, "Namespace made: kcp refuses it (Forbidden)", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTemplated(t, widgetManifest, bindingManifest, nsManifest)
			for _, name := range c.refuse {
				k.refuse[name] = refused(name, forbidden)
			}
			for range 3 {
				_, _, _ = k.pass(t)
				k.bind()
			}
			log, _, err := k.pass(t)
			require.ErrorContains(t, err, "secret", "the log says it all, and the controller backs off")
			require.NotErrorIs(t, err, controller.ErrRetry)
			for _, done := range c.done {
				require.Contains(t, log, done)
			}
			require.Equal(t, c.says, k.condition(t).Message)
			require.False(t, tenancy.WorkspaceOf("", k.ws).Ready())

			clear(k.refuse)
			for range 2 {
				_, _, err = k.pass(t)
				require.NoError(t, err)
				k.bind()
			}
			require.True(t, tenancy.WorkspaceOf("", k.ws).Ready())
		})
	}
}

// A Ready Workspace stays Ready during transient failures of kcp.
func TestTemplate_aFailureThatPassesDoesNotTakeReadyAway(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"kcp is gone":         errors.New("dial tcp: connection refused"),
		"too many requests":   refused("Widget hello", apierrors.NewTooManyRequests("later", 1)),
		"kcp starts":          refused("Widget hello", apierrors.NewServiceUnavailable("later")),
		"kcp is slow":         refused("Widget hello", apierrors.NewTimeoutError("later", 1)),
		"changed meanwhile":   refused("Widget hello", apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("later"))),
		"somebody was faster": fmt.Errorf("%w: later", controller.ErrRetry),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := convergedTemplate(t, widgetManifest, bindingManifest)
			k.refuse["Widget hello"] = err
			k.Clock.SetTime(k.Clock.Now().Add(time.Hour))
			_, _, got := k.pass(t)
			require.ErrorIs(t, got, controller.ErrRetry)
			require.True(t, tenancy.WorkspaceOf("", k.ws).Ready())
			clear(k.refuse)
			log, _, got := k.pass(t)
			require.NoError(t, got)
			require.Contains(t, log, "Widget hello", "it is still due")
		})
	}
}
