// Package admission writes the admission policy of a child Workspace to kcp, asks kcp
// whether it enforces the policy, and removes tenant-made objects from the time before it did.
package admission
