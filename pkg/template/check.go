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

	// hubPrefix begins the names of what the hub itself keeps in a Workspace.
	hubPrefix = "kedge:"
)

// id names an object in a Workspace.
type id struct {
	schema.GroupKind
	namespace, name string
}

// idOf takes no namespace for the default one, which is where a namespaced object
// then lands; of what has none, two cannot differ in it.
func idOf(o *unstructured.Unstructured) id {
	namespace := o.GetNamespace()
	if namespace == tenancy.DefaultNamespace {
		namespace = ""
	}
	return id{GroupKind: o.GroupVersionKind().GroupKind(), namespace: namespace, name: o.GetName()}
}

// String is how people know the object.
func (i id) String() string {
	if i.namespace == "" {
		return i.Kind + " " + i.name
	}
	return i.Kind + " " + i.namespace + "/" + i.name
}

// shapeless says why a document is no manifest of one named object; empty when it
// is one.
func shapeless(o *unstructured.Unstructured) string {
	metadata, isMap := o.Object["metadata"].(map[string]any)
	switch {
	case o.GetAPIVersion() == "":
		return "apiVersion is missing"
	case o.GetKind() == "":
		return "kind is missing"
	case o.Object["items"] != nil && strings.HasSuffix(o.GetKind(), "List"):
		return "it is a list; make every item a document of its own"
	case o.Object["metadata"] != nil && !isMap:
		return "metadata is not an object"
	case o.GetName() == "" && metadata["generateName"] != nil:
		return "metadata.generateName would make a new object each time; give metadata.name"
	case o.GetName() == "":
		return "metadata.name is missing"
	}
	if gv, err := schema.ParseGroupVersion(o.GetAPIVersion()); err != nil || gv.Version == "" {
		return fmt.Sprintf("apiVersion %q is not version or group/version", o.GetAPIVersion())
	}
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "ownerReferences", "deletionTimestamp"} {
		if metadata[field] != nil {
			return "metadata." + field + " is of one object in one kcp; leave it out"
		}
	}
	return ""
}

// hubs tells whether a group is none that tenants may see anything of.
func hubs(group string) bool {
	return group == groupKCPTenancy || group == groupKCPCore || group == v1alpha1.GroupName
}

// check refuses what a template may not hold.
func (l *loader) check(where string, o *unstructured.Unstructured, raw []byte) error {
	gvk := o.GroupVersionKind()
	if hubs(gvk.Group) {
		return fmt.Errorf("objects of %s are the hub's or kcp's own", gvk.Group)
	}
	for _, keys := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for key := range keys {
			if strings.HasPrefix(key, v1alpha1.GroupName+"/") {
				return fmt.Errorf("%s marks what the hub itself keeps; leave it out", key)
			}
		}
	}
	switch gvk.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		if o.GetName() == tenancy.DefaultNamespace {
			return errors.New("every Workspace has it, and the hub keeps it")
		}
	case schema.GroupKind{Kind: "Secret"}:
		// An empty one asks for something, such as a ServiceAccount's token.
		if o.Object["data"] != nil || o.Object["stringData"] != nil {
			return errors.New("what is in every Workspace is no secret: leave data and stringData out")
		}
	case schema.GroupKind{Group: groupRBAC, Kind: "ClusterRole"}, schema.GroupKind{Group: groupRBAC, Kind: "ClusterRoleBinding"}:
		if strings.HasPrefix(o.GetName(), hubPrefix) {
			return fmt.Errorf("names that begin with %s are of what the hub itself keeps", hubPrefix)
		}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, schema.GroupKind{Group: groupKCPAPIs, Kind: "APIResourceSchema"}:
		if group, _, _ := unstructured.NestedString(o.Object, "spec", "group"); hubs(group) {
			return fmt.Errorf("spec.group: tenants must see nothing of %s", group)
		}
	case schema.GroupKind{Group: groupKCPAPIs, Kind: "APIBinding"}:
		return l.checkBinding(where, gvk, raw)
	}
	return nil
}

// checkBinding is strict, because a claim that was misspelt would be one that
// nobody accepted.
func (l *loader) checkBinding(where string, gvk schema.GroupVersionKind, raw []byte) error {
	if gvk.GroupVersion() != kcpapisv1alpha2.SchemeGroupVersion {
		return fmt.Errorf("write it as %s", kcpapisv1alpha2.SchemeGroupVersion)
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
		return fmt.Errorf("the export %s is bound by the hub or not at all", export.Name)
	}
	switch b.Name {
	case tenancy.ExportTenancy, tenancy.ExportAccess:
		return errors.New("the name is that of a binding of the hub's")
	}
	if first, ok := l.exports[export.Path+":"+export.Name]; ok {
		return fmt.Errorf("the export %s is bound already: %s", export.Name, first)
	}
	l.exports[export.Path+":"+export.Name] = where
	claimed := map[string]bool{}
	for i, c := range b.Spec.PermissionClaims {
		field := fmt.Sprintf("spec.permissionClaims[%d]", i)
		key := c.Group + "/" + c.Resource + "/" + c.IdentityHash
		switch {
		case hubs(c.Group):
			return fmt.Errorf("%s: no provider gets at %s in a Workspace", field, c.Group)
		case c.Resource == "" || len(c.Verbs) == 0:
			return fmt.Errorf("%s: resource and verbs are needed", field)
		case c.State != kcpapisv1alpha2.ClaimAccepted && c.State != kcpapisv1alpha2.ClaimRejected:
			return fmt.Errorf("%s: state must be Accepted or Rejected", field)
		case claimed[key]:
			return fmt.Errorf("%s: %s is claimed twice", field, c.Resource)
		}
		claimed[key] = true
	}
	return nil
}
