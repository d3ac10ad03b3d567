package organization

import (
	"context"
	"slices"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

const (
	// following is how soon kcp is looked at again while it follows a repair.
	following = 500 * time.Millisecond
	// unseen is how long the bindings of a new Org may be behind what kcp made.
	unseen = 5 * time.Second
)

// Bindings are those of the Orgs' own workspaces. Without any Wanted none are kept.
type Bindings struct {
	// Wanted are the bindings of every Org's own workspace, with the claims that they
	// accept. Their names are those of bindings that are made anew.
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

// binding puts right the bindings of an Org's own workspace, which kcp makes with it:
// where one is gone it is made anew, and where its claims are not accepted they are.
// Those of Orgs that an older hub made lack what was not claimed then.
//
// kcp removes the objects of an API together with its binding. They do not come back:
// of the Memberships there is then the first admin's again and no other, and the
// Workspaces, with what was in them, are lost.
//
// What memory lacks kcp is asked for before anything is written: without the claim on
// them memory lacks bindings that there are.
type binding struct {
	Bindings

	place place
}

func (*binding) Condition() string { return v1alpha1.ConditionWatched }

func (s *binding) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Outcome, error) {
	cluster, ok := s.place(org.Name)
	if !ok || len(s.Wanted) == 0 {
		return controller.Outcome{}, nil
	}
	watched := meta.FindStatusCondition(org.Status.Conditions, v1alpha1.ConditionWatched)
	switch whole := s.whole(cluster); {
	case controller.Forced(ctx):
	case watched == nil && !whole:
		// kcp made them before the Org got here, and to ask it would take time.
		return controller.Outcome{After: unseen}, nil
	case whole && (watched == nil || watched.Status == metav1.ConditionTrue):
		return controller.Outcome{}, nil
	}
	waiting, err := s.repair(ctx, cluster)
	if err != nil || waiting != "" {
		return controller.Outcome{Waiting: waiting, After: following, Stop: true}, err
	}
	return controller.Outcome{}, nil
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
	export := want.Spec.Reference.Export.Name
	for i := range held {
		b := &held[i]
		if !sameExport(want, b) {
			if b.Name == want.Name && waiting == "" {
				waiting = "another binding has the name of that of " + export
			}
			continue
		}
		if !b.DeletionTimestamp.IsZero() {
			waiting = "somebody deleted the binding of " + export + " by hand; what kcp removes with it is lost, and the binding is made anew after that"
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
	if waiting == "" {
		return want.DeepCopy(), "the binding of " + export + " is gone; it is made anew"
	}
	return write, waiting
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
		}) && slices.ContainsFunc(b.Status.AppliedPermissionClaims, func(c kcpapisv1alpha2.ScopedPermissionClaim) bool {
			return c.EqualGRI(w.PermissionClaim)
		})
	})
}
