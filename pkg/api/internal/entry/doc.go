// Package entry has the fields of a CatalogEntry that the answers about the catalog and those
// about providers share.
package entry
