// Package views answers from memory what requests ask: people, memberships and
// topology. The views are filled on every replica by one wildcard watch per kind
// and endpoint; nothing here calls kcp when asked.
package views
