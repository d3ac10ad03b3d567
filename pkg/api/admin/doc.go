// Package admin serves /api/admin for platform admins: people and Organizations with their
// quotas, registrations of people, soft-deletion of Organizations, and pending deletions. It
// gives no access to the contents of a tenant's Workspaces.
package admin
