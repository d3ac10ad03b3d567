// Package organization makes an Org out of an Organization: its kcp Workspace,
// the first admin's Membership while the hub's initializer holds kcp back, and
// then Ready (O-11).
package organization
