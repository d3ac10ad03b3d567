package tenancy

// ObjectWrite is a write to an API of a Workspace, as the URL of the request names it.
// Its fields are those of apiserver's RequestInfo.
type ObjectWrite struct {
	// Verb is create, update, patch, delete or deletecollection.
	Verb     string
	Group    string
	Resource string
	// Namespace is empty for a cluster-scoped object, and for a write in all namespaces.
	Namespace string
	// Name is empty for create and deletecollection.
	Name string
}

// DefinesResources reports whether the write is to CustomResourceDefinitions.
func (w ObjectWrite) DefinesResources() bool {
	return w.Group == groupExtensions && w.Resource == "customresourcedefinitions"
}
