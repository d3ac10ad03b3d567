package organization

import (
	"context"
	"slices"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
)

const (
	// following is how soon kcp is looked at again while it follows a repair.
	following = 500 * time.Millisecond
	// unseen is how long a Workspace that was made may be out of sight.
	unseen = 5 * time.Second
)

// binding puts right the bindings of an Org's own workspace, which kcp makes with it:
// where one is gone it is made anew, and where its claims are not accepted they are.
// kcp removes the objects of an API together with its binding. They do not come back:
// of the Memberships there is then the first admin's again and no other, and the
// Workspaces, with what was in them, are lost.
//
// kcp is asked only when something hints at damage. What it makes itself is there
// before an Org gets here for the first time.
type binding struct {
	place       place
	existing    func(org string) []string
	memberships func(cluster string) []*v1alpha1.Membership
	// bindings is nil where none are kept.
	bindings *Bindings
}

func (*binding) Condition() string { return v1alpha1.ConditionWatched }

func (s *binding) Reconcile(ctx context.Context, org *v1alpha1.Organization) (controller.Outcome, error) {
	cluster, ok := s.place(org.Name)
	if !ok || s.bindings == nil {
		return controller.Outcome{}, nil
	}
	after, suspected := s.bindings.suspected(org.Name, s.outOfSight(org))
	if !suspected && !controller.Forced(ctx) && !s.broken(org, cluster) {
		return controller.Outcome{After: after}, nil
	}
	waiting, err := s.bindings.repair(ctx, cluster)
	if err != nil || waiting != "" {
		// Where the condition cannot be written, the next pass looks again all the same.
		s.bindings.Suspect(org.Name)
		return controller.Outcome{Waiting: waiting, After: following, Stop: true}, err
	}
	return controller.Outcome{}, nil
}

// outOfSight tells whether memory lacks a Workspace that was made: a moment after that
// it may, and for good where a claim was taken from the hub.
func (s *binding) outOfSight(org *v1alpha1.Organization) bool {
	if !slices.ContainsFunc(org.Spec.WorkspaceClaims, func(c v1alpha1.Claim) bool { return c.Request == nil }) {
		return false
	}
	seen := s.existing(org.Name)
	return slices.ContainsFunc(org.Spec.WorkspaceClaims, func(c v1alpha1.Claim) bool {
		return c.Request == nil && !slices.Contains(seen, c.UUID)
	})
}

// broken tells whether the Org itself is in a state that a missing binding brings
// about: one that was Ready has somebody in it.
func (s *binding) broken(org *v1alpha1.Organization, cluster string) bool {
	conditions := org.Status.Conditions
	for _, failing := range []string{v1alpha1.ConditionFirstAdmin, v1alpha1.ConditionClaimsHandled, v1alpha1.ConditionMembersChanged} {
		if c := meta.FindStatusCondition(conditions, failing); c != nil && c.Reason == v1alpha1.ReasonFailed {
			return true
		}
	}
	return meta.IsStatusConditionFalse(conditions, v1alpha1.ConditionWatched) ||
		meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady) &&
			!slices.ContainsFunc(s.memberships(cluster), func(m *v1alpha1.Membership) bool { return m.Spec.Scope == v1alpha1.ScopeOrg })
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
			write = b.DeepCopy()
			write.Spec.PermissionClaims = claims
			waiting = "somebody changed the binding of " + export + " by hand; it is put right"
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
			return c.Group == w.Group && c.Resource == w.Resource && c.IdentityHash == w.IdentityHash
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
