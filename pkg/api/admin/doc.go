// Package admin serves /api/admin for platform admins: people and Organizations with their
// quotas, registrations of people, soft-deletion of Organizations, and pending deletions.
// Auditors read people and Organizations. It gives no access to the contents of a tenant's
// Workspaces.
package admin
