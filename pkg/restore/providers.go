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
func (p *pass) provider(ctx context.Context, s Step) error {
	org, err := p.orgOf(ctx, s)
	if err != nil {
		return err
	}
	ws, ok := p.Views.Workspace(s.Org, s.Workspace)
	switch {
	case !ok || ws.ClusterID == "":
		return notThere("the workspace")
	case !org.DeletionTimestamp.IsZero() || ws.Terminating:
		return impossible{reason: "the workspace is being removed for good"}
	}
	return p.activated(ctx, ws.ClusterID, p.workspaceDeactivated(s), func() error { return p.providerIn(ctx, ws.ClusterID, s) })
}

func (p *pass) providerIn(ctx context.Context, cluster string, s Step) error {
	bindings, err := p.bindingsIn(ctx, cluster)
	if err != nil {
		return err
	}
	held := p.bindingOf(s, bindings)
	switch {
	case held == nil || p.Kept(held):
		return notThere("the provider in the workspace")
	case !held.DeletionTimestamp.IsZero():
		return nil
	case s.Kind == DisableProvider:
		return p.write(s, func() error { return p.restoreBinding(ctx, cluster, held, nil) })
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
	return p.write(s, func() error {
		err := p.restoreBinding(ctx, cluster, held, want)
		if errs.Is(err, errs.Conflict) {
			return errNotYet
		}
		return err
	})
}

// bindingsIn reads the APIBindings of a Workspace, again after one of them was written.
func (p *pass) bindingsIn(ctx context.Context, cluster string) ([]*kcpapisv1alpha2.APIBinding, error) {
	if all, ok := p.bindings[cluster]; ok {
		return all, nil
	}
	all, _, err := p.Store.WorkspaceAPIs(ctx, cluster)
	if err == nil {
		p.bindings[cluster] = all
	}
	return all, err
}

func (p *pass) restoreBinding(ctx context.Context, cluster string, held, want *kcpapisv1alpha2.APIBinding) error {
	delete(p.bindings, cluster)
	return p.Store.RestoreBinding(ctx, cluster, held, want)
}

// bindingOf returns the binding of the entry of a Step, or nil.
func (p *pass) bindingOf(s Step, bindings []*kcpapisv1alpha2.APIBinding) *kcpapisv1alpha2.APIBinding {
	for _, org := range []string{"", s.Org} {
		e, ok := p.Views.CatalogEntryIn(org, s.Object)
		if !ok {
			continue
		}
		if b := tenancy.BindingOf(bindings, e); b != nil {
			return b
		}
	}
	return tenancy.BindingNaming(bindings, s.Object)
}
