package tenancy

import (
	"fmt"
	"slices"
	"strings"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	rbacv1 "k8s.io/api/rbac/v1"
	rbacvalidation "k8s.io/component-helpers/auth/rbac/validation"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Codes of what is missing for an action in a Workspace. CauseRoleTooLow is one of them.
const (
	MissingMembership      = "NotAMember"
	MissingSudo            = "NeedsSudo"
	MissingResource        = "ResourceNotServed"
	MissingProvider        = "ProviderNotEnabled"
	MissingClaims          = "ClaimPending"
	MissingPolicyMayRefuse = "PolicyMayRefuse"
	MissingReady           = "WorkspaceNotReady"
)

// maxActionText is the maximum length of each part of an action.
const maxActionText = 253

// Action is an action on a resource of a Workspace.
type Action struct{ Verb, Group, Resource, Subresource, Namespace, Name string }

// Check validates the action. The errors name the parameters of a request.
func (a Action) Check() error {
	for _, part := range []struct{ field, value string }{
		{"verb", a.Verb}, {"group", a.Group}, {"resource", a.Resource}, {"subresource", a.Subresource}, {"namespace", a.Namespace}, {"name", a.Name},
	} {
		switch {
		case part.value == "" && (part.field == "verb" || part.field == "resource"):
			return errs.InvalidField("query:"+part.field, "is missing")
		case len(part.value) > maxActionText || strings.ContainsFunc(part.value, func(r rune) bool { return r <= ' ' || r == '*' || r > '~' }):
			return errs.InvalidField("query:"+part.field, "must be printable ASCII without spaces and without *, of at most 253 characters")
		}
	}
	if strings.Contains(a.Resource, "/") {
		return errs.InvalidField("query:resource", "must be the plural name of a resource; a subresource is a parameter of its own")
	}
	return nil
}

// Rule is the rule that permits the action and nothing else.
func (a Action) Rule() rbacv1.PolicyRule {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	r := rbacv1.PolicyRule{Verbs: []string{a.Verb}, APIGroups: []string{a.Group}, Resources: []string{resource}}
	if a.Name != "" {
		r.ResourceNames = []string{a.Name}
	}
	return r
}

func (a Action) String() string {
	return a.Verb + " " + ResourceName(a.Group, a.Rule().Resources[0])
}

// Missing is something that an action lacks, or that may still refuse it.
type Missing struct {
	Code, Message string
	// Role is the least role that would do, if one would.
	Role v1alpha1.Role
	// Slug is that of the provider to enable.
	Slug string
}

// Explanation says why a caller may do an action in a Workspace or not. The verdict is that of the gate,
// which gave the entry, and of kcp. What is here explains the verdict and never makes it.
type Explanation struct {
	Action Action
	Entry  Entry
	// Allowed is kcp's verdict.
	Allowed bool
	// ClusterRole finds a ClusterRole of the hub in the Workspace.
	ClusterRole func(name string) (*rbacv1.ClusterRole, bool)
	// Bindings are those of the Workspace, and Entries those of the catalog that its people can enable.
	Bindings []*kcpapisv1alpha2.APIBinding
	Entries  []*v1alpha1.CatalogEntry
	// Policy is the admission policy of the Workspace.
	Policy Policy
}

// GroupOf returns the API group of a resource that is named without one: of what the Workspace serves, or
// of a provider that can be enabled. It is the core group if there is none.
func (e Explanation) GroupOf(resource string) string {
	for _, r := range e.rules(ClusterRoleAdmin) {
		if slices.Contains(r.Resources, resource) {
			return r.APIGroups[0]
		}
	}
	for _, b := range e.Bindings {
		for _, r := range b.Status.BoundResources {
			if r.Resource == resource {
				return r.Group
			}
		}
	}
	for _, entry := range e.Entries {
		for _, r := range exported(entry) {
			if r.Resource == resource {
				return r.Group
			}
		}
	}
	return ""
}

func exported(e *v1alpha1.CatalogEntry) []v1alpha1.CatalogResource {
	if e.Status.Export == nil {
		return nil
	}
	return e.Status.Export.Resources
}

func (e Explanation) rules(role string) []rbacv1.PolicyRule {
	if r, ok := e.ClusterRole(role); ok && ManagedByHub(r) {
		return r.Rules
	}
	return nil
}

// Missing returns what the action lacks and, for one that kcp allows, what may still refuse it.
func (e Explanation) Missing() (all []Missing) {
	if !e.Allowed {
		all = append(all, e.refused())
	}
	for _, b := range e.Bindings {
		if !e.binds(b) {
			continue
		}
		if state, message := CatalogStateOf(ExportIn(nil, b), b); state == CatalogClaimsPending {
			was, _ := EnabledEntryOf(b)
			all = append(all, Missing{Code: MissingClaims, Message: message, Slug: was.Slug})
		}
	}
	if e.Allowed {
		for _, message := range e.Policy.MayRefuse(e.Action) {
			all = append(all, Missing{Code: MissingPolicyMayRefuse, Message: "the admission policy of the workspace may still refuse it: " + message})
		}
	}
	return all
}

// refused says why kcp does not allow the action.
func (e Explanation) refused() Missing {
	if !e.served() {
		return e.unserved()
	}
	least := e.least()
	switch {
	case least == "":
		return Missing{Code: CauseRoleTooLow, Message: "no role of a workspace lets anybody " + e.Action.String()}
	case e.Entry.Role.AtLeast(least):
		return Missing{Code: MissingPolicyMayRefuse, Message: fmt.Sprintf("the role %s includes it, and kcp does not allow it: "+
			"the provider of the API permits less, or kcp has not followed a change yet", e.Entry.Role)}
	case e.Entry.Sudo:
		message := fmt.Sprintf("it needs the role %s, which sudo gives for one request at a time: kedge sudo -- kubectl …", least)
		return Missing{Code: MissingSudo, Role: least, Message: message}
	}
	message := fmt.Sprintf("it needs the role %s in this workspace, and the role there is %s", least, e.Entry.Role)
	return Missing{Code: CauseRoleTooLow, Role: least, Message: message}
}

// least is the least role with the action, or empty.
func (e Explanation) least() v1alpha1.Role {
	for _, role := range []v1alpha1.Role{v1alpha1.RoleViewer, v1alpha1.RoleMember, v1alpha1.RoleAdmin} {
		if covered, _ := rbacvalidation.Covers(e.rules(clusterRoleOf(role)), []rbacv1.PolicyRule{e.Action.Rule()}); covered {
			return role
		}
	}
	return ""
}

// served reports whether the Workspace serves the resource. The roles of the hub list what it serves, but
// for resources of kcp that no tenant has a use for.
func (e Explanation) served() bool {
	a := e.Action
	if a.Group != "" && reservedGroup(a.Group) || slices.ContainsFunc(e.Bindings, e.binds) {
		return true
	}
	return slices.ContainsFunc(e.rules(ClusterRoleAdmin), func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, a.Group) && slices.Contains(r.Resources, a.Resource)
	})
}

func (e Explanation) binds(b *kcpapisv1alpha2.APIBinding) bool {
	return slices.ContainsFunc(b.Status.BoundResources, func(r kcpapisv1alpha2.BoundAPIResource) bool {
		return r.Group == e.Action.Group && r.Resource == e.Action.Resource
	})
}

// unserved says how the Workspace could come to serve the resource.
func (e Explanation) unserved() Missing {
	a := e.Action
	name := ResourceName(a.Group, a.Resource)
	for _, entry := range e.Entries {
		if !slices.Contains(exported(entry), v1alpha1.CatalogResource{Group: a.Group, Resource: a.Resource}) {
			continue
		}
		slug := entry.Spec.Slug
		switch state, message := CatalogStateOf(entry.Status.Export, BindingOf(e.Bindings, entry)); state {
		case CatalogDisabled:
			return Missing{Code: MissingProvider, Slug: slug, Message: fmt.Sprintf("the provider %s has %s, and is not enabled in this workspace", slug, name)}
		default:
			return Missing{Code: MissingResource, Message: fmt.Sprintf("the provider %s is enabled and does not serve %s yet: %s", slug, name, message)}
		}
	}
	return Missing{Code: MissingResource, Message: "this workspace serves no " + name + ", and no provider in the catalog has it"}
}

// MayRefuse returns the messages of the rules of the policy that are about the kind of a write. It is empty
// for other kinds and for reads.
func (p Policy) MayRefuse(a Action) (messages []string) {
	if !p.Guards(a.Group, a.Resource) || !slices.Contains(write, a.Verb) || slices.Contains(read, a.Verb) {
		return nil
	}
	for _, r := range policyRules() {
		if slices.Contains(r.kinds, a.Group+"/"+a.Resource) && (!strings.HasPrefix(a.Verb, "delete") || r.aboutDeletion()) {
			messages = append(messages, r.message)
		}
	}
	return messages
}

// aboutDeletion reports whether the rule may refuse a deletion. The other rules begin by letting each pass.
func (r policyRule) aboutDeletion() bool {
	return !strings.Contains(r.allowed, "object == null ||") && !strings.Contains(r.allowed, "[object].filter")
}
