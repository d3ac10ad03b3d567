package usage

import "time"

// BillingQuery selects what bills for Workspaces depend on. Empty fields select all.
type BillingQuery struct {
	// Org, Workspace and CostCenter limit the result to one.
	Org, Workspace, CostCenter string
	// From and To limit it to what was so at any time from the one on and before the other.
	From, To time.Time
	// Limit is the maximum number of items, and After where the last page ended. It is nil for the first page.
	Limit int
	After *BillingPosition
}

// Billed is a Workspace during a time in which a bill for it depended on the same. Labels are a JSON object.
type Billed struct {
	ID                                                             string
	Org, OrgName, Workspace, Name, Path, CostCenter, Labels, Phase string
	// From and To are that time. To is zero if it goes on.
	From, To time.Time
}

// BillingPosition is the place of an item in the order of all.
type BillingPosition struct {
	From time.Time
	ID   string
}
