package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CatalogEntryRequest makes a catalog entry, or replaces what one says.
type CatalogEntryRequest struct {
	Slug        string           `json:"slug"`
	DisplayName string           `json:"displayName"`
	Description string           `json:"description,omitempty"`
	Version     string           `json:"version,omitempty"`
	APIExport   CatalogExportRef `json:"apiExport"`
	Backend     *CatalogBackend  `json:"backend,omitempty"`
	UI          *CatalogUI       `json:"ui,omitempty"`
	// MemberResources are the resources that members may write: "widgets", or
	// "widgets.example.org". Without them it is all.
	MemberResources []string `json:"memberResources,omitempty"`
}

// CatalogExportRef names an APIExport of kcp.
type CatalogExportRef struct {
	Path string `json:"path"`
	Name string `json:"name"`
}

// CatalogBackend is where the provider's server listens.
type CatalogBackend struct {
	URL string `json:"url"`
}

// CatalogUI is how an entry is shown.
type CatalogUI struct {
	IconURL string `json:"iconURL,omitempty"`
}

// GroupResource names a resource of an API. The group is empty for the core group.
type GroupResource struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
}

// String is the form in which commands take it.
func (g GroupResource) String() string {
	if g.Group == "" {
		return g.Resource
	}
	return g.Group + "/" + g.Resource
}

// ProviderClaim is a permission that a provider asks for.
type ProviderClaim struct {
	GroupResource
	Verbs     []string `json:"verbs"`
	Dangerous bool     `json:"dangerous"`
	// State is Accepted, Rejected or Pending in a workspace where the provider is enabled.
	State string `json:"state,omitempty"`
}

// Loss is how many objects of a kind are deleted if a provider is disabled.
type Loss struct {
	GroupResource
	// Count is nil if the provider lets the hub not count.
	Count *int64 `json:"count,omitempty"`
}

// Entry is what catalog entries and providers have in common.
type Entry struct {
	Answer      `json:"-"`
	UUID        string `json:"uuid"`
	Slug        string `json:"slug"`
	DisplayName string `json:"displayName"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version,omitempty"`
	// Scope is Global, Org or Personal; Deleted for a provider of which the entry is gone.
	Scope string `json:"scope"`
	// Org is the UUID of the organization; empty for a global entry.
	Org             string           `json:"org,omitempty"`
	APIExport       CatalogExportRef `json:"apiExport"`
	Backend         *CatalogBackend  `json:"backend,omitempty"`
	UI              *CatalogUI       `json:"ui,omitempty"`
	MemberResources []string         `json:"memberResources,omitempty"`
	CreatedAt       metav1.Time      `json:"createdAt"`
	CreatedBy       string           `json:"createdBy,omitempty"`
	Claims          []ProviderClaim  `json:"claims"`
	Resources       []GroupResource  `json:"resources"`
	Phase           string           `json:"phase"`
	Conditions      []Condition      `json:"conditions"`
}

// CatalogEntry is an entry of the catalog.
type CatalogEntry struct {
	Entry
	// OrgDisplayName is the name of the organization, for platform admins.
	OrgDisplayName string `json:"orgDisplayName,omitempty"`
	// Workspaces is the number of workspaces of the organization that enabled the API or, for a global
	// entry, of all.
	Workspaces int `json:"workspaces"`
}

// The states of a provider in a workspace.
const (
	StateDisabled      = "Disabled"
	StateEnabling      = "Enabling"
	StateEnabled       = "Enabled"
	StateClaimsPending = "ClaimsPending"
	StateFailing       = "Failing"
)

// Provider is an entry as one workspace sees it.
type Provider struct {
	Entry
	// State is empty without a workspace.
	State   string `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
	// WouldLose is what disabling it deletes. It is nil in the answers that do not count.
	WouldLose []Loss `json:"wouldLose,omitzero"`
	DryRun    bool   `json:"dryRun,omitempty"`
}

// Removed reports whether nothing of the provider is left in the workspace. While kcp removes its
// objects it is disabled, with a message.
func (p *Provider) Removed() bool { return p.State == StateDisabled && p.Message == "" }

// EnableProviderRequest answers the claims of a provider, each of them.
type EnableProviderRequest struct {
	AcceptClaims []GroupResource `json:"acceptClaims"`
	RejectClaims []GroupResource `json:"rejectClaims"`
}
