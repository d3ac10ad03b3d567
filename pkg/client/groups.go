package client

import rest "github.com/faroshq/kedge-hub/apis/rest/v1"

// Groups are the mappings of groups of the identity provider in an organization.
type Groups = Objects[rest.GroupMapping, rest.CreateGroupMapping, None]

// Groups returns the requests about the mappings of groups in the organization.
func (o Org) Groups() Groups {
	return Groups{c: o.c, r: o.at("", "/groups", nil), name: func(m *rest.GroupMapping) string { return m.ID }}
}
