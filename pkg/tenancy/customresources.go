package tenancy

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// CustomResourcesAnnotation is on the kcp Workspace and names, separated by
// commas, the CustomResourceDefinitions in it that its roles cover. Nothing else
// tells all replicas of them: kcp shows CustomResourceDefinitions to no APIExport.
const CustomResourcesAnnotation = v1alpha1.GroupName + "/custom-resources"

// MaxCustomResources is how many CustomResourceDefinitions of a Workspace are
// looked at, in the order of their names: tenants decide how many there are, and a
// role must stay an object that kcp stores and that requests are checked against.
const MaxCustomResources = 1000

// maxCustomResourceNames is the length of the longest annotation, a quarter of
// what an object may have of them: a name is up to 253 characters.
const maxCustomResourceNames = 64 << 10

// maxCRDName is kcp's for any name.
const maxCRDName = 253

// crdName is "{plural}.{group}", as kcp wants it.
var crdName = regexp.MustCompile(`^([a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)\.([a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*)$`)

// customResource takes the name of a CustomResourceDefinition apart. ok is false
// for one that no role may cover. kcp takes definitions of tenants in its own
// groups, of its own resources among them, and a right there would be one to what
// is behind the name: the LogicalCluster, RBAC, or an Org's Memberships.
func customResource(name string) (resource, group string, ok bool) {
	parts := crdName.FindStringSubmatch(name)
	if parts == nil || len(name) > maxCRDName {
		return "", "", false
	}
	resource, group = parts[1], parts[2]
	// A definition in the core group is named so.
	if reservedGroup(group) || group == "core" || within(group, "kcp.io") || within(group, "kedge.faros.sh") {
		return "", "", false
	}
	return resource, group, true
}

func within(group, domain string) bool {
	return group == domain || strings.HasSuffix(group, "."+domain)
}

// EncodeCustomResources is the annotation for these CustomResourceDefinitions. Of
// those that are too many for it the last in the order of their names are left
// out.
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

// DecodeCustomResources reads the annotation.
func DecodeCustomResources(annotation string) []string {
	if annotation == "" {
		return nil
	}
	return strings.Split(annotation, ",")
}

// customRules are those for custom resources: one per group, with the resources
// by name and the two subresources that they can have. They are not under "*",
// because kcp may come to serve something else in the group of a tenant's choice.
func customRules(verbs, names []string) []rbacv1.PolicyRule {
	byGroup := map[string][]string{}
	for _, name := range names {
		if resource, group, ok := customResource(name); ok {
			byGroup[group] = append(byGroup[group], resource, resource+"/scale", resource+"/status")
		}
	}
	rules := make([]rbacv1.PolicyRule, 0, len(byGroup))
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		slices.Sort(byGroup[group])
		rules = append(rules, rule(verbs, []string{group}, slices.Compact(byGroup[group])...))
	}
	return rules
}
