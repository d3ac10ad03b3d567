package server

import (
	"fmt"

	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
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
