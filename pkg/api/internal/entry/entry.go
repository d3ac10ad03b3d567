package entry

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/conditions"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// View is a CatalogEntry in an answer.
type View struct {
	UUID        string                `json:"uuid"`
	Slug        string                `json:"slug"`
	DisplayName string                `json:"displayName"`
	Description string                `json:"description,omitempty"`
	Version     string                `json:"version,omitempty"`
	Scope       v1alpha1.CatalogScope `json:"scope"`
	// Org is the UUID of the Organization; empty for a Global entry.
	Org             string                   `json:"org,omitempty"`
	APIExport       v1alpha1.APIExportRef    `json:"apiExport"`
	Backend         *v1alpha1.CatalogBackend `json:"backend,omitempty"`
	UI              *v1alpha1.CatalogUI      `json:"ui,omitempty"`
	MemberResources []string                 `json:"memberResources,omitempty"`
	CreatedAt       metav1.Time              `json:"createdAt"`
	CreatedBy       string                   `json:"createdBy,omitempty"`
	Claims          []Claim                  `json:"claims"`
	Resources       []Resource               `json:"resources"`
	Phase           v1alpha1.Phase           `json:"phase"`
	Conditions      []conditions.Condition   `json:"conditions"`
}

// Claim is a permission claim of the export.
type Claim struct {
	Resource
	Verbs     []string `json:"verbs"`
	Dangerous bool     `json:"dangerous"`
	// State is the answer to the claim in a Workspace; empty if there is no Workspace, or the
	// entry is disabled there.
	State tenancy.ClaimState `json:"state,omitempty"`
}

// Resource is a resource of the API. Group is empty for the core group.
type Resource struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
}

// Of returns the view of an entry of an Organization, or of a Global one if org is nil.
func Of(e *v1alpha1.CatalogEntry, org *tenancy.Org) View {
	v := View{
		UUID: e.Name, Slug: e.Spec.Slug, DisplayName: e.Spec.DisplayName, Description: e.Spec.Description, Version: e.Spec.Version,
		Scope: v1alpha1.CatalogGlobal, APIExport: e.Spec.APIExport, Backend: e.Spec.Backend, UI: e.Spec.UI, MemberResources: e.Spec.MemberResources,
		CreatedAt: e.CreationTimestamp, CreatedBy: e.Annotations[v1alpha1.CreatedByAnnotation],
		Claims: []Claim{}, Resources: []Resource{},
		Phase: tenancy.PhaseOf(e.Status.CommonStatus), Conditions: conditions.Of(e.Status.Conditions),
	}
	if org != nil {
		v.Scope, v.Org = tenancy.CatalogScopeOf(*org), org.UUID()
	}
	if export := e.Status.Export; export != nil {
		v.describe(*export)
	}
	return v
}

func (v *View) describe(export v1alpha1.CatalogExport) {
	for _, c := range export.Claims {
		verbs := c.Verbs
		if verbs == nil {
			verbs = []string{}
		}
		v.Claims = append(v.Claims, Claim{Resource: Resource{c.Group, c.Resource}, Verbs: verbs, Dangerous: c.Dangerous})
	}
	for _, r := range export.Resources {
		v.Resources = append(v.Resources, Resource(r))
	}
}
