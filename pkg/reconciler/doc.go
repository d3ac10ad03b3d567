// Package reconciler holds what the controllers of the hub have in common: the
// dependencies that NewController of every reconciler takes, and the events that concern
// more than one of them.
//
// Each subpackage is the controller of one kind. Its controller.go subscribes to the views
// that enqueue its keys, reads from views and writes to kcp. Its other files contain the
// steps. A step uses neither clients nor views: its constructor takes a few funcs.
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
//	activation       logical clusters that kcp's admin has made inactive
package reconciler
