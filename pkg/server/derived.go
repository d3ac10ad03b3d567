package server

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// derivedIn is the Workspace in whose logical cluster something changed that the hub
// keeps there; ok is false where it is no Workspace's.
func (c *controllers) derivedIn(cluster string) (of controller.Key, ok bool) {
	at := c.views.Cluster(cluster)
	if at.Kind != tenancy.ClusterWorkspace {
		return controller.Key{}, false
	}
	org, ok := c.views.Org(at.OrgUUID)
	return controller.Key{Cluster: org.ClusterID, Name: at.WorkspaceUUID}, ok
}

func (c *controllers) wakeDerived(cluster string) {
	if key, ok := c.derivedIn(cluster); ok {
		c.wakeWorkspace(key)
	}
}

// wakeContent enqueues the Workspace whose admission policy changed.
func (c *controllers) wakeContent(cluster string) {
	if key, ok := c.derivedIn(cluster); ok {
		c.workspace.Enqueue(key)
	}
}

// onClusterRole brings back the Memberships, too, that may name the role.
func (c *controllers) onClusterRole(old, new *rbacv1.ClusterRole) {
	r := current(old, new)
	key, ok := c.derivedIn(kcp.ClusterOf(r))
	if !ok {
		return
	}
	c.wakeWorkspace(key)
	if tenancy.ReservedRole(r.Name) {
		return
	}
	for _, m := range c.views.MembershipsAt(key.Cluster, key.Name) {
		if len(m.Spec.Roles) > 0 {
			c.membership.Enqueue(controller.Key{Cluster: key.Cluster, Name: m.Name})
		}
	}
}

// onClusterRoleBinding brings back the Membership, too, that shows what is bound.
func (c *controllers) onClusterRoleBinding(old, new *rbacv1.ClusterRoleBinding) {
	key, ok := c.derivedIn(kcp.ClusterOf(current(old, new)))
	if !ok {
		return
	}
	c.wakeWorkspace(key)
	for _, b := range []*rbacv1.ClusterRoleBinding{old, new} {
		if b == nil || b.Labels[v1alpha1.UserLabel] == "" {
			continue
		}
		if m, ok := c.views.Membership(key.Cluster, tenancy.MembershipName(b.Labels[v1alpha1.UserLabel], key.Name)); ok && len(m.Spec.Roles) > 0 {
			c.membership.Enqueue(controller.Key{Cluster: key.Cluster, Name: m.Name})
		}
	}
}
