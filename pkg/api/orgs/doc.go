// Package orgs serves /api/orgs: the Organizations of the caller, their settings, deletion
// and undeletion.
package orgs
