package server

import (
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

func (c *controllers) allWorkspaces() []controller.Key {
	var keys []controller.Key
	for ws := range c.in.Workspaces.All() {
		if cluster := kcp.ClusterOf(ws); cluster != c.clusters.Orgs {
			keys = append(keys, controller.Key{Cluster: cluster, Name: ws.Name})
		}
	}
	return keys
}
