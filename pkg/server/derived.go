package server

import (
	"github.com/faroshq/kedge-hub/pkg/controller"
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
