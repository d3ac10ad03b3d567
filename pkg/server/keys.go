package server

import (
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
)

func (c *controllers) allOrganizations() []controller.Key {
	var keys []controller.Key
	for _, o := range c.in.Organizations.List() {
		keys = append(keys, controller.Key{Cluster: c.clusters.Orgs, Name: o.Name})
	}
	return keys
}

func (c *controllers) allWorkspaces() []controller.Key {
	var keys []controller.Key
	for _, ws := range c.in.Workspaces.List() {
		if cluster := kcp.ClusterOf(ws); cluster != c.clusters.Orgs {
			keys = append(keys, controller.Key{Cluster: cluster, Name: ws.Name})
		}
	}
	return keys
}

func (c *controllers) allUsers() []controller.Key {
	var keys []controller.Key
	for _, u := range c.in.Users.List() {
		keys = append(keys, controller.Key{Cluster: c.clusters.Users, Name: u.Name})
	}
	return keys
}

// allIndexed are the Users, and those of whom only an index is left: who goes is gone
// before it.
func (c *controllers) allIndexed() []controller.Key {
	keys := c.allUsers()
	for _, i := range c.in.Indexes.List() {
		if _, ok := c.in.Users.Get(c.clusters.Users, i.Name); !ok {
			keys = append(keys, controller.Key{Cluster: c.clusters.Users, Name: i.Name})
		}
	}
	return keys
}

func (c *controllers) allMemberships() []controller.Key {
	var keys []controller.Key
	for _, m := range c.in.Memberships.List() {
		keys = append(keys, controller.Key{Cluster: kcp.ClusterOf(m), Name: m.Name})
	}
	return keys
}
