// Package orgs answers under /api/orgs: the caller's Orgs.
package orgs
