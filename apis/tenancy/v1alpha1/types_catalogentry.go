package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CatalogScope tells who can see a CatalogEntry: Global for all people, Org for the
// members of one Organization, Personal for those of a personal Organization.
//
// +kubebuilder:validation:Enum=Global;Org;Personal
type CatalogScope string

// The scopes of CatalogEntries.
const (
	// CatalogGlobal is an entry for everybody.
	CatalogGlobal CatalogScope = "Global"
	// CatalogOrg is an entry for the members of one Organization.
	CatalogOrg CatalogScope = "Org"
	// CatalogPersonal is an entry for the members of a personal Organization.
	CatalogPersonal CatalogScope = "Personal"
)

// CatalogEntry publishes the APIExport of a provider to people, who can enable it in their
// Workspaces. Entries for everybody live in the providers workspace, those of an
// Organization in the workspace of the Organization. The name is a UUID.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')",message="the name of a CatalogEntry is a UUID in canonical lower case"
// +kubebuilder:printcolumn:name="Display name",type=string,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="Slug",type=string,JSONPath=`.spec.slug`
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.status.scope`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CatalogEntry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the entry offers.
	Spec CatalogEntrySpec `json:"spec"`
	// status is the observed state of the entry. Set by the hub.
	// +optional
	Status CatalogEntryStatus `json:"status,omitempty"`
}

// CatalogEntrySpec is the desired state of a CatalogEntry.
//
// +kubebuilder:validation:XValidation:rule="has(self.backend) == has(oldSelf.backend)",message="backend.url is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.publishedBy) == has(oldSelf.publishedBy)",message="publishedBy is immutable"
type CatalogEntrySpec struct {
	// displayName is the name shown in the catalog, 1 to 128 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DisplayName string `json:"displayName"`
	// slug is the short name for scripts: 1 to 63 lower-case letters, digits and hyphens.
	// Immutable.
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9-]{0,62}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="slug is immutable"
	Slug string `json:"slug"`
	// description tells people what the API is for, at most 4096 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
	// apiExport is the APIExport that is bound when the entry is enabled in a Workspace.
	// Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="apiExport is immutable"
	APIExport APIExportRef `json:"apiExport"`
	// backend is the server of the provider. Immutable.
	// +optional
	Backend *CatalogBackend `json:"backend,omitempty"`
	// ui is how the entry is displayed.
	// +optional
	UI *CatalogUI `json:"ui,omitempty"`
	// version is the version of the provider, in the provider's own format.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
	// memberResources are the resources of the API that members of a Workspace may write, each
	// as resource or resource.group. Without it members may write all of them. Only the
	// provider can write status and subresources.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	MemberResources []string `json:"memberResources,omitempty"`
	// publishedBy is by whose right the entry is offered. The export can be bound through the
	// entry while the publisher may bind it. An entry in an Organization needs it; one in the
	// providers workspace is the platform's without it. Immutable. Set by the hub.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="publishedBy is immutable"
	PublishedBy *CatalogPublisher `json:"publishedBy,omitempty"`
}

// CatalogPublisher is by whose right a CatalogEntry is offered: a person, or the platform.
//
// +kubebuilder:validation:XValidation:rule="has(self.user) != (has(self.platform) && self.platform)",message="publishedBy is either a user or the platform"
type CatalogPublisher struct {
	// user is the person who published the entry.
	// +optional
	User *CatalogPublisherUser `json:"user,omitempty"`
	// platform is true if a platform admin or GitOps published the entry. Nobody is then asked
	// whether they may bind the export.
	// +optional
	Platform bool `json:"platform,omitempty"`
}

// CatalogPublisherUser is a User by name and UID. A later User of the same name is another one.
type CatalogPublisherUser struct {
	// name is the metadata.name of the User.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid is the metadata.uid of the User.
	UID types.UID `json:"uid"`
}

// APIExportRef refers to an APIExport by the path of its workspace and its name.
type APIExportRef struct {
	// path is the absolute path of the workspace of the APIExport, such as
	// root:kedge:providers.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`
	// name is the metadata.name of the APIExport.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// CatalogBackend is the server of a provider.
type CatalogBackend struct {
	// url is the URL of the server. The scheme must be https.
	// +kubebuilder:validation:Pattern=`^https://`
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="backend.url is immutable"
	URL string `json:"url"`
}

// CatalogUI is how an entry is displayed.
type CatalogUI struct {
	// iconURL is a data: URL of a PNG, a WebP or an SVG of at most 16 KiB, in base64.
	// +optional
	// +kubebuilder:validation:Pattern=`^data:image/(png|webp|svg\+xml);base64,`
	// +kubebuilder:validation:MaxLength=21880
	IconURL string `json:"iconURL,omitempty"`
}

// CatalogEntryStatus is the observed state of a CatalogEntry.
type CatalogEntryStatus struct {
	CommonStatus `json:",inline"`
	// scope is Global, Org or Personal. It follows from the workspace that the entry lives
	// in. Set by the hub.
	// +optional
	Scope CatalogScope `json:"scope,omitempty"`
	// export is what kcp said of spec.apiExport when the hub last read it. Set by the hub.
	// +optional
	Export *CatalogExport `json:"export,omitempty"`
}

// CatalogExport is what the hub knows of an APIExport.
type CatalogExport struct {
	// clusterID is the ID of the logical cluster of the APIExport.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// identityHash is the identity of the APIExport. It changes if the APIExport is deleted
	// and another one is created under its name.
	// +optional
	IdentityHash string `json:"identityHash,omitempty"`
	// resources are the resources of the API.
	// +optional
	// +listType=atomic
	Resources []CatalogResource `json:"resources,omitempty"`
	// claims are the permission claims of the APIExport.
	// +optional
	// +listType=atomic
	Claims []CatalogClaim `json:"claims,omitempty"`
}

// CatalogResource is a resource of an API.
type CatalogResource struct {
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// resource is the plural name of the resource.
	Resource string `json:"resource"`
}

// CatalogClaim is a permission claim: objects of the Workspace that the provider asks for.
type CatalogClaim struct {
	// group is the API group; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// resource is the plural name of the resource.
	Resource string `json:"resource"`
	// identityHash is the identity of the APIExport of the resource; empty for resources that
	// kcp serves itself.
	// +optional
	IdentityHash string `json:"identityHash,omitempty"`
	// verbs are what the provider asks to do with the objects.
	// +optional
	// +listType=atomic
	Verbs []string `json:"verbs,omitempty"`
	// dangerous is true if the claim lets the provider take over the Workspace, or read its
	// secrets.
	// +optional
	Dangerous bool `json:"dangerous,omitempty"`
}

// CatalogEntryList is a list of CatalogEntries.
//
// +kubebuilder:object:root=true
type CatalogEntryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CatalogEntry `json:"items"`
}
