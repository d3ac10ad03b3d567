package kcp

import "github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"

// CatalogEntries of the cluster.
func (c *Clients) CatalogEntries(cluster string) *Client[*v1alpha1.CatalogEntry] {
	return clientFor(c, c.ClusterURL(cluster), v1alpha1.SchemeGroupVersion, "catalogentries", func() *v1alpha1.CatalogEntry { return &v1alpha1.CatalogEntry{} })
}
