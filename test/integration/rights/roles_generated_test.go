package rights

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	rbacvalidation "k8s.io/component-helpers/auth/rbac/validation"

	hubkcp "github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// generated is the number of roles that are generated for each writer.
const generated = 500

// roleWords are what rules are generated from, beside the rules of the admin role.
var roleWords = struct{ groups, resources, verbs, urls, names []string }{
	groups: []string{
		"", "rbac.authorization.k8s.io", "apis.kcp.io", "core.kcp.io", "tenancy.kcp.io", "topology.kcp.io", "cache.kcp.io", "admissionregistration.k8s.io",
		"apiextensions.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "events.k8s.io",
		"tenancy.kedge.faros.sh", "flowcontrol.apiserver.k8s.io", "example.org", "unknown.example.org", "*",
	},
	resources: []string{
		"configmaps", "secrets", "secrets/*", "namespaces", "namespaces/status", "resourcequotas", "serviceaccounts", "serviceaccounts/token", "users", "groups",
		"clusterroles", "roles", "rolebindings", "clusterrolebindings", "apibindings", "apibindings/status", "apiexports", "logicalclusters", "logicalclusters/status",
		"customresourcedefinitions", "validatingadmissionpolicies", "certificatesigningrequests", "gizmos", "gizmos/status", "gizmos/approve", "*", "*/status",
	},
	verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate", "access", "*"},
	urls:  []string{"/", "/api", "/api/*", "/version", "/metrics", "/debug/*", "/api*", "*"},
	names: []string{"", "mine", "kedge:workspace:admin"},
}

// generator makes rules of roles. Equal seeds make equal rules.
type generator struct {
	*rand.Rand
	admin []rbacv1.PolicyRule
}

func (g generator) some(of []string) (some []string) {
	for range 1 + g.IntN(2) {
		some = append(some, of[g.IntN(len(of))])
	}
	return some
}

// rule returns a part of a rule of the admin role, which may have another word in one place, or a
// rule of any words.
func (g generator) rule(urls bool) rbacv1.PolicyRule {
	if urls && g.IntN(4) == 0 {
		return rbacv1.PolicyRule{NonResourceURLs: g.some(roleWords.urls), Verbs: g.some([]string{"get", "access", "post", "*"})}
	}
	r := rbacv1.PolicyRule{APIGroups: g.some(roleWords.groups), Resources: g.some(roleWords.resources), Verbs: g.some(roleWords.verbs)}
	if part := g.admin[g.IntN(len(g.admin))]; len(part.Resources) > 0 && g.IntN(4) > 0 {
		part = rbacv1.PolicyRule{APIGroups: g.some(part.APIGroups), Resources: g.some(part.Resources), Verbs: g.some(part.Verbs)}
		switch g.IntN(6) {
		case 0:
			part.APIGroups = r.APIGroups
		case 1:
			part.Resources = r.Resources
		case 2:
			part.Verbs = r.Verbs
		default:
		}
		r = part
	}
	if name := roleWords.names[g.IntN(len(roleWords.names))]; name != "" {
		r.ResourceNames = []string{name}
	}
	return r
}

func (g generator) rules(urls bool) (rules []rbacv1.PolicyRule) {
	for range 1 + g.IntN(2) {
		rules = append(rules, g.rule(urls))
	}
	return rules
}

// submit asks kcp whether a person may create a role, in a dry run, and returns the rules.
func (g generator) submit(t testing.TB, as *hubkcp.Clients, cluster string) (rules []rbacv1.PolicyRule, aggregated bool, err error) {
	meta, options := metav1.ObjectMeta{Name: "mine"}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if g.IntN(3) == 0 {
		rules = g.rules(false)
		meta.Namespace = tenancy.DefaultNamespace
		_, err = as.Roles(cluster, meta.Namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, options)
		return rules, false, err
	}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: g.rules(true)}
	if aggregated = g.IntN(20) == 0; aggregated {
		role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
	}
	_, err = as.ClusterRoles(cluster).Create(t.Context(), role, options)
	return role.Rules, aggregated, err
}

// What kcp lets tenants write as a role is compared with what the hub would bind for
// spec.roles of a Membership. kcp compares a role with the rights of its author. For a provider, who
// writes with all rights in the virtual workspace of their APIExport, the admission policy alone
// stands in the way; frank stands for one.
func TestGeneratedRoles_thatKcpAdmitsAreCovered(t *testing.T) {
	t.Parallel()
	s := newWorkspaceScene(t)
	errOut, err := s.kubectl(t, "bob", "", "create -f "+definition(t, "gizmos", "example.org"))
	require.NoError(t, err, errOut)
	operator := kcpAs(t, "")
	var admin *rbacv1.ClusterRole
	framework.Eventually(t, framework.Long, func() error {
		admin, err = operator.ClusterRoles(s.cluster).Get(t.Context(), tenancy.ClusterRoleAdmin, metav1.GetOptions{})
		require.NoError(t, err)
		return framework.Check(slices.ContainsFunc(admin.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, "example.org") }), "%v", admin.Rules)
	})
	_, errOut, err = kcp.Kubectl(t, "", s.cluster, "create", "clusterrolebinding", "provider", "--clusterrole=cluster-admin", "--user=frank")
	require.NoError(t, err, errOut)
	framework.Eventually(t, framework.Long, func() error {
		return framework.Check(hasInKCP(t, "frank", s.cluster, "escalate", "rbac.authorization.k8s.io", "clusterroles"), "frank has not all rights yet")
	})
	for as, seed := range map[string]uint64{"bob": 1, "frank": 2} {
		g, clients := generator{rand.New(rand.NewPCG(seed, seed)), admin.Rules}, kcpAs(t, as)
		var beyond []rbacv1.PolicyRule
		admitted := 0
		for range generated {
			rules, aggregated, err := g.submit(t, clients, s.cluster)
			if err != nil {
				require.True(t, apierrors.IsForbidden(err), "%v: %v", rules, err)
				continue
			}
			require.False(t, aggregated)
			admitted++
			_, uncovered := rbacvalidation.Covers(admin.Rules, rules)
			beyond = append(beyond, uncovered...)
		}
		t.Logf("%s: %d of %d are admitted; %d rules are beyond the admin role", as, admitted, generated, len(beyond))
		require.Greater(t, admitted, generated/10, "the control")
		require.Less(t, admitted, generated*9/10, "the control")
		if as == "bob" {
			require.Empty(t, beyond)
			continue
		}
		// For these rules the hub compares the roles itself.
		require.NotEmpty(t, beyond, "the policy covers all that the hub compares")
		for _, r := range beyond {
			require.Subset(t, []string{"example.org", "unknown.example.org", "flowcontrol.apiserver.k8s.io"}, r.APIGroups, "a group that kcp serves by itself: %v", r)
			require.Subset(t, []string{"/", "/api", "/api/*", "/version"}, r.NonResourceURLs, r)
		}
	}
	// Of the groups that kcp serves by itself, the policy knows all.
	versions, errOut, err := kcp.Kubectl(t, "", s.cluster, "api-versions")
	require.NoError(t, err, errOut)
	for _, version := range strings.Fields(versions) {
		group, _, named := strings.Cut(version, "/")
		require.True(t, !named || group == "example.org" || strings.HasSuffix(group, ".kcp.io") || slices.Contains(roleWords.groups[:14], group), group)
	}
}

func kcpAs(t testing.TB, person string) *hubkcp.Clients {
	t.Helper()
	clients := kcp.Clients(t)
	if person == "" {
		return clients
	}
	as, err := clients.As(&rest.Config{BearerToken: framework.Token(person)})
	require.NoError(t, err)
	t.Cleanup(as.Close)
	return as
}
