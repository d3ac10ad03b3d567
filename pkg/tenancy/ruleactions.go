package tenancy

import (
	rbacv1 "k8s.io/api/rbac/v1"
	rbacvalidation "k8s.io/component-helpers/auth/rbac/validation"
)

// MaxRuleActions is the maximum number of actions that the rules of one role of a tenant permit: a short rule with four
// lists permits very many. Before kcp stores a role, or a binding to it, it makes a rule of each action in memory and
// compares it with each rule of the author, and its admission policy is asked after that. A role for the thousand
// resources of a large operator, with their status and finalizers and six verbs, permits 18 000.
const MaxRuleActions = 1 << 15

// RuleLengths are the lengths of the lists of a PolicyRule.
type RuleLengths struct{ Groups, Resources, Verbs, Names, URLs int }

// Actions is the number of actions that a rule permits, or a number above most if there are more. An empty rule counts
// for one, because it takes memory, too.
func (l RuleLengths) Actions(most int) int {
	product := 1
	for _, n := range []int{l.Groups, l.Resources, l.Verbs, max(l.Names, 1)} {
		// Each factor is bounded, so that the product does not overflow.
		product = min(product*min(n, most+1), most+1)
	}
	return max(product+min(l.URLs, most+1)*min(l.Verbs, most+1), 1)
}

// Actions is the number of actions that rules permit, or a number above most if there are more.
func Actions(rules []rbacv1.PolicyRule, most int) int {
	n := 0
	for _, r := range rules {
		n += RuleLengths{
			Groups: len(r.APIGroups), Resources: len(r.Resources), Verbs: len(r.Verbs),
			Names: len(r.ResourceNames), URLs: len(r.NonResourceURLs),
		}.Actions(most)
		if n > most {
			break
		}
	}
	return n
}

// Covers reports whether owner permits all actions that rules permit, and returns those that it does not. It does what
// Covers of package validation does, but compares an action with the rules for its API group alone: the roles of a
// Workspace have a rule for each group that its tenants define, and a thousand of them would take minutes. Who calls it with
// rules of a tenant bounds Actions first.
func Covers(owner, rules []rbacv1.PolicyRule) (covered bool, missing []rbacv1.PolicyRule) {
	byGroup := map[string][]rbacv1.PolicyRule{}
	var urls []rbacv1.PolicyRule
	for _, o := range owner {
		for _, group := range o.APIGroups {
			byGroup[group] = append(byGroup[group], o)
		}
		if len(o.NonResourceURLs) > 0 {
			urls = append(urls, o)
		}
	}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			of := append(byGroup[group][:len(byGroup[group]):len(byGroup[group])], byGroup[rbacv1.APIGroupAll]...)
			_, more := rbacvalidation.Covers(of, []rbacv1.PolicyRule{
				{Verbs: r.Verbs, APIGroups: []string{group}, Resources: r.Resources, ResourceNames: r.ResourceNames},
			})
			missing = append(missing, more...)
		}
		_, more := rbacvalidation.Covers(urls, []rbacv1.PolicyRule{{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs}})
		missing = append(missing, more...)
	}
	return len(missing) == 0, missing
}
