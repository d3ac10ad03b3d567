// Package admin serves /api/admin, which is for platform admins: who registers,
// and how much people and Orgs may have.
package admin
