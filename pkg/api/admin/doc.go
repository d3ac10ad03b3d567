// Package admin serves /api/admin for platform admins: registrations of people, quotas of
// people and Organizations, and pending deletions. It gives no access to the contents of a
// tenant's Workspaces.
package admin
