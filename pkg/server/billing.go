package server

import (
	"context"
	"encoding/json"
	"fmt"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/records"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// billingRules are the rules of cost centers; centers are those that may be written, nil allows all.
func billingRules(c Config, centers *api.CostCenters) tenancy.BillingRules {
	rules := tenancy.BillingRules{Required: c.Billing.RequireCostCenter, Default: c.Billing.DefaultCostCenter}
	if centers != nil {
		rules.Listed = centers.Has
	}
	return rules
}

// loadCostCenters reads the cost centers that may be written.
func (a *assembly) loadCostCenters() error {
	listed, err := a.hub.config.Billing.ReadCostCenters()
	if err != nil {
		return fmt.Errorf("--cost-centers-file: %w", err)
	}
	a.costCenters.Replace(listed)
	return nil
}

// billing returns what records, on the leader, what bills depend on, and what pushes it to another table. It is empty
// without a database.
func (a *assembly) billing() ([]func(context.Context), error) {
	if a.hub.records == nil {
		return nil, nil
	}
	v := a.views
	present := billedWorkspaces{v, a.hub.config.Tree}
	b, err := records.NewBilling(a.hub.records, present, a.hub.config.Clock, a.hub.roomForRecords, a.hub.registry)
	if err != nil {
		return nil, err
	}
	a.hub.checks.AddDetail("billing", b.Err)
	v.ChildWorkspaces.OnChange(func(ws views.Change[*kcptenancyv1alpha1.Workspace]) {
		org, _ := v.OrgByCluster(ws.Cluster())
		place := records.Place{Workspace: ws.Object().Name}
		if org.Organization != nil {
			place.Org = org.UUID()
		}
		b.Changed(place)
	})
	billed := func(o *v1alpha1.Organization) any {
		return []any{o.Spec.DisplayName, o.Spec.WorkspaceBilling, o.Status.DeletionRequestedAt}
	}
	v.Organizations.Follow(billed, func(o views.Change[*v1alpha1.Organization]) { b.Changed(present.in(o.Object().Name)...) })
	if a.hub.billingTarget == nil {
		return []func(context.Context){b.Run}, nil
	}
	c := a.hub.config
	p, err := records.NewPusher(a.hub.records, a.hub.billingTarget, b, c.Records.UsageInterval, c.Clock, a.hub.registry)
	if err != nil {
		return nil, err
	}
	a.hub.checks.AddDetail("billing table", p.Err)
	return []func(context.Context){b.Run, p.Run}, nil
}

// billedWorkspaces are the Workspaces in the caches.
type billedWorkspaces struct {
	views *views.Views
	tree  tenancy.Tree
}

// The phases of a Workspace on a bill: a deleted one is billed until it is purged.
const (
	billedActive  = "Active"
	billedDeleted = "Deleted"
)

// Billed implements records.Present.
func (b billedWorkspaces) Billed(p records.Place) (records.BilledWorkspace, bool) {
	org, ok := b.views.Org(p.Org)
	ws, there := b.views.Workspace(p.Org, p.Workspace)
	if !ok || !there {
		return records.BilledWorkspace{}, false
	}
	billing := tenancy.BillingOf(org.Organization, ws)
	w := records.BilledWorkspace{
		Workspace: ws.UUID, Name: ws.DisplayName, Org: org.UUID(), OrgName: org.Spec.DisplayName,
		Path: b.tree.Workspace(org.UUID(), ws.UUID), CostCenter: billing.CostCenter, Labels: "{}", Phase: billedActive,
	}
	if len(billing.Labels) > 0 {
		// Texts can always be encoded. The keys are in order.
		raw, _ := json.Marshal(billing.Labels)
		w.Labels = string(raw)
	}
	if org.Deleted() || ws.Deleted() {
		w.Phase = billedDeleted
	}
	return w, true
}

// Places implements records.Present.
func (b billedWorkspaces) Places() (places []records.Place) {
	for _, org := range b.views.Orgs() {
		places = append(places, b.in(org.UUID())...)
	}
	return places
}

func (b billedWorkspaces) in(org string) (places []records.Place) {
	for _, ws := range b.views.Workspaces(org) {
		places = append(places, records.Place{Org: org, Workspace: ws.UUID})
	}
	return places
}
