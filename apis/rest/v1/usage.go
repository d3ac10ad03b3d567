package v1

import "time"

// UsageItem is what was used between two times. What is stored is the most that was measured between them.
type UsageItem struct {
	Answer   `json:"-"`
	From     time.Time     `json:"from"`
	To       time.Time     `json:"to"`
	Objects  int64         `json:"objects"`
	Bytes    int64         `json:"bytes"`
	Requests UsageRequests `json:"requests"`
	// BytesOut are those of the answers of kcp.
	BytesOut int64 `json:"bytesOut"`
	// People and Bots are the distinct callers.
	People int64 `json:"people"`
	Bots   int64 `json:"bots"`
	// StreamSeconds is the time for which streams were open, added up.
	StreamSeconds int64 `json:"streamSeconds"`
	// Size is for an organization.
	Size *OrgSize `json:"size,omitempty"`
}

// UsageRequests are the numbers of proxied requests by the class of their verb.
type UsageRequests struct {
	Read  int64 `json:"read"`
	Write int64 `json:"write"`
	Watch int64 `json:"watch"`
}

// OrgSize is the most that an organization had.
type OrgSize struct {
	Members    int64 `json:"members"`
	Workspaces int64 `json:"workspaces"`
	// Entries are those of its catalog.
	Entries int64 `json:"entries"`
}

// BilledWorkspace is a workspace during a time in which a bill for it depended on the same.
type BilledWorkspace struct {
	Answer               `json:"-"`
	Org                  string            `json:"org"`
	OrgDisplayName       string            `json:"orgDisplayName"`
	Workspace            string            `json:"workspace"`
	WorkspaceDisplayName string            `json:"workspaceDisplayName"`
	WorkspacePath        string            `json:"workspacePath"`
	CostCenter           string            `json:"costCenter"`
	Labels               map[string]string `json:"labels,omitempty"`
	Phase                string            `json:"phase"`
	From                 time.Time         `json:"from"`
	// To is nil if it is so now.
	To *time.Time `json:"to,omitempty"`
}

// AdminUsageItem is the usage of an organization, or of one of its workspaces if there is one.
type AdminUsageItem struct {
	UsageItem
	Org string `json:"org"`
	// OrgDisplayName is empty for an organization that is purged.
	OrgDisplayName string `json:"orgDisplayName"`
	Workspace      string `json:"workspace,omitempty"`
}

// AdminUsageList is the usage of all organizations, each with one item, or of one, as UsageList.
type AdminUsageList struct {
	List[AdminUsageItem]
	Replicas []AuditReplica `json:"replicas"`
}

// UsageList has an item for each hour or day with usage, the oldest first, on one page. Replicas are those of the hub that
// were heard of in the last days, the one that is most behind first.
type UsageList struct {
	List[UsageItem]
	Replicas []AuditReplica `json:"replicas"`
}
