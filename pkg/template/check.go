package template

import (
	"errors"
	"fmt"
	"strings"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	groupRBAC       = "rbac.authorization.k8s.io"
	groupKCPAPIs    = "apis.kcp.io"
	groupKCPTenancy = "tenancy.kcp.io"
	groupKCPCore    = "core.kcp.io"

	// hubPrefix is the prefix of the names of the hub's own RBAC objects in a Workspace.
	hubPrefix = "kedge:"
)

// id identifies an object in a Workspace.
type id struct {
	schema.GroupKind
	namespace, name string
}

// idOf returns the id of an object. The default namespace and no namespace are the same,
// because a namespaced object without one is applied in the default namespace.
func idOf(o *unstructured.Unstructured) id {
	namespace := o.GetNamespace()
	if namespace == tenancy.DefaultNamespace {
		namespace = ""
	}
	return id{GroupKind: o.GroupVersionKind().GroupKind(), namespace: namespace, name: o.GetName()}
}

// String returns kind, namespace and name for error messages.
func (i id) String() string {
	if i.namespace == "" {
		return i.Kind + " " + i.name
	}
	return i.Kind + " " + i.namespace + "/" + i.name
}

// malformed says why a document is not a manifest of one named object. It returns the empty
// string for one that is.
func malformed(o *unstructured.Unstructured) string {
	metadata, isMap := o.Object["metadata"].(map[string]any)
	switch {
	case o.GetAPIVersion() == "":
		return "apiVersion is missing"
	case o.GetKind() == "":
		return "kind is missing"
	case o.Object["items"] != nil && strings.HasSuffix(o.GetKind(), "List"):
		return "it is a list; write each item as a document of its own"
	case o.Object["metadata"] != nil && !isMap:
		return "metadata is not an object"
	case o.GetName() == "" && metadata["generateName"] != nil:
		return "metadata.generateName would create a new object each time; give metadata.name"
	case o.GetName() == "":
		return "metadata.name is missing"
	}
	if gv, err := schema.ParseGroupVersion(o.GetAPIVersion()); err != nil || gv.Version == "" {
		return fmt.Sprintf("apiVersion %q is not version or group/version", o.GetAPIVersion())
	}
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "ownerReferences", "deletionTimestamp"} {
		if metadata[field] != nil {
			return "metadata." + field + " is set by the server; remove it"
		}
	}
	return ""
}

// reservedGroup reports whether an API group is hidden from tenants.
func reservedGroup(group string) bool {
	return group == groupKCPTenancy || group == groupKCPCore || group == v1alpha1.GroupName
}

// check refuses objects that a template must not contain.
func (l *loader) check(where string, o *unstructured.Unstructured, raw []byte) error {
	gvk := o.GroupVersionKind()
	if reservedGroup(gvk.Group) {
		return fmt.Errorf("objects of the group %s belong to the hub or to kcp", gvk.Group)
	}
	for _, keys := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for key := range keys {
			if strings.HasPrefix(key, v1alpha1.GroupName+"/") {
				return fmt.Errorf("%s is reserved for the hub; remove it", key)
			}
		}
	}
	switch gvk.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		if o.GetName() == tenancy.DefaultNamespace {
			return errors.New("the hub creates it in every Workspace; remove it")
		}
	case schema.GroupKind{Kind: "Secret"}:
		// A Secret without data can request something, such as a ServiceAccount token.
		if o.Object["data"] != nil || o.Object["stringData"] != nil {
			return errors.New("every Workspace would contain this value; remove data and stringData")
		}
	case schema.GroupKind{Group: groupRBAC, Kind: "ClusterRole"}, schema.GroupKind{Group: groupRBAC, Kind: "ClusterRoleBinding"}:
		if strings.HasPrefix(o.GetName(), hubPrefix) {
			return fmt.Errorf("names that begin with %s are reserved for the hub", hubPrefix)
		}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, schema.GroupKind{Group: groupKCPAPIs, Kind: "APIResourceSchema"}:
		if group, _, _ := unstructured.NestedString(o.Object, "spec", "group"); reservedGroup(group) {
			return fmt.Errorf("spec.group: %s is hidden from tenants", group)
		}
	case schema.GroupKind{Group: groupKCPAPIs, Kind: "APIBinding"}:
		return l.checkBinding(where, gvk, raw)
	}
	return nil
}

// checkBinding refuses unknown fields: a misspelt permission claim would silently not be
// accepted.
func (l *loader) checkBinding(where string, gvk schema.GroupVersionKind, raw []byte) error {
	if gvk.GroupVersion() != kcpapisv1alpha2.SchemeGroupVersion {
		return fmt.Errorf("use apiVersion %s", kcpapisv1alpha2.SchemeGroupVersion)
	}
	var b kcpapisv1alpha2.APIBinding
	if err := yaml.UnmarshalStrict(raw, &b); err != nil {
		return err
	}
	if err := kcpapisv1alpha2.ValidateAPIBinding(&b).ToAggregate(); err != nil {
		return err
	}
	export := b.Spec.Reference.Export
	switch export.Name {
	case groupKCPTenancy, tenancy.ExportTenancy, tenancy.ExportAccess:
		return fmt.Errorf("the export %s is reserved for the hub", export.Name)
	}
	switch b.Name {
	case tenancy.ExportTenancy, tenancy.ExportAccess:
		return errors.New("the name is reserved for a binding of the hub")
	}
	if first, ok := l.exports[export.Path+":"+export.Name]; ok {
		return fmt.Errorf("the export %s is already bound in %s", export.Name, first)
	}
	l.exports[export.Path+":"+export.Name] = where
	claimed := map[string]bool{}
	for i, c := range b.Spec.PermissionClaims {
		field := fmt.Sprintf("spec.permissionClaims[%d]", i)
		key := c.Group + "/" + c.Resource + "/" + c.IdentityHash
		switch {
		case reservedGroup(c.Group):
			return fmt.Errorf("%s: the group %s is hidden from providers", field, c.Group)
		case c.Resource == "" || len(c.Verbs) == 0:
			return fmt.Errorf("%s: resource and verbs are required", field)
		case c.State != kcpapisv1alpha2.ClaimAccepted && c.State != kcpapisv1alpha2.ClaimRejected:
			return fmt.Errorf("%s: state must be Accepted or Rejected", field)
		case claimed[key]:
			return fmt.Errorf("%s: %s is claimed twice", field, c.Resource)
		}
		claimed[key] = true
	}
	return nil
}
