// Package accounts asks kcp how it issues tokens of ServiceAccounts: under which issuer, for
// which audiences, signed with which keys, whether it accepts the tokens of Bots, and whether
// it looks up what they are bound to. The hub does not read kcp's flags, so it has tokens issued
// for an account of its own.
package accounts
