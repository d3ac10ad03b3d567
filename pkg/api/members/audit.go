package members

import (
	"cmp"
	"slices"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// intentOf is the intent to edit a User's Membership. It reduces rights if the cached Membership has
// all that is left.
func (h *Handler) intentOf(scope *tenancy.Scope, e tenancy.MemberEdit) httpmw.Intent {
	i := httpmw.Intent{Object: e.User, Reduces: e.Remove}
	if e.Remove {
		return i
	}
	held, ok := h.member(scope, e.User)
	hand := v1alpha1.MembershipExtra{}
	if ok {
		hand = tenancy.HandOf(held)
	}
	if !e.Add && e.Workspace != "" && (e.Role != "" || e.NoRole) && (!ok || tenancy.Lowers(hand.Role, e.Role)) {
		// A lower role takes what is not given with it. An unknown role counts as higher.
		none, no := []v1alpha1.RoleRef{}, false
		e.Roles, e.Sudo = cmp.Or(e.Roles, &none), cmp.Or(e.Sudo, &no)
	}
	i.Reduces = ok && !e.Add && (e.Role != "" || e.NoRole || e.Manager != nil || e.Roles != nil || e.Sudo != nil || e.Expiry != nil)
	if e.Role != "" {
		i.Facts.Role = string(e.Role)
		i.Reduces = i.Reduces && tenancy.Lowers(hand.Role, e.Role)
	}
	if e.NoRole {
		i.Facts.Role = rest.NoRole
	}
	if e.Manager != nil && (*e.Manager || !e.Add) {
		i.Facts.Manager = e.Manager
		i.Reduces = i.Reduces && !*e.Manager
	}
	if e.Expiry != nil && (e.Expiry.At != nil || !e.Add) {
		i.Facts.ExpiresAt = tenancy.ExpiryText(e.Expiry.At)
		i.Reduces = i.Reduces && tenancy.EndsSooner(e.Expiry.At, hand.ExpiresAt)
	}
	if e.Sudo != nil && (*e.Sudo || !e.Add) {
		i.Facts.Sudo = e.Sudo
		i.Reduces = i.Reduces && !*e.Sudo
	}
	if e.Roles != nil && (len(*e.Roles) > 0 || !e.Add) {
		i.Facts.Roles = tenancy.RoleTexts(*e.Roles)
		i.Reduces = i.Reduces && !slices.ContainsFunc(*e.Roles, func(r v1alpha1.RoleRef) bool { return !slices.Contains(held.Spec.Roles, r) })
	}
	return i
}
