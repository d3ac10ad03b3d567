// Package admission writes the admission policy of a child Workspace to kcp, and asks kcp
// whether it enforces the policy.
package admission
