package tenancy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// PolicyName is the name of the ValidatingAdmissionPolicy of a child Workspace and of
// its binding. kcp takes no colon in it.
const PolicyName = "workspace." + v1alpha1.GroupName

const (
	// reservedPrefix begins the names of all RBAC objects that the hub makes.
	reservedPrefix = "kedge:"
	// probePrefix begins the name of a ClusterRoleBinding that the policy refuses to
	// everybody. The hash of the policy follows.
	probePrefix = "kedge:workspace:policy-probe:"
	// labelPrefix begins the keys of all labels of the hub.
	labelPrefix = v1alpha1.GroupName + "/"
	// groupMasters is kcp's own group. Its controllers are in it on every shard, and
	// kcp lets nobody impersonate it.
	groupMasters = "system:masters"
)

// Policy is the ValidatingAdmissionPolicy that holds the tenants of a child Workspace
// to their border, with its binding.
type Policy struct {
	Policy  *admissionv1.ValidatingAdmissionPolicy
	Binding *admissionv1.ValidatingAdmissionPolicyBinding
	// Hash identifies the version of the policy.
	Hash string

	hubUsers []string
}

// NewPolicy returns the policy. hubUsers are the names under which kcp knows the hub;
// the policy refuses them nothing but the probe.
func NewPolicy(hubUsers ...string) (Policy, error) {
	users := slices.Compact(slices.Sorted(slices.Values(hubUsers)))
	if len(users) == 0 || slices.Contains(users, "") {
		return Policy{}, fmt.Errorf("the admission policy of Workspaces needs the names of the hub in kcp, not %q", users)
	}
	spec := policySpec(users)
	raw, err := json.Marshal(spec)
	if err != nil {
		return Policy{}, fmt.Errorf("encode the admission policy of Workspaces: %w", err)
	}
	sum := sha256.Sum256(raw)
	hash := hex.EncodeToString(sum[:8])
	spec.Validations = append(spec.Validations, validation(probeMessage(hash), fmt.Sprintf(
		"object == null || request.resource.resource != 'clusterrolebindings' || !has(object.metadata.name) || object.metadata.name != %s", quoted(probePrefix+hash))))
	return Policy{
		Hash: hash, hubUsers: users,
		Policy: &admissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: managed(PolicyName), Spec: spec,
		},
		Binding: &admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: managed(PolicyName),
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: PolicyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		},
	}, nil
}

// Probe is a ClusterRoleBinding that kcp refuses to create exactly when it enforces
// this version of the policy. It is for dry runs.
func (p Policy) Probe() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: probePrefix + p.Hash},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRoleViewer},
	}
}

// RefusedProbe reports whether the message of a refusal is this policy's refusal of its
// probe.
func (p Policy) RefusedProbe(message string) bool {
	return strings.Contains(message, probeMessage(p.Hash))
}

func probeMessage(hash string) string { return "the policy " + hash + " is enforced" }

func policySpec(hubUsers []string) admissionv1.ValidatingAdmissionPolicySpec {
	quotedUsers := make([]string, 0, len(hubUsers))
	for _, u := range hubUsers {
		quotedUsers = append(quotedUsers, quoted(u))
	}
	return admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionv1.Fail),
		// The labels of the hub can be on an object of any kind.
		MatchConstraints: &admissionv1.MatchResources{
			// The defaults of kcp are spelled out, so that what it stores compares equal.
			MatchPolicy:       ptr.To(admissionv1.Equivalent),
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
				Rule: admissionv1.Rule{
					APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}, Scope: ptr.To(admissionv1.AllScopes),
				},
			}}},
		},
		Variables: []admissionv1.Variable{
			{Name: "trusted", Expression: "has(request.userInfo.username) && request.userInfo.username in [" + strings.Join(quotedUsers, ", ") + "] || " +
				"has(request.userInfo.groups) && " + quoted(groupMasters) + " in request.userInfo.groups"},
			{Name: "kind", Expression: "request.resource.group + '/' + request.resource.resource"},
			// Before and after the request: an UPDATE has both, a DELETE the first alone.
			{Name: "objects", Expression: "[oldObject, object].filter(o, o != null)"},
			{Name: "rights", Expression: celMap(adminRights(), func(resources map[string][]string) string { return celMap(resources, celList) })},
			{Name: "urls", Expression: celList(adminURLs())},
		},
		// kcp reports the first that refuses.
		Validations: []admissionv1.Validation{
			validation("the hub keeps this object; names that begin with "+reservedPrefix+" and labels of "+v1alpha1.GroupName+" are reserved: take another name, and leave the labels to the hub",
				"variables.trusted || !variables.objects.exists(o, has(o.metadata) && ("+
					"has(o.metadata.name) && o.metadata.name.startsWith("+quoted(reservedPrefix)+") || "+
					"has(o.metadata.generateName) && o.metadata.generateName.startsWith("+quoted(reservedPrefix)+") || "+
					"has(o.metadata.labels) && o.metadata.labels.exists(l, l.startsWith("+quoted(labelPrefix)+"))))"),
			validation("bindings are for ServiceAccounts of this workspace; give people roles through Memberships (POST /api/orgs/{org}/workspaces/{ws}/members, with roles[] for further ClusterRoles and Roles)",
				guarded("object == null || !has(object.subjects) || object.subjects.all(s, s.kind == 'ServiceAccount' || "+
					"s.kind == 'Group' && (s.name == 'system:serviceaccounts' || s.name.startsWith('system:serviceaccounts:')))",
					"rbac.authorization.k8s.io/rolebindings", "rbac.authorization.k8s.io/clusterrolebindings")),
			validation("Secrets of this type hold tokens that never expire; ask for a token with an expiry instead: kubectl create token",
				guarded("object == null || !has(object.type) || object.type != 'kubernetes.io/service-account-token'", "/secrets")),
			validation("tokens bound to this Secret belong to a bot; issue and revoke tokens of bots through the hub (POST /api/orgs/{org}/workspaces/{ws}/serviceaccounts/{bot}/tokens)",
				guarded("!has(request.subResource) || request.subResource != 'token' || object == null || !has(object.spec) || !has(object.spec.boundObjectRef) || "+
					"!has(object.spec.boundObjectRef.name) || !object.spec.boundObjectRef.name.startsWith("+quoted(botTokenPrefix)+")", "/serviceaccounts")),
			validation("a role here names groups, resources and verbs, is not aggregated, and in the API groups of kcp has at most the rights of "+ClusterRoleAdmin,
				guarded("object == null || !has(object.aggregationRule) && (!has(object.rules) || object.rules == null || object.rules.all(r, "+withinAdmin+"))",
					"rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/clusterroles")),
			validation("this ClusterRole of kcp has rights on what the hub keeps; bind another one",
				guarded("object == null || !has(object.roleRef) || object.roleRef.name != 'cluster-admin' && !object.roleRef.name.startsWith('system:')",
					"rbac.authorization.k8s.io/rolebindings", "rbac.authorization.k8s.io/clusterrolebindings")),
			validation("a provider may only read here what "+ClusterRoleAdmin+" may not change; reject that claim",
				guarded("object == null || !has(object.spec) || !has(object.spec.permissionClaims) || object.spec.permissionClaims.all(c, "+acceptable+")", "apis.kcp.io/apibindings")),
			validation("this API group belongs to kcp or to the hub; take a group of your own",
				guarded("object == null || has(object.spec) && has(object.spec.group) && !(object.spec.group in variables.rights) && !object.spec.group.endsWith('.kcp.io')", "apis.kcp.io/apiresourceschemas")),
			validation("conversion webhooks are not allowed here; use conversion strategy None",
				guarded("object == null || !has(object.spec) || !has(object.spec.conversion) || !has(object.spec.conversion.strategy) || object.spec.conversion.strategy != 'Webhook'",
					"apiextensions.k8s.io/customresourcedefinitions", "apis.kcp.io/apiresourceschemas")),
			validation("the hub keeps this binding; leave it as it is",
				guarded(binds("[oldObject].filter(o, o != null)", ExportTenancy, ExportAccess), "apis.kcp.io/apibindings")),
			validation("this API belongs to kcp or to the hub and cannot be bound here; make workspaces and members through the hub's API under /api/orgs",
				guarded(binds("[object].filter(o, o != null)", exportKCPTenancy, exportKCPTopology, ExportTenancy, ExportAccess), "apis.kcp.io/apibindings")),
		},
	}
}

// Exports of kcp that would let tenants make workspaces or move them.
const (
	exportKCPTenancy  = "tenancy.kcp.io"
	exportKCPTopology = "topology.kcp.io"
)

// binds is true when none of the APIBindings binds one of the exports, whichever path
// or version names it.
func binds(objects string, exports ...string) string {
	names := make([]string, 0, len(exports))
	for _, e := range exports {
		names = append(names, quoted(e))
	}
	return "!" + objects + ".exists(o, has(o.spec) && has(o.spec.reference) && has(o.spec.reference.export) && o.spec.reference.export.name in [" + strings.Join(names, ", ") + "])"
}

// guarded is true for the hub, for kcp, for every kind but the given ones, and where
// allowed is.
func guarded(allowed string, kinds ...string) string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, quoted(k))
	}
	return "variables.trusted || !(variables.kind in [" + strings.Join(names, ", ") + "]) || " + allowed
}

func validation(message, expression string) admissionv1.Validation {
	return admissionv1.Validation{Expression: expression, Message: message, Reason: ptr.To(metav1.StatusReasonForbidden)}
}

// quoted is a CEL string.
func quoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}

// SpecHashAnnotation is on a policy or binding in the cache, in place of its spec. kcp
// never stores it.
const SpecHashAnnotation = v1alpha1.GroupName + "/spec-hash"

// PolicyHash identifies the spec of a policy and whether it has the hub's label.
func PolicyHash(p *admissionv1.ValidatingAdmissionPolicy) string { return specHash(p, p.Spec) }

// PolicyBindingHash identifies the spec of a binding and whether it has the hub's label.
func PolicyBindingHash(b *admissionv1.ValidatingAdmissionPolicyBinding) string {
	return specHash(b, b.Spec)
}

// InPlace reports whether a policy and a binding of these hashes are this policy's.
func (p Policy) InPlace(policy, binding string) bool {
	return policy == PolicyHash(p.Policy) && binding == PolicyBindingHash(p.Binding)
}

// specHash is empty, and so equal to that of no policy, where the spec cannot be encoded.
func specHash(o metav1.Object, spec any) string {
	raw, err := json.Marshal(spec)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append(raw, o.GetLabels()[v1alpha1.ManagedByLabel]...))
	return hex.EncodeToString(sum[:16])
}
