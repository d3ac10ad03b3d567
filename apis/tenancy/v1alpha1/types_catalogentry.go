package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CatalogScope says from where a CatalogEntry can be seen.
//
// +kubebuilder:validation:Enum=Global;Org;Personal
type CatalogScope string

// CatalogEntry offers a provider's APIExport. Global entries live in the
// providers workspace, an Org's own in the Org workspace.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Display name",type=string,JSONPath=`.spec.displayName`
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.status.scope`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CatalogEntry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CatalogEntrySpec `json:"spec"`
	// +optional
	Status CatalogEntryStatus `json:"status,omitempty"`
}

// CatalogEntrySpec describes what is offered.
type CatalogEntrySpec struct {
	// displayName is the name in the catalog.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DisplayName string `json:"displayName"`
	// slug is the short name that scripts use.
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9-]{0,62}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="slug is immutable"
	Slug string `json:"slug"`
	// description tells what it is for.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
	// apiExport is what enabling the entry binds.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="apiExport is immutable"
	APIExport APIExportRef `json:"apiExport"`
	// backend is where the provider's own server is.
	// +optional
	Backend *CatalogBackend `json:"backend,omitempty"`
	// ui is how the entry is shown.
	// +optional
	UI *CatalogUI `json:"ui,omitempty"`
	// version is the provider's own version.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
}

// APIExportRef names an APIExport by the path of its workspace and its name.
type APIExportRef struct {
	// path is the workspace's absolute path.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`
	// name is the APIExport's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// CatalogBackend is a provider's server.
type CatalogBackend struct {
	// url is an https URL.
	// +kubebuilder:validation:Pattern=`^https://`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
}

// CatalogUI is how an entry is shown.
type CatalogUI struct {
	// iconURL is an https URL of an image.
	// +optional
	// +kubebuilder:validation:Pattern=`^https://`
	// +kubebuilder:validation:MaxLength=2048
	IconURL string `json:"iconURL,omitempty"`
}

// CatalogEntryStatus is derived from where the entry lives.
type CatalogEntryStatus struct {
	CommonStatus `json:",inline"`
	// scope is Global, Org or Personal.
	// +optional
	Scope CatalogScope `json:"scope,omitempty"`
}

// CatalogEntryList is a list of CatalogEntries.
//
// +kubebuilder:object:root=true
type CatalogEntryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CatalogEntry `json:"items"`
}
