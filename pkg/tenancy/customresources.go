package tenancy

import (
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// CustomResourcesAnnotation is set on a child Workspace. It lists the names of the
// CustomResourceDefinitions in it that its roles cover, separated by commas. All replicas
// learn of them from it: an APIExport cannot claim CustomResourceDefinitions (pkg/kcp).
const CustomResourcesAnnotation = v1alpha1.GroupName + "/custom-resources"

// MaxCustomResources is the maximum number of CustomResourceDefinitions of a Workspace that
// roles cover, in the order of their names. It limits the size of the ClusterRoles, because
// tenants decide how many definitions there are.
const MaxCustomResources = 1000

// maxCustomResourceNames is the maximum length of the annotation in bytes: a quarter of what
// an object can have in annotations.
const maxCustomResourceNames = 64 << 10

// maxCRDName is the maximum length of an object's name.
const maxCRDName = 253

// crdName matches "{plural}.{group}", the name of a CustomResourceDefinition.
var crdName = regexp.MustCompile(`^([a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)\.([a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*)$`)

// customResource parses the name of a CustomResourceDefinition. ok is false for one that no
// role may cover. kcp accepts definitions in its own API groups, which the policy refuses to tenants
// since it knows of them, and a rule for such a resource would also grant kcp's own resource of that
// name: the LogicalCluster, RBAC objects, or Memberships.
func customResource(name string) (resource, group string, ok bool) {
	parts := crdName.FindStringSubmatch(name)
	if parts == nil || len(name) > maxCRDName {
		return "", "", false
	}
	resource, group = parts[1], parts[2]
	// A definition in the core group has the name "{plural}.core".
	if reservedGroup(group) || group == "core" || within(group, "kcp.io") || within(group, "kedge.faros.sh") {
		return "", "", false
	}
	return resource, group, true
}

func within(group, domain string) bool {
	return group == domain || strings.HasSuffix(group, "."+domain)
}

// EncodeCustomResources returns the value of the annotation for these names. It leaves out
// the last ones in alphabetical order if they exceed the maximum length.
func EncodeCustomResources(names []string) string {
	var b strings.Builder
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if _, _, ok := customResource(name); !ok {
			continue
		}
		if b.Len()+1+len(name) > maxCustomResourceNames {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name)
	}
	return b.String()
}

// DecodeCustomResources parses the value of the annotation.
func DecodeCustomResources(annotation string) []string {
	if annotation == "" {
		return nil
	}
	return strings.Split(annotation, ",")
}

// customRules returns the rules for custom resources: one per API group, with each resource
// and its scale and status subresources by name. They use no "*", because kcp may later serve
// other resources in a group that a tenant chose.
func customRules(verbs, names []string) []rbacv1.PolicyRule {
	byGroup := map[string][]string{}
	for _, name := range names {
		if resource, group, ok := customResource(name); ok {
			byGroup[group] = append(byGroup[group], resource, resource+"/scale", resource+"/status")
		}
	}
	return groupRules(verbs, byGroup)
}
