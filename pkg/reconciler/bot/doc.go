// Package bot reconciles Bots (O-14). In the Workspace of a Bot it keeps the ServiceAccount,
// the binding to the ClusterRole of its role and the Secrets that its tokens are bound to.
// The Bot is the truth: what tenants alter in the Workspace is set back, and a token whose
// Secret or ServiceAccount was deleted there is removed from the Bot.
//
// A ServiceAccount that was deleted in kcp counts as a revocation of all tokens: its
// successor has another UID, and no older token of the account can work again.
//
// A Bot whose Workspace does not exist any more is deleted.
package bot
