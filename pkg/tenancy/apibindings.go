package tenancy

import (
	"context"
	"slices"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/kcp-dev/sdk/apis/third_party/conditions/util/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// following is how soon kcp is looked at again while it follows a repair.
	following = 500 * time.Millisecond
	// unseen is how long the bindings of what is new may be behind what kcp made.
	unseen = 5 * time.Second
	// finalizer is kcp's own on bindings.
	finalizer = "apis.kcp.io/apibinding-finalizer"
)

// Bindings are the APIBindings that every logical cluster of a kind is to have: of
// Orgs' own workspaces, or of child Workspaces. kcp makes them by the WorkspaceType.
// Without any Wanted none are kept.
type Bindings struct {
	// Wanted are they, with the claims that they accept. Their names are those of
	// bindings that are made anew.
	Wanted []*kcpapisv1alpha2.APIBinding
	// Held are those that memory has of a logical cluster: what they bind and accept,
	// and whether they go.
	Held func(cluster string) []*kcpapisv1alpha2.APIBinding
	// List asks kcp itself.
	List func(ctx context.Context, cluster string) ([]kcpapisv1alpha2.APIBinding, error)
	// Write makes a binding, or replaces the one whose resource version it carries.
	Write func(ctx context.Context, cluster string, b *kcpapisv1alpha2.APIBinding) error
}

// Right tells whether a binding is as it should be, or none that is wanted. It leaves
// out what kcp makes of it.
func (b Bindings) Right(held *kcpapisv1alpha2.APIBinding) bool {
	return !slices.ContainsFunc(b.Wanted, func(want *kcpapisv1alpha2.APIBinding) bool {
		_, as := accepted(want.Spec.PermissionClaims, held.Spec.PermissionClaims)
		return sameExport(want, held) && (!as || !held.DeletionTimestamp.IsZero())
	})
}

// Keep puts right the bindings of a logical cluster: where one is gone it is made anew,
// and where its claims are not accepted they are. Those that an older hub made lack
// what was not claimed then. watched is the condition that says how that went the last
// time, nil for what is new; forced has kcp asked whatever memory has. waiting says
// what is not there yet, empty for nothing; after is when to look again.
//
// What memory lacks kcp is asked for before anything is written: without a claim on
// them memory lacks bindings that there are.
func (b Bindings) Keep(ctx context.Context, cluster string, watched *metav1.Condition, forced bool) (waiting string, after time.Duration, err error) {
	if len(b.Wanted) == 0 {
		return "", 0, nil
	}
	switch whole := b.whole(cluster); {
	case forced:
	case watched == nil && !whole:
		// kcp made them before it said that the workspace is ready, and to ask it would
		// take time.
		return "", unseen, nil
	case whole && (watched == nil || watched.Status == metav1.ConditionTrue):
		return "", 0, nil
	}
	if waiting, err = b.repair(ctx, cluster); err != nil || waiting != "" {
		after = following
	}
	return waiting, after, err
}

// Seen tells whether memory shows all that the bindings claim in a logical cluster: kcp
// shows it a moment after a claim was accepted. Where a tenant's object keeps kcp from
// that, it shows all others and says so; it says no more as long as the object is there,
// and the tenant must not keep the logical cluster from being ready with it.
func (b Bindings) Seen(cluster string) bool {
	held := b.Held(cluster)
	return b.whole(cluster) && !slices.ContainsFunc(b.Wanted, func(want *kcpapisv1alpha2.APIBinding) bool {
		return !slices.ContainsFunc(held, func(h *kcpapisv1alpha2.APIBinding) bool {
			return sameExport(want, h) && (conditions.IsFalse(h, kcpapisv1alpha2.PermissionClaimsApplied) ||
				!slices.ContainsFunc(want.Spec.PermissionClaims, func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool { return !applied(h, c) }))
		})
	})
}

// whole tells whether memory has every binding, and all as they should be: of two of an
// export only one counts for kcp, and memory does not have which.
func (b Bindings) whole(cluster string) bool {
	held := b.Held(cluster)
	return !slices.ContainsFunc(held, func(h *kcpapisv1alpha2.APIBinding) bool { return !b.Right(h) }) &&
		!slices.ContainsFunc(b.Wanted, func(want *kcpapisv1alpha2.APIBinding) bool {
			return !slices.ContainsFunc(held, func(h *kcpapisv1alpha2.APIBinding) bool { return sameExport(want, h) })
		})
}

// repair writes what is not as it should be and says what is not there yet.
func (b Bindings) repair(ctx context.Context, cluster string) (waiting string, err error) {
	held, err := b.List(ctx, cluster)
	if err != nil {
		return "", err
	}
	for _, want := range b.Wanted {
		write, lacks := compare(want, held)
		if lacks != "" && waiting == "" {
			waiting = lacks
		}
		if write != nil {
			if err := b.Write(ctx, cluster, write); err != nil {
				return waiting, err
			}
		}
	}
	return waiting, nil
}

// compare is what a binding lacks among those that there are: what to write, nil for
// nothing, and what people are told until it is there, empty when it is.
func compare(want *kcpapisv1alpha2.APIBinding, held []kcpapisv1alpha2.APIBinding) (write *kcpapisv1alpha2.APIBinding, waiting string) {
	export, taken := want.Spec.Reference.Export.Name, false
	for i := range held {
		b := &held[i]
		if !sameExport(want, b) {
			taken = taken || b.Name == want.Name
			continue
		}
		if !b.DeletionTimestamp.IsZero() {
			waiting = "somebody deleted the binding of " + export + " by hand; what kcp removes with it is lost, and the binding is made anew after that"
			// What somebody else waits for must not keep it.
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
		case as && write == nil:
			waiting = "kcp is binding " + export
		case !as:
			waiting = "the binding of " + export + " does not accept all claims; it is put right"
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
		// Whoever has the name must not keep the hub out with it.
		write.Name, write.GenerateName = "", want.Name+"-"
	}
	return write, "the binding of " + export + " is gone; it is made anew"
}

// sameExport goes by the export, because kcp makes up a binding's name, and because
// there must never be two bindings of one export.
func sameExport(want, b *kcpapisv1alpha2.APIBinding) bool {
	ref, wanted := b.Spec.Reference.Export, want.Spec.Reference.Export
	return ref != nil && ref.Name == wanted.Name &&
		(ref.Path == wanted.Path || b.Status.APIExportClusterName != "" && b.Status.APIExportClusterName == want.Status.APIExportClusterName)
}

// accepted are the claims of a binding with those that are wanted accepted, and
// whether they are so already. kcp lets nobody change the selector of a claim: one
// that has another is taken out, to be added by the next pass.
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

// takenBack tells whether kcp has carried out that claims are not accepted. It notes
// that after it has hidden what was claimed: what is accepted before the note is no
// change to it, and stays hidden.
func takenBack(want []kcpapisv1alpha2.AcceptablePermissionClaim, b *kcpapisv1alpha2.APIBinding) bool {
	return !slices.ContainsFunc(want, func(w kcpapisv1alpha2.AcceptablePermissionClaim) bool {
		return !slices.ContainsFunc(b.Spec.PermissionClaims, func(c kcpapisv1alpha2.AcceptablePermissionClaim) bool {
			return c.EqualGRI(w.PermissionClaim) && c.State == kcpapisv1alpha2.ClaimAccepted
		}) && applied(b, w)
	})
}

func applied(b *kcpapisv1alpha2.APIBinding, claim kcpapisv1alpha2.AcceptablePermissionClaim) bool {
	return slices.ContainsFunc(b.Status.AppliedPermissionClaims, func(c kcpapisv1alpha2.ScopedPermissionClaim) bool {
		return c.EqualGRI(claim.PermissionClaim)
	})
}
