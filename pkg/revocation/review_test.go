package revocation_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/revocation"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const cluster = "ws1"

// authorizer plays kcp's: it goes by the ClusterRoles that it believes bound.
type authorizer struct {
	bound []*rbacv1.ClusterRole
	asked []authorizationv1.SubjectAccessReviewSpec
	// refuses has it refuse everything, as required groups do.
	refuses bool
}

func (a *authorizer) review(in string, asked authorizationv1.SubjectAccessReviewSpec) (status authorizationv1.SubjectAccessReviewStatus) {
	a.asked = append(a.asked, asked)
	for _, role := range a.bound {
		for _, rule := range role.Rules {
			status.Allowed = status.Allowed || in == cluster && asked.User == "kedge:bob" && !a.refuses && permits(rule, asked)
		}
	}
	return status
}

func permits(rule rbacv1.PolicyRule, asked authorizationv1.SubjectAccessReviewSpec) bool {
	has := func(all []string, one string) bool {
		for _, each := range all {
			if each == one || each == "*" {
				return true
			}
		}
		return false
	}
	if n := asked.NonResourceAttributes; n != nil {
		return has(rule.Verbs, n.Verb) && has(rule.NonResourceURLs, n.Path)
	}
	r := asked.ResourceAttributes
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return has(rule.Verbs, r.Verb) && has(rule.APIGroups, r.Group) && has(rule.Resources, resource)
}

func tenants(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func reading(group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get", "watch"}, APIGroups: []string{group}, Resources: []string{resource}}
}

// large returns a role of a few KiB that permits millions of actions, all of which the member role permits, too.
func large() *rbacv1.ClusterRole {
	return tenants("large", rbacv1.PolicyRule{
		Verbs: slices.Repeat([]string{"get"}, 240), APIGroups: slices.Repeat([]string{""}, 240), Resources: slices.Repeat([]string{"configmaps"}, 240),
	})
}

func reviews(t *testing.T, a *authorizer, tenantRoles ...*rbacv1.ClusterRole) (revocation.Reviews, *kcpfake.Server) {
	t.Helper()
	server := kcpfake.New(t)
	server.Review(a.review)
	for _, role := range tenantRoles {
		server.Put(cluster, role)
	}
	return revocation.Reviews{
		Clients: server.Clients(),
		User: func(name string) (*v1alpha1.User, bool) {
			return &v1alpha1.User{Spec: v1alpha1.UserSpec{RBACIdentity: "kedge:" + name}}, name == "bob"
		},
		ClusterRole: func(in, name string) (*rbacv1.ClusterRole, bool) {
			role := own(name)
			return role, role != nil && in == cluster
		},
	}, server
}

// own returns a ClusterRole of the hub's.
func own(name string) *rbacv1.ClusterRole {
	for _, role := range tenancy.ClusterRoles(nil) {
		if role.Name == name {
			return role
		}
	}
	return nil
}

func TestReviews_tellWhenKcpHasFollowed(t *testing.T) {
	t.Parallel()
	viewer, member, admin := own(tenancy.ClusterRoleViewer), own(tenancy.ClusterRoleMember), own(tenancy.ClusterRoleAdmin)
	pods, things := tenants("pods", reading("", "pods")), tenants("things", reading("example.com", "things"), reading("example.org", "others/status"))
	for name, c := range map[string]struct {
		lost string
		role v1alpha1.Role
		more []v1alpha1.RoleRef
		// before and after are what kcp goes by.
		before, after []*rbacv1.ClusterRole
	}{
		"admin to member":        {tenancy.ClusterRoleAdmin, v1alpha1.RoleMember, nil, []*rbacv1.ClusterRole{admin, member}, []*rbacv1.ClusterRole{member}},
		"admin to viewer":        {tenancy.ClusterRoleAdmin, v1alpha1.RoleViewer, nil, []*rbacv1.ClusterRole{admin, viewer}, []*rbacv1.ClusterRole{viewer}},
		"member to viewer":       {tenancy.ClusterRoleMember, v1alpha1.RoleViewer, nil, []*rbacv1.ClusterRole{member, viewer}, []*rbacv1.ClusterRole{viewer}},
		"a tenant's role":        {"pods", v1alpha1.RoleMember, nil, []*rbacv1.ClusterRole{member, pods}, []*rbacv1.ClusterRole{member}},
		"one of bound APIs":      {"things", v1alpha1.RoleMember, nil, []*rbacv1.ClusterRole{member, things}, []*rbacv1.ClusterRole{member}},
		"one of two":             {"things", v1alpha1.RoleMember, []v1alpha1.RoleRef{{Name: "pods"}}, []*rbacv1.ClusterRole{member, pods, things}, []*rbacv1.ClusterRole{member, pods}},
		"with the new not bound": {tenancy.ClusterRoleAdmin, v1alpha1.RoleMember, nil, nil, []*rbacv1.ClusterRole{member}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &authorizer{bound: c.before}
			k, server := reviews(t, a, pods, things)
			left := tenancy.Entry{Workspace: tenancy.Workspace{ClusterID: cluster}, Role: c.role, Roles: c.more}
			followed, err := k.Followed(t.Context(), "bob", c.lost, left)
			require.NoError(t, err)
			require.False(t, followed)
			a.bound = c.after
			followed, err = k.Followed(t.Context(), "bob", c.lost, left)
			require.NoError(t, err)
			require.True(t, followed)
			for _, asked := range a.asked {
				require.Equal(t, []string{"system:authenticated"}, asked.Groups)
			}
			require.Empty(t, server.List(cluster, authorizationv1.GroupName, "subjectaccessreviews"), "a review is not kept")
		})
	}
}

func TestReviews_askAboutRolesInTheirNamespace(t *testing.T) {
	t.Parallel()
	member := own(tenancy.ClusterRoleMember)
	url := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}
	pods := tenants("pods", url, reading("", "pods"))
	a := &authorizer{bound: []*rbacv1.ClusterRole{member, tenants("pods", reading("", "pods"))}}
	k, server := reviews(t, a, pods)
	server.Put(cluster, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "dev"}, Rules: pods.Rules})
	for _, lost := range []string{"dev/pods", "dev/own"} {
		// The same role in another namespace gives nothing in this one.
		left := tenancy.Entry{
			Workspace: tenancy.Workspace{ClusterID: cluster}, Role: v1alpha1.RoleMember, Roles: []v1alpha1.RoleRef{{Name: "pods", Namespace: "prod"}},
		}
		a.asked = nil
		followed, err := k.Followed(t.Context(), "bob", lost, left)
		require.NoError(t, err)
		require.False(t, followed, lost)
		require.Len(t, a.asked, 1)
		require.NotNil(t, a.asked[0].ResourceAttributes, "a RoleBinding gives no right to a URL")
		require.Equal(t, "dev", a.asked[0].ResourceAttributes.Namespace)

		before := a.bound
		a.bound = []*rbacv1.ClusterRole{member}
		followed, err = k.Followed(t.Context(), "bob", lost, left)
		require.NoError(t, err)
		require.True(t, followed, lost)
		a.bound, a.asked = before, nil

		// A role of the whole cluster covers what ended in a namespace.
		left.Roles = []v1alpha1.RoleRef{{Name: "pods"}}
		followed, err = k.Followed(t.Context(), "bob", lost, left)
		require.NoError(t, err)
		require.True(t, followed, lost)
		require.Empty(t, a.asked)
	}
}

func TestReviews_doNotTakeAnotherRefusalForIt(t *testing.T) {
	t.Parallel()
	member := own(tenancy.ClusterRoleMember)
	left := tenancy.Entry{Workspace: tenancy.Workspace{ClusterID: cluster}, Role: v1alpha1.RoleMember}
	for name, refuse := range map[string]func(*authorizer, *kcpfake.Server) (user string){
		"required groups":   func(a *authorizer, _ *kcpfake.Server) string { a.refuses = true; return "bob" },
		"an unknown person": func(*authorizer, *kcpfake.Server) string { return "stranger" },
		"an error of kcp": func(_ *authorizer, s *kcpfake.Server) string {
			s.FailBefore(func(kcpfake.Request) error { return apierrors.NewTooManyRequests("busy", 0) })
			return "bob"
		},
		"an evaluation error": func(_ *authorizer, s *kcpfake.Server) string {
			s.Review(func(string, authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
				return authorizationv1.SubjectAccessReviewStatus{EvaluationError: "no such role"}
			})
			return "bob"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &authorizer{bound: []*rbacv1.ClusterRole{member}}
			k, server := reviews(t, a)
			followed, err := k.Followed(t.Context(), "bob", tenancy.ClusterRoleAdmin, left)
			require.NoError(t, err)
			require.True(t, followed, "the positive control")
			user := refuse(a, server)
			followed, _ = k.Followed(t.Context(), user, tenancy.ClusterRoleAdmin, left)
			require.False(t, followed)
		})
	}
}

func TestReviews_askNothingAboutARoleThatIsCovered(t *testing.T) {
	t.Parallel()
	a := &authorizer{}
	k, server := reviews(t, a, tenants("pods", reading("", "configmaps")))
	left := tenancy.Entry{Workspace: tenancy.Workspace{ClusterID: cluster}, Role: v1alpha1.RoleMember}
	followed, err := k.Followed(t.Context(), "bob", "pods", left)
	require.NoError(t, err)
	require.True(t, followed)
	require.Empty(t, a.asked)
	followed, err = k.Followed(t.Context(), "bob", "deleted", left)
	require.NoError(t, err)
	require.False(t, followed, "what a role permitted that is gone is not known")
	server.FailBefore(func(kcpfake.Request) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}}
	})
	_, err = k.Followed(t.Context(), "bob", "pods", left)
	require.ErrorContains(t, err, "read the ClusterRole pods")
}

// The attack: a role of millions of actions, which is older than the limit of them, takes the memory of the hub when it is
// taken from somebody. That kcp has followed is unknown then, and the streams are cut at the deadline.
func TestReviews_doNotCompareARoleThatIsTooLarge(t *testing.T) {
	t.Parallel()
	a := &authorizer{}
	k, server := reviews(t, a, large())
	server.Put(cluster, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "dev"}, Rules: large().Rules})
	for _, lost := range []string{"large", "dev/large", "dev/own"} {
		left := tenancy.Entry{Workspace: tenancy.Workspace{ClusterID: cluster}, Role: v1alpha1.RoleMember}
		followed, err := k.Followed(t.Context(), "bob", lost, left)
		require.ErrorContains(t, err, "too many actions", lost)
		require.False(t, followed, lost)
		require.Empty(t, a.asked)
	}
}
