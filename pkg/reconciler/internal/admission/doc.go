// Package admission writes the admission policy of a child Workspace to kcp, asks kcp
// whether it enforces the policy, and removes what tenants made before it did.
package admission
