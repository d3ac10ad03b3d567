// Package accounts asks kcp how it issues tokens of ServiceAccounts: under which issuer, for
// which audiences, signed with which keys, whether it accepts the tokens of Bots, and whether
// it looks up the objects that they are bound to. The hub cannot read kcp's flags, so it requests
// tokens for a ServiceAccount of its own.
package accounts
