// Package reconciler holds what the controllers of the hub have in common: the
// dependencies that NewController of every reconciler takes, and the events that concern
// more than one of them.
//
// Each subpackage is the controller of one kind:
//
//	organization     an Organization's kcp Workspace, first admin and members
//	workspace        the content of a child Workspace
//	user             sign-up, and the end of a User
//	membership       the status of a Membership
//	membershipindex  the UserMembershipIndex of a User
//	access           the RBAC of people in a child Workspace
//	bot              a Bot with its ServiceAccount, binding and tokens
//	session          what an ended Session leaves behind
//	catalogentry     what a CatalogEntry offers, and the right to bind it
//	customresources  the list of tenants' CustomResourceDefinitions on a child Workspace
//	spare            workspaces that are ready for the next create
//	activation       logical clusters that kcp's admin has made inactive
//
// # A controller
//
// Its controller.go has NewController, which subscribes to the views that enqueue its keys and makes its
// steps. The other files contain the steps, one in a file, with a test beside it. A step uses neither
// clients nor views. It gets repositories (package internal/objects), which read a kind from the cache
// and write it to kcp, small interfaces of what else the views know, and single funcs. Package tenancy
// tells it what is desired, and package controller runs the steps and sends the patch of a pass.
//
// # Who is enqueued
//
// A controller follows fields: it names those of another kind from which its objects are derived, and a
// change of any other field does not enqueue it. An object that is added, removed or replaced, or whose
// deletion begins, always does. Fields that several controllers follow are in events.go, such as
// RightsOfUser and WorkspaceState. What may take rights away is enqueued ahead of other keys.
//
// The table of package server has a row for every field of an Organization and of a Membership, with the
// keys that a change of it enqueues. It prints itself:
//
//	go test ./pkg/server -run TestControllers_enqueue -v
//
// Every controller looks at all its keys again every ten minutes, and at the begin of a term.
//
// # Rights
//
// The bindings of people, of Bots and of CatalogEntries are derived. tenancy.CompareRBAC compares those
// in the cache with the desired ones, and objects.RBAC writes the difference: what ended first. Nothing
// else writes such a binding. Each of the three controllers looks only at its own objects, which it
// knows by their labels or names.
package reconciler
