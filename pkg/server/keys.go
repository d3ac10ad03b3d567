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

func (c *controllers) allUsers() []controller.Key {
	var keys []controller.Key
	for u := range c.in.Users.All() {
		keys = append(keys, controller.Key{Cluster: c.clusters.Users, Name: u.Name})
	}
	return keys
}

// allIndexed are the Users, and those of whom only an index is left: who goes is gone
// before it.
func (c *controllers) allIndexed() []controller.Key {
	keys := c.allUsers()
	for i := range c.in.Indexes.All() {
		if _, ok := c.in.Users.Get(c.clusters.Users, i.Name); !ok {
			keys = append(keys, controller.Key{Cluster: c.clusters.Users, Name: i.Name})
		}
	}
	return keys
}

func (c *controllers) allMemberships() []controller.Key {
	var keys []controller.Key
	for m := range c.in.Memberships.All() {
		keys = append(keys, controller.Key{Cluster: kcp.ClusterOf(m), Name: m.Name})
	}
	return keys
}
