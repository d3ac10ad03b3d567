// Package httpmw is what every request passes on its way to a handler: a request
// id, recovery from a panic, log and metrics, who the caller is, and which Org
// and Workspace of theirs it is about.
package httpmw
