// Package providers serves the providers that a Workspace can enable: their state there, what
// they ask for, and what disabling them would lose.
//
// To enable a provider is to create one APIBinding, and to disable it is to delete it. Both are
// done with the credential of the caller: kcp itself asks whether they may bind the export, and
// the hub lends them no right. A crash in between leaves nothing to complete.
//
// The state of a provider is what kcp says of the binding, so that a binding that somebody made
// with kubectl counts like one that was made here. The binding names its entry in an annotation:
// after the entry is deleted it is listed with the scope Deleted and can be disabled.
package providers
