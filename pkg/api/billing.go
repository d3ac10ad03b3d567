package api

import "sync/atomic"

// CostCenters are those that may be written. The list can be replaced while requests are served.
type CostCenters struct {
	listed atomic.Pointer[map[string]bool]
}

// Replace replaces the list. nil allows all.
func (c *CostCenters) Replace(listed map[string]bool) { c.listed.Store(&listed) }

// Has reports whether a cost center may be written.
func (c *CostCenters) Has(costCenter string) bool {
	listed := c.listed.Load()
	return listed == nil || *listed == nil || (*listed)[costCenter]
}
