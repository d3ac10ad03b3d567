// Package accounts asks kcp how it issues tokens of ServiceAccounts: under which issuer, for
// which audiences, signed with which keys, and whether it accepts the tokens of Bots. The hub
// does not read kcp's flags, so it has a token issued for an account of its own.
package accounts
