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

	// guarded are the kinds of the rules, as "group/resource".
	guarded map[string]bool
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
		Hash: hash, guarded: kindsOf(policyRules()),
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
	var validations []admissionv1.Validation
	for _, r := range policyRules() {
		validations = append(validations, r.validation())
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
		Validations: validations,
	}
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
