package restore

import (
	"context"
	"slices"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// provider takes a provider from a Workspace, or claims that it has there, with the hub's credential: the rights of the
// person who did it are of no account, because the lost hub has let them.
func (a *Applier) provider(ctx context.Context, s Step) error {
	org, err := a.orgOf(ctx, s)
	if err != nil {
		return err
	}
	ws, ok := a.Views.Workspace(s.Org, s.Workspace)
	switch {
	case !ok || ws.ClusterID == "":
		return notThere("the workspace")
	case !org.DeletionTimestamp.IsZero() || ws.Terminating:
		return impossible{"the workspace is being removed for good"}
	}
	return a.activated(ctx, ws.ClusterID, func() bool {
		org, known := a.Views.Org(s.Org)
		ws, ok := a.Views.Workspace(s.Org, s.Workspace)
		return known && ok && (org.Deleted() || ws.Deleted())
	}, func() error { return a.providerIn(ctx, ws.ClusterID, s) })
}

func (a *Applier) providerIn(ctx context.Context, cluster string, s Step) error {
	bindings, _, err := a.Store.WorkspaceAPIs(ctx, cluster)
	if err != nil {
		return err
	}
	held := a.bindingOf(s, bindings)
	switch {
	case held == nil || a.Kept(held):
		return notThere("the provider in the workspace")
	case !held.DeletionTimestamp.IsZero():
		return nil
	case s.Kind == DisableProvider:
		return a.write(s, func() error { return a.Store.RestoreBinding(ctx, cluster, held, nil) })
	}
	want := held.DeepCopy()
	for i := range want.Spec.PermissionClaims {
		if c := &want.Spec.PermissionClaims[i]; slices.Contains(s.Facts.RejectedClaims, tenancy.ResourceName(c.Group, c.Resource)) {
			c.State = kcpapisv1alpha2.ClaimRejected
		}
	}
	if slices.EqualFunc(want.Spec.PermissionClaims, held.Spec.PermissionClaims,
		func(a, b kcpapisv1alpha2.AcceptablePermissionClaim) bool { return a.State == b.State }) {
		return nil
	}
	return a.write(s, func() error {
		err := a.Store.RestoreBinding(ctx, cluster, held, want)
		if errs.Is(err, errs.Conflict) {
			return errNotYet
		}
		return err
	})
}

// bindingOf returns the binding of the entry of a Step, or nil.
func (a *Applier) bindingOf(s Step, bindings []*kcpapisv1alpha2.APIBinding) *kcpapisv1alpha2.APIBinding {
	for _, org := range []string{"", s.Org} {
		e, ok := a.Views.CatalogEntryIn(org, s.Object)
		if !ok {
			continue
		}
		if b := tenancy.BindingOf(bindings, e); b != nil {
			return b
		}
	}
	return tenancy.BindingNaming(bindings, s.Object)
}
