package workspace

import (
	"context"
	"slices"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// desiredBinding is an APIBinding of the template, as a manifest and as a typed object.
type desiredBinding struct {
	*kcpapisv1alpha2.APIBinding
	object *unstructured.Unstructured
}

// bindingOf decodes an APIBinding that was validated by the loader of the template or by
// kcp.
func bindingOf(o *unstructured.Unstructured) *kcpapisv1alpha2.APIBinding {
	b := &kcpapisv1alpha2.APIBinding{}
	utilruntime.Must(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, b))
	return b
}

// applyBinding applies a binding of the template, if necessary, and returns its current state.
func (s *template) applyBinding(ctx context.Context, cluster string, have *kcpapisv1alpha2.APIBinding, want desiredBinding, due bool) (*kcpapisv1alpha2.APIBinding, error) {
	if have != nil {
		// A binding that is being deleted must be gone before it is created again. Its
		// event enqueues the key.
		if !have.DeletionTimestamp.IsZero() || !due && keeps(have, want.APIBinding) {
			return have, nil
		}
		// Server-side apply keeps claims of other field managers, and the selector of a
		// claim is immutable. Unwanted claims are therefore removed first.
		if claims := untouched(have, want.APIBinding); len(claims) < len(have.Spec.PermissionClaims) {
			stripped := have.DeepCopy()
			stripped.Spec.PermissionClaims = claims
			if err := s.UpdateBinding(ctx, cluster, stripped); err != nil {
				return nil, err
			}
		}
	}
	got, err := s.Apply(ctx, cluster, want.object)
	if err != nil {
		return nil, err
	}
	return bindingOf(got), nil
}

// keeps reports whether a binding accepts exactly the claims that the template accepts.
func keeps(have, want *kcpapisv1alpha2.APIBinding) bool {
	if !apiequality.Semantic.DeepEqual(have.Spec.Reference, want.Spec.Reference) || len(untouched(have, want)) < len(have.Spec.PermissionClaims) {
		return false
	}
	for _, c := range want.Spec.PermissionClaims {
		if c.State == kcpapisv1alpha2.ClaimAccepted && claimLike(have, c) == nil {
			return false
		}
	}
	return true
}

// untouched returns the claims of a binding that can stay: claims equal to the
// template's, and rejected claims that the template does not have.
func untouched(have, want *kcpapisv1alpha2.APIBinding) []kcpapisv1alpha2.AcceptablePermissionClaim {
	var claims []kcpapisv1alpha2.AcceptablePermissionClaim
	for _, c := range have.Spec.PermissionClaims {
		asked := claimLike(want, c)
		if asked == nil && c.State == kcpapisv1alpha2.ClaimRejected || asked != nil && sameClaim(*asked, c) {
			claims = append(claims, c)
		}
	}
	return claims
}

// claimLike finds the claim on the same resource in a binding, or returns nil.
func claimLike(b *kcpapisv1alpha2.APIBinding, c kcpapisv1alpha2.AcceptablePermissionClaim) *kcpapisv1alpha2.AcceptablePermissionClaim {
	i := slices.IndexFunc(b.Spec.PermissionClaims, func(x kcpapisv1alpha2.AcceptablePermissionClaim) bool {
		return x.Group == c.Group && x.Resource == c.Resource && x.IdentityHash == c.IdentityHash
	})
	if i < 0 {
		return nil
	}
	return &b.Spec.PermissionClaims[i]
}

func sameClaim(a, b kcpapisv1alpha2.AcceptablePermissionClaim) bool {
	verbs := func(c kcpapisv1alpha2.AcceptablePermissionClaim) []string {
		return slices.Sorted(slices.Values(c.Verbs))
	}
	return a.State == b.State && slices.Equal(verbs(a), verbs(b)) && apiequality.Semantic.DeepEqual(a.Selector, b.Selector)
}

// unbound returns what kcp has not finished with a binding, or the empty string.
func unbound(b *kcpapisv1alpha2.APIBinding) string {
	condition := func(kind conditionsv1alpha1.ConditionType) (status corev1.ConditionStatus, reason string) {
		for _, c := range b.Status.Conditions {
			if c.Type == kind {
				return c.Status, c.Reason
			}
		}
		return corev1.ConditionUnknown, ""
	}
	if !b.DeletionTimestamp.IsZero() {
		return "is being removed, and is made again then"
	}
	if b.Status.Phase != kcpapisv1alpha2.APIBindingPhaseBound {
		for _, kind := range []conditionsv1alpha1.ConditionType{kcpapisv1alpha2.APIExportValid, kcpapisv1alpha2.InitialBindingCompleted, kcpapisv1alpha2.BindingUpToDate} {
			if status, reason := condition(kind); status == corev1.ConditionFalse {
				return "is not bound yet (" + reason + ")"
			}
		}
		return "is not bound yet"
	}
	accepts := slices.ContainsFunc(b.Spec.PermissionClaims, func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool {
		return c.State == kcpapisv1alpha2.ClaimAccepted
	})
	if status, _ := condition(kcpapisv1alpha2.PermissionClaimsApplied); accepts && status != corev1.ConditionTrue {
		return "has claims that are not applied yet"
	}
	return ""
}
