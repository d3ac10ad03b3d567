// Package informer lists and watches one kind in all logical clusters at once, through
// the virtual workspaces of an APIExport: one watch per kind and per shard endpoint,
// never one per logical cluster.
//
// An Informer caches the objects and calls handlers with changes. Endpoints keeps one
// informer for each endpoint that an APIExportEndpointSlice names, while shards are added
// and removed. If several endpoints serve an object, the first of them wins.
package informer
