// Package audit writes the audit log: one JSON object per line for each change, with the
// actor, the action, the objects and the HTTP status. It contains no tokens and no request
// or response bodies.
package audit
