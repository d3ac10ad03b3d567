package tenancy

import (
	"fmt"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

const (
	// MaxColumns is the maximum number of columns that a version of a definition of a tenant has in tables.
	MaxColumns = 20
	// maxClaims is the number of permission claims that an APIBinding or APIExport of a tenant can have.
	maxClaims = 64
	// maxClaimsText is the length in bytes of all names, verbs and selectors in them together. Each verb and
	// value counts for 16 bytes more, and each term of a selector for 64, as they take in memory.
	maxClaimsText = 12 << 10
	// maxBindingAnnotation is the length in bytes of each annotation of an APIBinding.
	maxBindingAnnotation = 4 << 10
	// maxEntryAnnotation is that of CatalogEntryAnnotation, which has all of
	// spec.memberResources of a CatalogEntry.
	maxEntryAnnotation = 24 << 10

	// virtualStorageAnnotation has the resources with virtual storage of an APIExport in version
	// v1alpha1. kcp converts it to spec.resources of v1alpha2.
	virtualStorageAnnotation = newerFields + "resource-schemas"
	// newerFields begins the names of the annotations which have what v1alpha1 of an object has no field for.
	newerFields = "apis.v1alpha2.kcp.io/"
)

// The kinds of resource that rules of the policy name, as "group/resource".
const (
	kindNamespaces          = "/namespaces"
	kindSecrets             = "/secrets"
	kindServiceAccounts     = "/serviceaccounts"
	kindRoles               = "rbac.authorization.k8s.io/roles"
	kindClusterRoles        = "rbac.authorization.k8s.io/clusterroles"
	kindRoleBindings        = "rbac.authorization.k8s.io/rolebindings"
	kindClusterRoleBindings = "rbac.authorization.k8s.io/clusterrolebindings"
	kindDefinitions         = "apiextensions.k8s.io/customresourcedefinitions"
	kindAPIBindings         = "apis.kcp.io/apibindings"
	kindAPIExports          = "apis.kcp.io/apiexports"
	kindSchemas             = "apis.kcp.io/apiresourceschemas"
)

// hubKinds are those of the objects that the hub keeps in a Workspace.
var hubKinds = []string{kindNamespaces, kindSecrets, kindServiceAccounts, kindClusterRoles, kindRoles, kindClusterRoleBindings, kindRoleBindings}

// policyKinds are those of the policy, which no role lets tenants write.
var policyKinds = []string{groupAdmission + "/validatingadmissionpolicies", groupAdmission + "/validatingadmissionpolicybindings"}

// policyRule is a rule of the policy. It does not apply to the hub and to kcp.
type policyRule struct {
	// message says to people why a write is refused, and what to do instead.
	message string
	// allowed is a CEL expression that is true for a write that the rule does not refuse.
	allowed string
	// kinds are those that the rule is about.
	kinds []string
	// everywhere applies the rule to every other kind, too.
	everywhere bool
}

// policyRules are the rules of the policy. kcp reports the first that refuses a write. The kinds
// in them are also those that the proxy guards (Policy.Guards).
func policyRules() []policyRule {
	bindings := []string{kindRoleBindings, kindClusterRoleBindings}
	return []policyRule{
		{
			message: "the hub keeps this object; names that begin with " + reservedPrefix + " and labels of " + v1alpha1.GroupName + " are reserved: take another name, and leave the labels to the hub",
			allowed: "!variables.objects.exists(o, has(o.metadata) && (" +
				"has(o.metadata.name) && o.metadata.name.startsWith(" + quoted(reservedPrefix) + ") || " +
				"has(o.metadata.generateName) && o.metadata.generateName.startsWith(" + quoted(reservedPrefix) + ") || " +
				"has(o.metadata.labels) && o.metadata.labels.exists(l, l.startsWith(" + quoted(labelPrefix) + "))))",
			// What the hub keeps in a Workspace. Labels of the hub can be on an object of any kind.
			kinds:      hubKinds,
			everywhere: true,
		},
		{
			message: "bindings are for ServiceAccounts of this workspace; give people roles through Memberships (POST /api/orgs/{org}/workspaces/{ws}/members, with roles[] for further ClusterRoles and Roles)",
			allowed: subjects("s.kind == 'ServiceAccount' || s.kind == 'Group' && (s.name == " + quoted(groupAccounts) + " || s.name.startsWith(" + quoted(groupAccounts+":") + "))"),
			kinds:   bindings,
		},
		{
			message: "this binding includes bots; the role of a bot is the one that the hub says (PATCH /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{bot}): " +
				"bind ServiceAccounts of your own by name, or the group " + groupAccounts + ":{namespace} of a namespace other than " + DefaultNamespace,
			// Without a namespace, a subject is in the namespace of its RoleBinding.
			allowed: subjects("s.kind == 'Group' ? !(s.name in " + celList(botGroups()) + ") : " +
				"!((s.?namespace.orValue('') == '' ? request.?namespace.orValue('') : s.namespace) == " + quoted(DefaultNamespace) + " && " + isBotName("s.name") + ")"),
			kinds: bindings,
		},
		{
			message: "ServiceAccounts of this name belong to bots; take another name, or make a bot (POST /api/orgs/{org}/workspaces/{ws}/serviceaccounts)",
			allowed: "oldObject != null || object == null || request.?subResource.orValue('') != '' || request.?namespace.orValue('') != " + quoted(DefaultNamespace) +
				" || !has(object.metadata.name) || !" + isBotName("object.metadata.name"),
			kinds: []string{kindServiceAccounts},
		},
		{
			message: "Secrets of this type hold tokens that never expire; ask for a token with an expiry instead: kubectl create token",
			allowed: "object == null || !has(object.type) || object.type != 'kubernetes.io/service-account-token'",
			kinds:   []string{kindSecrets},
		},
		{
			message: "tokens bound to this Secret belong to a bot; issue and revoke tokens of bots through the hub (POST /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{bot}/tokens)",
			allowed: "!has(request.subResource) || request.subResource != 'token' || object == null || !has(object.spec) || !has(object.spec.boundObjectRef) || " +
				"!has(object.spec.boundObjectRef.name) || !object.spec.boundObjectRef.name.startsWith(" + quoted(botTokenPrefix) + ")",
			kinds: []string{kindServiceAccounts},
		},
		{
			message: "a role here names groups, resources and verbs, is not aggregated, and in the API groups of kcp has at most the rights of " + ClusterRoleAdmin,
			allowed: "object == null || !has(object.aggregationRule) && (!has(object.rules) || object.rules == null || object.rules.all(r, " + withinAdmin + "))",
			kinds:   []string{kindRoles, kindClusterRoles},
		},
		{
			message: "this ClusterRole of kcp has rights on what the hub keeps; bind another one",
			allowed: "object == null || !has(object.roleRef) || object.roleRef.name != 'cluster-admin' && !object.roleRef.name.startsWith('system:')",
			kinds:   bindings,
		},
		{
			message: "a provider may only read here what " + ClusterRoleAdmin + " may not change; reject that claim",
			allowed: "object == null || !has(object.spec) || !has(object.spec.permissionClaims) || object.spec.permissionClaims.all(c, " + acceptable + ")",
			kinds:   []string{kindAPIBindings},
		},
		{
			// kcp copies the claims of an export into the status of each binding. An older version has them in an
			// annotation.
			message: fmt.Sprintf("an APIBinding or APIExport has at most %d permission claims with %d bytes of text", maxClaims, maxClaimsText),
			allowed: fmt.Sprintf("object == null || object.?spec.?permissionClaims.orValue([]).size() <= %d && "+
				"object.?spec.?permissionClaims.orValue([]).map(c, %s).sum() <= %d && "+
				"object.metadata.?annotations.orValue({}).all(k, !k.startsWith(%s) || bytes(object.metadata.annotations[k]).size() <= %d)",
				maxClaims, claimText(), maxClaimsText, quoted(newerFields), maxClaimsText),
			kinds: []string{kindAPIBindings, kindAPIExports},
		},
		{
			message: fmt.Sprintf("an APIBinding has no annotation of more than %d bytes; "+
				"kubectl apply stores the object in one, and kubectl apply --server-side does not", maxBindingAnnotation),
			allowed: fmt.Sprintf("object == null || "+
				"object.metadata.?annotations.orValue({}).all(k, bytes(object.metadata.annotations[k]).size() <= (k == %s ? %d : %d))",
				quoted(v1alpha1.CatalogEntryAnnotation), maxEntryAnnotation, maxBindingAnnotation),
			kinds: []string{kindAPIBindings},
		},
		{
			message: "an APIExport here has no virtual storage; leave spec.resources[].storage at crd",
			allowed: "object == null || !(" + quoted(virtualStorageAnnotation) + " in object.metadata.?annotations.orValue({})) && " +
				"object.?spec.?resources.orValue([]).all(r, !has(r.storage) || !has(r.storage.virtual))",
			kinds: []string{kindAPIExports},
		},
		{
			message: "this API group belongs to kcp or to the hub; take a group of your own",
			// An older definition can lose its finalizers.
			allowed: "object == null || oldObject != null && has(oldObject.metadata.deletionTimestamp) || " +
				"has(object.spec) && has(object.spec.group) && !(object.spec.group in variables.rights) && !object.spec.group.endsWith('.kcp.io')",
			kinds: []string{kindDefinitions, kindSchemas},
		},
		{
			// kcp evaluates the path in each object that it answers as a table, and keeps all that it finds on the way: a path
			// that descends, or names a field twice, several times over finds more in a small object than there is memory for.
			// A key that begins with a dot descends, too. Each column can be a copy of the whole object.
			message: fmt.Sprintf("a version here has at most %d columns, and the jsonPath of a column has no '..', ',', '}' or quoted "+
				"key that begins with a dot; name one field by its path", MaxColumns),
			allowed: "object == null || oldObject != null && has(oldObject.metadata.deletionTimestamp) || " +
				"object.?spec.?versions.orValue([]).all(v, v.?additionalPrinterColumns.orValue([]).size() <= " + strconv.Itoa(MaxColumns) +
				" && v.?additionalPrinterColumns.orValue([]).all(c, ['..', ',', '}', \"'.\"].all(s, !c.?jsonPath.orValue('').contains(s))))",
			kinds: []string{kindDefinitions, kindSchemas},
		},
		{
			message: "conversion webhooks are not allowed here; use conversion strategy None",
			allowed: "object == null || !has(object.spec) || !has(object.spec.conversion) || !has(object.spec.conversion.strategy) || object.spec.conversion.strategy != 'Webhook'",
			kinds:   []string{kindDefinitions, kindSchemas},
		},
		{
			// kcp lists no resource without a served version, so the meter would not count its objects.
			message: "a definition here serves at least one version; delete the definition if nobody is to use it",
			allowed: "object == null || !has(object.spec) || !has(object.spec.versions) || object.spec.versions.exists(v, v.?served.orValue(false))",
			kinds:   []string{kindDefinitions, kindSchemas},
		},
		{
			message: "the hub keeps this binding; leave it as it is",
			allowed: binds("[oldObject].filter(o, o != null)", ExportTenancy, ExportAccess),
			kinds:   []string{kindAPIBindings},
		},
		{
			message: "this API belongs to kcp or to the hub and cannot be bound here; make workspaces and members through the hub's API under /api/orgs",
			allowed: binds("[object].filter(o, o != null)", exportKCPTenancy, exportKCPTopology, ExportTenancy, ExportAccess),
			kinds:   []string{kindAPIBindings},
		},
	}
}

// claimText is what the permission claim c counts for in maxClaimsText, in all versions of APIBindings and APIExports.
func claimText() string {
	return "bytes(c.?group.orValue('')).size() + bytes(c.?resource.orValue('')).size() + bytes(c.?identityHash.orValue('')).size() + " +
		"c.?verbs.orValue([]).map(v, 16 + bytes(v).size()).sum() + " +
		"c.?resourceSelector.orValue([]).map(o, 64 + bytes(o.?name.orValue('')).size() + bytes(o.?namespace.orValue('')).size()).sum() + " +
		selectorText("selector") + " + " + selectorText("defaultSelector")
}

// selectorText is what a selector of the permission claim c counts for.
func selectorText(field string) string {
	return strings.ReplaceAll("c.?FIELD.?matchLabels.orValue({}).map(k, 64 + bytes(k).size() + bytes(c.FIELD.matchLabels[k]).size()).sum() + "+
		"c.?FIELD.?matchExpressions.orValue([]).map(e, 64 + bytes(e.?key.orValue('')).size() + "+
		"e.?values.orValue([]).map(v, 16 + bytes(v).size()).sum()).sum()", "FIELD", field)
}

// kindsOf returns the kinds that rules of the policy are about.
func kindsOf(rules []policyRule) map[string]bool {
	kinds := map[string]bool{}
	for _, r := range rules {
		for _, kind := range r.kinds {
			kinds[kind] = true
		}
	}
	return kinds
}

// Guards reports whether the policy is about a resource. While kcp does not enforce the policy,
// nobody may write such a resource. No rule but the one about labels of the hub refuses a write of
// another kind.
func (p Policy) Guards(group, resource string) bool { return p.guarded[group+"/"+resource] }

func (r policyRule) validation() admissionv1.Validation {
	expression := "variables.trusted || " + r.allowed
	if !r.everywhere {
		expression = "variables.trusted || !(variables.kind in " + celList(r.kinds) + ") || " + r.allowed
	}
	return validation(r.message, expression)
}

// groupAccounts is the group of all ServiceAccounts of a logical cluster, and the beginning of the
// names of those of one namespace.
const groupAccounts = "system:serviceaccounts"

// botGroups are the groups that every bot is in.
func botGroups() []string { return []string{groupAccounts, groupAccounts + ":" + DefaultNamespace} }

// isBotName is true for a name in the form of those of bots. The length bounds the cost of the
// match.
func isBotName(name string) string {
	return fmt.Sprintf("(%[1]s.size() == 36 && %[1]s.matches(%[2]s))", name, quoted(uuidPattern))
}

// subjects is true for the removal of a binding, and where every subject s is allowed.
func subjects(allowed string) string {
	return "object == null || !has(object.subjects) || object.subjects.all(s, " + allowed + ")"
}

// Exports of kcp that would let tenants make workspaces or move them.
const (
	exportKCPTenancy  = "tenancy.kcp.io"
	exportKCPTopology = "topology.kcp.io"
)

// binds is true when none of the APIBindings binds one of the exports, whichever path
// or version names it.
func binds(objects string, exports ...string) string {
	return "!" + objects + ".exists(o, has(o.spec) && has(o.spec.reference) && has(o.spec.reference.export) && o.spec.reference.export.name in " + celList(exports) + ")"
}

func validation(message, expression string) admissionv1.Validation {
	return admissionv1.Validation{Expression: expression, Message: message, Reason: ptr.To(metav1.StatusReasonForbidden)}
}
