package views

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// IndexKeys returns the keys of all Users, and of the UserMembershipIndexes that have no
// User any more. Both have the same name.
func (v *Views) IndexKeys() []Key {
	found := v.Users.Keys()
	for i := range v.Indexes.All() {
		if _, ok := v.Users.Get(v.clusters.Users, i.Name); !ok {
			found = append(found, Key{v.clusters.Users, i.Name})
		}
	}
	return found
}

// WorkspaceKeyOf returns the key of the child Workspace that a logical cluster belongs
// to; ok is false where it belongs to none.
func (v *Views) WorkspaceKeyOf(cluster string) (key Key, ok bool) {
	at := v.Cluster(cluster)
	if at.Kind != tenancy.ClusterWorkspace {
		return Key{}, false
	}
	return Key{v.topology.clusterOf(at.OrgUUID), at.WorkspaceUUID}, true
}

// IndexedMemberships returns where a User is by their Memberships. It leaves out a Membership in an
// Org or a Workspace that the views do not know yet.
func (v *Views) IndexedMemberships(user string) []tenancy.IndexedMembership {
	var places []tenancy.IndexedMembership
	firstAdmins := map[string]string{}
	for _, m := range v.MembershipsOf(user) {
		cluster := kcp.ClusterOf(m)
		org, ok := v.OrgByCluster(cluster)
		if !ok || org.Organization == nil || !m.DeletionTimestamp.IsZero() || m.Spec.Role == "" && !m.Spec.Manager {
			continue
		}
		if _, ok := firstAdmins[cluster]; !ok {
			firstAdmins[cluster] = tenancy.FirstAdmin(org, func() []*v1alpha1.Membership { return v.MembershipsIn(cluster) })
		}
		p := tenancy.IndexedMembership{Org: org, Role: m.Spec.Role, Manager: m.Spec.Manager, FirstAdmin: firstAdmins[cluster]}
		if uuid := tenancy.WorkspaceUUID(m); uuid != "" {
			ws, ok := v.Workspace(org.UUID(), uuid)
			if !ok {
				continue
			}
			p.Workspace = &ws
		}
		places = append(places, p)
	}
	return places
}
