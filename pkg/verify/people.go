package verify

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// people compares what Users have beside their rights in Workspaces.
func (c *comparison) people() {
	users := c.Clusters.Users
	for _, key := range c.Views.IndexKeys() {
		c.compared++
		c.index(key.Name)
	}
	for _, key := range c.Views.Users.Keys() {
		u, ok := c.Views.ByName(key.Name)
		if !ok || !u.DeletionTimestamp.IsZero() || u.Status.DeletionRequestedAt != nil {
			continue
		}
		c.compared++
		d := Difference{Place: c.place(users), Name: u.Name}.healedBy("user", c.User(u.Name))
		c.claims(d, "Organizations", u.Spec.OrgClaims, c.Views.OrgsCreatedBy(u.Name))
	}
	for s := range c.Views.Sessions.All() {
		c.compared++
		user, _ := c.Views.ByName(s.Spec.UserRef.Name)
		if s.Spec.EndedAt == nil && tenancy.SessionEnded(s, user, c.now, c.Settings.SessionIdleTimeout) {
			c.add(Difference{
				Kind: KindSession, Place: c.place(users), Name: s.Name, Wanted: "ended", Found: "no end, of " + s.Spec.UserRef.Name,
			}.healedBy("session", c.User(s.Name)))
		}
	}
	for m := range c.Views.Memberships.All() {
		c.compared++
		c.membership(m)
	}
}

// index compares the UserMembershipIndex of a User.
func (c *comparison) index(user string) {
	d := Difference{Kind: KindIndex, Place: c.place(c.Clusters.Users), Name: user, Wanted: Nothing, Found: Nothing}
	d = d.healedBy("membershipindex", c.User(user))
	have, exists := c.Views.Indexes.Get(c.Clusters.Users, user)
	if exists {
		d.Found = rows(have.Spec.Entries)
	}
	_, person := c.Views.ByName(user)
	if person {
		wanted := tenancy.IndexEntries(c.Views.IndexedMemberships(user))
		if exists && apiequality.Semantic.DeepEqual(have.Spec.Entries, wanted) {
			return
		}
		if d.Wanted = rows(wanted); d.Wanted == d.Found {
			d.Wanted += ", with other names or times"
		}
	}
	c.add(d)
}

func rows(entries []v1alpha1.MembershipIndexEntry) string {
	all := make([]string, 0, len(entries))
	for _, e := range entries {
		text := e.OrgUUID
		if e.WorkspaceUUID != "" {
			text += "/" + e.WorkspaceUUID
		}
		text += ": " + tenancy.RoleText(e.Role, e.Manager)
		if e.SoftDeletedAt != nil {
			text += " (deleted)"
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return "no rows"
	}
	return texts(all)
}

// membership compares a Membership with what it refers to.
func (c *comparison) membership(m *v1alpha1.Membership) {
	cluster := kcp.ClusterOf(m)
	org, ok := c.Views.OrgByCluster(cluster)
	if !ok || org.Organization == nil || !m.DeletionTimestamp.IsZero() || org.Deleted() {
		return
	}
	d := Difference{
		Kind: KindMembership, Place: c.place(cluster), Name: m.Name, Wanted: Nothing,
		ToDo: "kubectl delete memberships." + v1alpha1.GroupName + " " + m.Name,
	}
	if _, ok := c.Views.ByName(m.Spec.UserRef.Name); !ok {
		d.Found = fmt.Sprintf("a Membership of %s, who is no User", m.Spec.UserRef.Name)
		c.add(d)
		return
	}
	workspace := tenancy.WorkspaceUUID(m)
	if _, ok := c.Views.Workspace(org.UUID(), workspace); workspace != "" && !ok {
		d.Found = "a Membership in a Workspace that does not exist"
		c.add(d)
		return
	}
	for _, end := range tenancy.Ends(m) {
		if tenancy.Ended(end, c.now) {
			d.ToDo, d.Found = "", "a Membership that ended at "+tenancy.ExpiryText(end)
			if tenancy.EffectiveAt(m, c.now) != nil {
				d.Found = "a part of a Membership that ended at " + tenancy.ExpiryText(end)
			}
			c.add(d.healedBy("organization", c.Organization(org.UUID())))
			return
		}
	}
}

// groups compares the parts of Memberships that come by groups of the identity provider with the mappings and with what
// is known of the groups of people.
func (c *comparison) groups(org tenancy.Org) {
	changes, _, _ := tenancy.Grouped{
		Organization: org.Organization, Memberships: c.Views.MembershipsIn(org.ClusterID), With: c.Views.WithGroup, User: c.Views.ByName,
		Full:      func() bool { return false },
		Workspace: func(uuid string) bool { _, ok := c.Views.Workspace(org.UUID(), uuid); return ok },
		Places:    func(user string) tenancy.Places { return c.Places(org.Organization, user) },
		MaxAge:    c.Settings.GroupMaxAge, Now: c.now,
	}.Decide()
	for _, change := range changes {
		if pending, ok := tenancy.ChangeOf(org.Organization, change.User, change.Workspace); ok && tenancy.SameChange(pending, change) {
			continue
		}
		c.add(Difference{
			Kind: KindMembership, Place: c.place(org.ClusterID), Name: tenancy.MembershipName(change.User, change.Workspace),
			Wanted: "what the groups of " + change.User + " give", Found: "something else",
		}.healedBy("organization", c.Organization(org.UUID())))
	}
}

// admins looks for an admin of an Organization. Nobody can remove the last one.
func (c *comparison) admins(org tenancy.Org) {
	own := c.Views.MembershipsAt(org.ClusterID, "")
	for _, m := range own {
		if m.Spec.Role.AtLeast(v1alpha1.RoleAdmin) || org.Spec.Personal {
			return
		}
	}
	d := Difference{
		Kind: KindMembership, Place: c.place(org.ClusterID), Name: org.UUID(), Wanted: "an admin",
		Found: fmt.Sprintf("no admin among %d members", len(own)),
		ToDo:  "make an admin: kubectl patch a Membership of the Organization, or create one",
	}
	if u, ok := c.Views.ByName(org.CreatedBy()); ok && len(own) == 0 && tenancy.MayHaveMade(u, org.CreationTimestamp) {
		d.ToDo = ""
		d = d.healedBy("organization", c.Organization(org.UUID()))
	}
	c.add(d)
}
