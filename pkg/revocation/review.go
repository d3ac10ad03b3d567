package revocation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// maxActions bounds the reviews of one question to kcp.
const maxActions = 8

// Reviews asks kcp by SubjectAccessReviews.
type Reviews struct {
	Clients *kcp.Clients
	// User finds a User by name.
	User func(name string) (*v1alpha1.User, bool)
	// Bot finds a Bot by the UID of its ServiceAccount.
	Bot func(account string) (*v1alpha1.Bot, bool)
	// ClusterRole finds a ClusterRole in memory, which has the rules of the hub's own only.
	ClusterRole func(cluster, name string) (*rbacv1.ClusterRole, bool)
}

// Followed implements Kcp.
func (k Reviews) Followed(ctx context.Context, user, role string, left tenancy.Entry) (bool, error) {
	cluster := left.Workspace.ClusterID
	subject, err := k.subject(user, cluster)
	if err != nil {
		return false, err
	}
	namespace, _, namespaced := strings.Cut(role, "/")
	if !namespaced {
		namespace = ""
	}
	lost, err := k.rules(ctx, cluster, role)
	if err != nil {
		return false, err
	}
	if namespaced {
		// A RoleBinding gives no right to a non-resource URL.
		lost = slices.DeleteFunc(slices.Clone(lost), func(r rbacv1.PolicyRule) bool { return len(r.NonResourceURLs) > 0 })
	}
	var kept []rbacv1.PolicyRule
	for _, name := range left.BoundRoles() {
		// A role in another namespace gives nothing in this one.
		if in, _, ok := strings.Cut(name, "/"); ok && in != namespace {
			continue
		}
		rules, err := k.rules(ctx, cluster, name)
		if err != nil {
			return false, err
		}
		kept = append(kept, rules...)
	}
	covered, ended := tenancy.Covers(kept, lost)
	if covered {
		return len(lost) > 0, nil
	}
	for _, action := range telling(ended) {
		if allowed, err := k.allowed(ctx, cluster, subject, namespace, action); allowed || err != nil {
			return false, err
		}
	}
	// kcp lets nobody into a workspace without access on "/".
	return k.allowed(ctx, cluster, subject, "", rbacv1.PolicyRule{Verbs: []string{"access"}, NonResourceURLs: []string{"/"}})
}

// Allows reports whether kcp's authorizer allows a caller an action in a logical cluster. The caller is the
// name of a User or a tenancy.BotKey.
func (k Reviews) Allows(ctx context.Context, caller, cluster string, a tenancy.Action) (bool, error) {
	subject, err := k.subject(caller, cluster)
	if err != nil {
		return false, err
	}
	return k.allowed(ctx, cluster, subject, a.Namespace, a.Rule())
}

// telling returns the actions to ask kcp about, of those that ended. One is enough that
// only RBAC decides about. A bound API may have a maximal permission policy, which refuses
// for reasons of its own; without an action of the first kind there is one for each API
// group, at most maxActions.
func telling(ended []rbacv1.PolicyRule) (actions []rbacv1.PolicyRule) {
	groups := map[string]bool{}
	for _, action := range ended {
		if len(action.NonResourceURLs) > 0 || action.APIGroups[0] == corev1.GroupName || action.APIGroups[0] == rbacv1.GroupName {
			return []rbacv1.PolicyRule{action}
		}
		if group := action.APIGroups[0]; !groups[group] && len(actions) < maxActions {
			groups[group] = true
			actions = append(actions, action)
		}
	}
	return actions
}

// errTooLarge is the error for a role of a tenant with more actions than can be compared: it is older than the limit, or
// was not written through the hub.
var errTooLarge = errors.New("the role permits too many actions to be compared")

// bounded returns the rules of a tenant's role, or errTooLarge.
func bounded(name string, rules []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, error) {
	if tenancy.Actions(rules, tenancy.MaxRuleActions) > tenancy.MaxRuleActions {
		return nil, fmt.Errorf("%w: %s", errTooLarge, name)
	}
	return rules, nil
}

// rules returns the rules of a role, none where it does not exist, and errTooLarge where a tenant has written too many. As
// for a binding, a Role comes before a ClusterRole.
func (k Reviews) rules(ctx context.Context, cluster, name string) ([]rbacv1.PolicyRule, error) {
	if namespace, in, ok := strings.Cut(name, "/"); ok {
		role, err := k.Clients.Roles(cluster, namespace).Get(ctx, in, metav1.GetOptions{})
		if err == nil {
			return bounded(name, role.Rules)
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read the Role %s: %w", name, err)
		}
		name = in
	}
	if role, ok := k.ClusterRole(cluster, name); ok && role.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByHub {
		return role.Rules, nil
	}
	role, err := k.Clients.ClusterRoles(cluster).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ClusterRole %s: %w", name, err)
	}
	return bounded(name, role.Rules)
}

// allowed asks kcp whether a caller may do what a rule permits: one action, as
// tenancy.Covers returns it. namespace is empty for an action in the whole cluster.
func (k Reviews) allowed(ctx context.Context, cluster string, subject authorizationv1.SubjectAccessReviewSpec, namespace string, action rbacv1.PolicyRule) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: subject}
	if len(action.NonResourceURLs) > 0 {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: action.NonResourceURLs[0], Verb: action.Verbs[0]}
	} else {
		resource, subresource, _ := strings.Cut(action.Resources[0], "/")
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: action.Verbs[0], Group: action.APIGroups[0], Version: "*", Resource: resource, Subresource: subresource,
		}
		if len(action.ResourceNames) > 0 {
			review.Spec.ResourceAttributes.Name = action.ResourceNames[0]
		}
	}
	review, err := k.Clients.SubjectAccessReviews(cluster).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask kcp by a SubjectAccessReview: %w", err)
	}
	if review.Status.EvaluationError != "" && !review.Status.Allowed {
		return false, fmt.Errorf("kcp could not evaluate a SubjectAccessReview: %s", review.Status.EvaluationError)
	}
	return review.Status.Allowed, nil
}
