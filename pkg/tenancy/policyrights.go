package tenancy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// In the virtual workspace of an APIExport, a provider writes the objects that it claims with
// its own name, but with all rights: kcp does not compare a role there with the rights of its
// author. The policy does that, so that a tenant who is a provider, too, cannot give a
// ServiceAccount the right to change the policy itself.

// withinAdmin is true for a rule r of a role with no wildcard for groups, and with at most the
// URLs of the admin role and its rights in the groups of kcp and of the hub.
const withinAdmin = "r.?apiGroups.orValue([]).all(g, g in variables.rights ? " +
	"r.?resources.orValue([]).all(s, s in variables.rights[g] && r.verbs.all(v, v in variables.rights[g][s])) : " +
	"g != '*' && !g.endsWith('.kcp.io')) && r.?nonResourceURLs.orValue([]).all(u, u in variables.urls)"

// acceptable is true for a permission claim c that is rejected, that only reads, or that is for
// a resource that the admin role may change.
const acceptable = "c.?state.orValue('') == 'Rejected' || has(c.verbs) && c.verbs.all(v, v in ['get', 'list', 'watch']) || " +
	"(c.?group.orValue('') in variables.rights ? 'create' in variables.rights[c.?group.orValue('')][?c.resource].orValue([]) : " +
	"!c.group.endsWith('.kcp.io'))"

// tenantGroup reports whether an API group is neither kcp's nor the hub's.
func tenantGroup(group string) bool { return !reservedGroup(group) && !within(group, "kcp.io") }

// Protect returns an object of the Workspace template with a label of the hub if kcp serves its kind
// by itself. The policy keeps tenants from it then. kcp does not ask the policy of a Workspace
// about the kinds of APIs that are bound there, and controllers of tenants write the status of others.
func Protect(o *unstructured.Unstructured) *unstructured.Unstructured {
	if tenantGroup(o.GroupVersionKind().Group) {
		return o
	}
	o, labels := o.DeepCopy(), maps.Clone(o.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.TemplateLabel] = "true"
	o.SetLabels(labels)
	return o
}

// adminRights are the verbs of the admin role in the groups of kcp and of the hub, by group
// and resource.
func adminRights() map[string]map[string][]string {
	rights := map[string]map[string][]string{}
	for _, group := range reservedGroups {
		rights[group] = map[string][]string{}
	}
	for _, r := range ClusterRoles(nil)[0].Rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				rights[group][resource] = append(rights[group][resource], r.Verbs...)
			}
		}
	}
	return rights
}

// adminURLs are the URLs of the admin role.
func adminURLs() (urls []string) {
	for _, r := range ClusterRoles(nil)[0].Rules {
		urls = append(urls, r.NonResourceURLs...)
	}
	return urls
}

func celMap[V any](m map[string]V, value func(V) string) string {
	entries := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		entries = append(entries, fmt.Sprintf("%s: %s", quoted(key), value(m[key])))
	}
	return "{" + strings.Join(entries, ", ") + "}"
}

func celList(list []string) string {
	entries := make([]string, 0, len(list))
	for _, s := range list {
		entries = append(entries, quoted(s))
	}
	return "[" + strings.Join(entries, ", ") + "]"
}
