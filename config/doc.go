// Package config embeds the manifests that the hub applies to kcp: the APIResourceSchemas,
// which make generate derives from apis/ (schemas/), and the APIExports, WorkspaceTypes and
// APIBindings of the tree (kcp/), which are templates that pkg/kcp/bootstrap fills in. It also
// embeds the OpenAPI document of the hub (openapi/), which is written by hand.
//
// # Decisions
//
//   - There are two WorkspaceTypes. organization binds the tenancy APIs of the hub and of kcp,
//     allows children of type workspace only, and has an initializer that the hub serves.
//     workspace extends nothing and allows no children, so that tenants see neither of those
//     APIs.
//   - The export tenancy.kedge.faros.sh claims Workspaces and APIBindings. One wildcard watch
//     per kind then shows all Memberships and child Workspaces of the platform, and all
//     APIBindings of Organizations' workspaces. Without the claim on APIBindings, kcp shows
//     the owner of an export only the bindings of that export.
//   - A second export, access.kedge.faros.sh, has no APIs and is bound in every child
//     Workspace. Through its claims, one watch per kind shows the objects that the hub
//     maintains there. Otherwise the hub would need a watch in each Workspace.
//   - APIResourceSchemas are immutable in kcp: a change of the API creates one with a new name.
package config
