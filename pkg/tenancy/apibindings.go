package tenancy

import (
	"context"
	"slices"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// recheckRepair is the time until the next check after a repair.
	recheckRepair = 500 * time.Millisecond
	// recheckNew is the time until the next check of a new logical cluster whose bindings
	// are not in the cache yet.
	recheckNew = 5 * time.Second
	// finalizer is kcp's finalizer of APIBindings.
	finalizer = "apis.kcp.io/apibinding-finalizer"
)

// Bindings are the APIBindings that the hub needs in every logical cluster of one kind:
// workspaces of Organizations, or child Workspaces. kcp creates them from the WorkspaceType;
// Keep repairs them afterwards.
type Bindings struct {
	// Wanted are the desired bindings with their accepted claims. The names are used for
	// bindings that are recreated.
	Wanted []*kcpapisv1alpha2.APIBinding
	// Held returns the bindings of a logical cluster from the cache.
	Held func(cluster string) []*kcpapisv1alpha2.APIBinding
	// List lists the bindings of a logical cluster in kcp.
	List func(ctx context.Context, cluster string) ([]kcpapisv1alpha2.APIBinding, error)
	// Write creates a binding, or replaces the one with the same resource version.
	Write func(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) error
}

// Right reports whether a binding is as desired, or is not one of Wanted. It does not look at
// the status.
func (b Bindings) Right(held *kcpapisv1alpha2.APIBinding) bool {
	return !slices.ContainsFunc(b.Wanted, func(want *kcpapisv1alpha2.APIBinding) bool {
		_, as := accepted(want.Spec.PermissionClaims, held.Spec.PermissionClaims)
		return sameExport(want, held) && (!as || !held.DeletionTimestamp.IsZero())
	})
}

// Keep repairs the bindings of a logical cluster: it recreates missing ones and accepts
// claims that are not accepted. Claims that a newer version of the hub added are accepted
// without a message, because a Workspace that exists is Ready without them. watched
// is the current condition Watched, or nil for a new logical cluster. forced lists the
// bindings in kcp even if the cache is as desired. waiting says what is missing, or is empty;
// after is the time until the next check.
//
// Keep writes a repair once the condition says what is missing. The write of the condition can fail
// after the repair, and what is repaired is not reported any more (O-11).
//
// Keep lists the bindings in kcp before it writes: if a claim is not accepted, the cache lacks
// bindings that exist.
func (b Bindings) Keep(ctx context.Context, cluster string, watched *metav1.Condition, forced bool) (waiting string, after time.Duration, err error) {
	if len(b.Wanted) == 0 {
		return "", 0, nil
	}
	switch whole := b.Complete(cluster); {
	case forced:
	case watched == nil && !whole:
		// kcp creates the bindings before the workspace is ready. The cache will have them
		// soon, so the request to kcp is saved.
		return "", recheckNew, nil
	case whole && (watched == nil || watched.Status == metav1.ConditionTrue):
		return "", 0, nil
	}
	said := watched == nil || watched.Status == metav1.ConditionFalse
	if waiting, err = b.repair(ctx, cluster, said); err != nil || waiting != "" {
		after = recheckRepair
	}
	return waiting, after, err
}

// Complete reports whether the cache has all bindings as desired. Of two bindings of one export
// kcp uses only one, and the cache does not tell which, so both must be right.
func (b Bindings) Complete(cluster string) bool {
	held := b.Held(cluster)
	return !slices.ContainsFunc(held, func(h *kcpapisv1alpha2.APIBinding) bool { return !b.Right(h) }) &&
		!slices.ContainsFunc(b.Wanted, func(want *kcpapisv1alpha2.APIBinding) bool {
			return !slices.ContainsFunc(held, func(h *kcpapisv1alpha2.APIBinding) bool { return sameExport(want, h) })
		})
}

// repair says what is missing. It writes the bindings that are not as desired, if that was said
// before or nothing is missing.
func (b Bindings) repair(ctx context.Context, cluster string, said bool) (waiting string, err error) {
	held, err := b.List(ctx, cluster)
	if err != nil {
		return "", err
	}
	for _, want := range b.Wanted {
		write, lacks := compare(want, held)
		if lacks != "" && waiting == "" {
			waiting = lacks
		}
		if write != nil && (said || lacks == "") {
			if err := b.Write(ctx, cluster, write); err != nil {
				return waiting, err
			}
		}
	}
	return waiting, nil
}

// compare returns the write that repairs a desired binding, or nil for none, and the message
// to show until it is in place, or the empty string.
func compare(want *kcpapisv1alpha2.APIBinding, held []kcpapisv1alpha2.APIBinding) (write *kcpapisv1alpha2.APIBinding, waiting string) {
	export, taken := want.Spec.Reference.Export.Name, false
	for i := range held {
		b := &held[i]
		if !sameExport(want, b) {
			taken = taken || b.Name == want.Name
			continue
		}
		if !b.DeletionTimestamp.IsZero() {
			waiting = "the binding of " + export + " was deleted by hand; what kcp deletes with it is lost, and the hub then creates the binding again"
			// Finalizers of others must not delay the deletion.
			if kcps := slices.DeleteFunc(slices.Clone(b.Finalizers), func(f string) bool { return f != finalizer }); len(kcps) < len(b.Finalizers) {
				write = b.DeepCopy()
				write.Finalizers = kcps
			}
			continue
		}
		claims, as := accepted(want.Spec.PermissionClaims, b.Spec.PermissionClaims)
		switch {
		case as && b.Status.Phase == kcpapisv1alpha2.APIBindingPhaseBound:
			return nil, ""
		case !as && b.Status.Phase == kcpapisv1alpha2.APIBindingPhaseBound && onlyNew(want.Spec.PermissionClaims, b):
			write = b.DeepCopy()
			write.Spec.PermissionClaims = claims
			return write, ""
		case as && write == nil:
			waiting = "kcp is binding " + export
		case !as:
			waiting = "the binding of " + export + " does not accept all claims; the hub is repairing it"
			if takenBack(want.Spec.PermissionClaims, b) {
				write = b.DeepCopy()
				write.Spec.PermissionClaims = claims
			}
		}
	}
	if waiting != "" {
		return write, waiting
	}
	write = want.DeepCopy()
	if taken {
		// Another binding has the name. A generated name is used instead.
		write.Name, write.GenerateName = "", want.Name+"-"
	}
	return write, "the binding of " + export + " is missing; the hub is creating it"
}

// sameExport reports whether two bindings are of one APIExport. Names do not tell, because kcp
// generates them, and there must not be two bindings of one export.
func sameExport(want, b *kcpapisv1alpha2.APIBinding) bool {
	ref, wanted := b.Spec.Reference.Export, want.Spec.Reference.Export
	return ref != nil && ref.Name == wanted.Name &&
		(ref.Path == wanted.Path || b.Status.APIExportClusterName != "" && b.Status.APIExportClusterName == want.Status.APIExportClusterName)
}

// accepted returns the claims of a binding with the wanted ones accepted, and whether they are
// accepted already. The selector of a claim is immutable in kcp: a claim with another selector
// is removed, and the next pass adds it.
func accepted(want, held []kcpapisv1alpha2.AcceptablePermissionClaim) (claims []kcpapisv1alpha2.AcceptablePermissionClaim, as bool) {
	claims, as = slices.Clone(held), true
	for _, w := range want {
		at := slices.IndexFunc(claims, func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool {
			return c.EqualGRI(w.PermissionClaim)
		})
		switch {
		case at < 0:
			claims, as = append(claims, w), false
		case !claims[at].Selector.MatchAll:
			claims, as = slices.Delete(claims, at, at+1), false
		case claims[at].State != w.State || slices.ContainsFunc(w.Verbs, func(verb string) bool { return !slices.Contains(claims[at].Verbs, verb) }):
			claims[at], as = w, false
		}
	}
	return claims, as
}

// onlyNew reports whether all claims that a binding lacks are new to it: it accepts others,
// and kcp never applied those.
func onlyNew(want []kcpapisv1alpha2.AcceptablePermissionClaim, b *kcpapisv1alpha2.APIBinding) bool {
	var older []kcpapisv1alpha2.AcceptablePermissionClaim
	for _, w := range want {
		if slices.ContainsFunc(b.Spec.PermissionClaims, func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool { return c.EqualGRI(w.PermissionClaim) }) {
			older = append(older, w)
		} else if applied(b, w) {
			return false
		}
	}
	_, as := accepted(older, b.Spec.PermissionClaims)
	return as && len(older) > 0
}

// takenBack reports whether kcp has removed the claims that are not accepted from
// status.appliedPermissionClaims. kcp 0.32 hides the claimed objects before that; a claim that
// is accepted in between is no change to it, and the objects stay hidden.
func takenBack(want []kcpapisv1alpha2.AcceptablePermissionClaim, b *kcpapisv1alpha2.APIBinding) bool {
	return !slices.ContainsFunc(want, func(w kcpapisv1alpha2.AcceptablePermissionClaim) bool {
		return !slices.ContainsFunc(b.Spec.PermissionClaims, func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool {
			return c.EqualGRI(w.PermissionClaim) && c.State == kcpapisv1alpha2.ClaimAccepted
		}) && applied(b, w)
	})
}

// applied reports whether kcp has applied a claim.
func applied(b *kcpapisv1alpha2.APIBinding, claim kcpapisv1alpha2.AcceptablePermissionClaim) bool {
	return slices.ContainsFunc(b.Status.AppliedPermissionClaims, func(c kcpapisv1alpha2.ScopedPermissionClaim) bool {
		return c.EqualGRI(claim.PermissionClaim)
	})
}
