// Package bot reconciles Bots (O-14). In the Workspace of a Bot it keeps the ServiceAccount,
// the binding to the ClusterRole of its role and the Secrets that its tokens are bound to.
// The Bot is the source of truth: the controller reverts changes of tenants in the Workspace,
// and removes a token from the Bot if its Secret or ServiceAccount was deleted.
//
// The deletion of a ServiceAccount in kcp revokes all its tokens: its successor has another
// UID, and no older token of the account can work again.
//
// The step of a role that was lowered asks kcp until it allows the Bot no more than its role. It
// asks less and less often while a binding that the hub did not make gives the Bot more: no watch
// of the hub has such a binding.
//
// A Bot is deleted when its Workspace no longer exists.
package bot
