package tenancy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// kcp breaks a rule down into as many rules as Actions says. An empty rule counts for one.
func TestActions_areThoseThatKcpMakesRulesOf(t *testing.T) {
	t.Parallel()
	list := func(n int) []string { return slices.Repeat([]string{"x"}, n) }
	for groups := range 3 {
		for resources := range 3 {
			for verbs := range 4 {
				for names := range 3 {
					for urls := range 3 {
						rule := rbacv1.PolicyRule{
							APIGroups: list(groups), Resources: list(resources), Verbs: list(verbs),
							ResourceNames: list(names), NonResourceURLs: list(urls),
						}
						want := max(len(validation.BreakdownRule(rule)), 1)
						require.Equal(t, want, tenancy.Actions([]rbacv1.PolicyRule{rule}, 1000), "%v", rule)
						require.Equal(t, 2*want, tenancy.Actions([]rbacv1.PolicyRule{rule, rule}, 1000), "%v", rule)
					}
				}
			}
		}
	}
}

// The attack: lengths whose product is small once it overflows.
func TestActions_doNotOverflow(t *testing.T) {
	t.Parallel()
	const huge = 1 << 32
	for _, most := range []int{1, 1024, tenancy.MaxRuleActions} {
		for _, l := range []tenancy.RuleLengths{
			{Groups: huge, Resources: huge, Verbs: 1}, {Groups: huge, Resources: huge, Verbs: huge, Names: huge},
			{Verbs: huge, URLs: huge}, {Groups: 240, Resources: 240, Verbs: 240}, {Groups: math.MaxInt, Resources: 1, Verbs: 1},
		} {
			require.Greater(t, l.Actions(most), most, "%v", l)
		}
	}
}

// The roles that people have are far below the bound.
func TestMaxRuleActions_leavesRoomForLargeRoles(t *testing.T) {
	t.Parallel()
	var definitions []string
	var operator []rbacv1.PolicyRule
	for i := range 980 {
		group := fmt.Sprintf("g%d.example.com", i%180)
		definitions = append(definitions, fmt.Sprintf("things%d.%s", i, group))
		operator = append(operator, rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: []string{"things", "things/status", "things/finalizers"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch"},
		})
	}
	require.Less(t, tenancy.Actions(operator, tenancy.MaxRuleActions), tenancy.MaxRuleActions*3/4)
	for _, role := range tenancy.ClusterRoles(nil, definitions...) {
		require.Less(t, tenancy.Actions(role.Rules, tenancy.MaxRuleActions), tenancy.MaxRuleActions*3/4, role.Name)
	}
}

// someRules are rules with what matters to a comparison, wildcards and empty lists among it.
func someRules(r *rand.Rand) (rules []rbacv1.PolicyRule) {
	some := func(most int, from ...string) (list []string) {
		for range r.IntN(most + 1) {
			list = append(list, from[r.IntN(len(from))])
		}
		return list
	}
	for range r.IntN(5) {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: some(3, "", "a.example.com", "b.example.com", "*"), Resources: some(3, "x", "y", "x/status", "*", "*/status"),
			Verbs: some(3, "get", "create", "*"), ResourceNames: some(1, "one", "two"),
			NonResourceURLs: some(1, "/", "/api", "/api/*", "*"),
		})
	}
	return rules
}

// Covers answers as Kubernetes does, in the same order.
func TestCovers_isThatOfKubernetes(t *testing.T) {
	t.Parallel()
	r, answers := rand.New(rand.NewPCG(1, 2)), map[bool]int{}
	for range 5_000 {
		owner, rules := someRules(r), someRules(r)
		want, missing := validation.Covers(owner, rules)
		covered, more := tenancy.Covers(owner, rules)
		require.Equal(t, want, covered, "%v\n%v", owner, rules)
		require.Equal(t, missing, append([]rbacv1.PolicyRule{}, more...), "%v\n%v", owner, rules)
		answers[covered]++
	}
	require.Greater(t, min(answers[true], answers[false]), 100, "both answers occur: %v", answers)
}

// The attack: as many API groups as a Workspace can have. With Covers of Kubernetes, this test takes minutes.
func TestCovers_doesNotGrowWithTheSquareOfGroups(t *testing.T) {
	t.Parallel()
	var definitions []string
	for i := range tenancy.MaxCustomResources {
		definitions = append(definitions, fmt.Sprintf("things.g%d.example.com", i))
	}
	roles := tenancy.ClusterRoles(nil, definitions...)
	for range 3 {
		covered, _ := tenancy.Covers(roles[0].Rules, roles[0].Rules)
		require.True(t, covered)
		covered, missing := tenancy.Covers(roles[1].Rules, roles[0].Rules)
		require.False(t, covered)
		require.NotEmpty(t, missing)
	}
}
