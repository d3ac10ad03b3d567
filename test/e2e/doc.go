// Package e2e runs the built programs as a user does: kedge-hub with its embedded kcp, kedge,
// and the real kubectl.
package e2e
