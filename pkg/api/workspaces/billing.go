package workspaces

import (
	"context"
	"fmt"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// claims returns the claims of an Organization with c added, which gets the billing that the Organization
// has in the version that is written. They are nil if c or its Workspace exists.
func (h *Handler) claims(o *v1alpha1.Organization, c v1alpha1.Claim, edit tenancy.BillingEdit) ([]v1alpha1.Claim, error) {
	claims, err := tenancy.ClaimWorkspace(o, h.existing(o.Name), h.DefaultWorkspaceQuota, c)
	if err != nil || claims == nil {
		return nil, err
	}
	inherited := tenancy.InheritedBilling(o)
	billing := tenancy.EditBilling(inherited, edit)
	if c.Request.Billing = nil; !tenancy.Unbilled(billing) {
		c.Request.Billing = &billing
	}
	return claims, h.Billing.CheckNew(o.Spec.Personal, &inherited.Billing, &billing.Billing)
}

// bill changes the billing of a Workspace in its annotations.
func (h *Handler) bill(org tenancy.Org, ws tenancy.Workspace, annotations map[string]string, edit tenancy.BillingEdit) error {
	if edit == nil {
		return nil
	}
	before := tenancy.BillingOf(org.Organization, ws)
	after := tenancy.EditBilling(before, edit)
	tenancy.SetWorkspaceBilling(annotations, after)
	return h.Billing.Check(org.Spec.Personal, &before.Billing, &after.Billing)
}

// version identifies what the ETag of a Workspace covers: kcp's object and, where the billing that the
// Organization gave all its Workspaces counts, that.
func version(org tenancy.Org, ws tenancy.Workspace) string {
	if b := tenancy.BillingOf(org.Organization, ws); b.Revision > ws.Billing.Revision && ws.ResourceVersion != "" {
		return fmt.Sprintf("%s.%d", ws.ResourceVersion, b.Revision)
	}
	return ws.ResourceVersion
}

// change changes the annotations of the Workspace of a scope. match compares what version returns.
func (h *Handler) change(ctx context.Context, scope *tenancy.Scope, match api.Match,
	edit func(tenancy.Workspace, map[string]string) error,
) (tenancy.Workspace, error) {
	held := *scope.Workspace
	matching := match
	if match != nil {
		matching = func(resourceVersion string) error {
			held.ResourceVersion = resourceVersion
			return match(version(scope.Org, held))
		}
	}
	return h.Store.ChangeWorkspace(ctx, scope.Org.ClusterID, held, matching, func(ws tenancy.Workspace, annotations map[string]string) error {
		held = ws
		return edit(ws, annotations)
	})
}
