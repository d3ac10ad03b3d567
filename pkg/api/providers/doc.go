// Package providers serves the providers that a Workspace can enable: their state in the
// Workspace, the permission claims that they request, and the objects that disabling them deletes.
//
// Enabling a provider creates one APIBinding, and disabling it deletes that APIBinding. The hub
// does both with the credential of the caller: kcp checks whether the caller may bind the export,
// and the hub adds no rights. After a crash in between there is nothing to complete.
//
// The state of a provider is that of the APIBinding in kcp, so a binding that somebody created
// with kubectl counts as well. An annotation of the binding names its entry: after the entry is
// deleted, the provider is listed with the scope Deleted and can be disabled.
package providers
