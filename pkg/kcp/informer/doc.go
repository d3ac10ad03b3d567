// Package informer lists and watches one kind in all logical clusters at once, through
// the virtual workspaces of an APIExport: one watch per kind and per shard endpoint,
// never one per logical cluster.
//
// An Informer holds the objects and tells handlers of changes. Endpoints points
// informers at the endpoints that an APIExportEndpointSlice names, while shards come and
// go. Objects that several endpoints serve are overlaid: the first endpoint that has an
// object shows it.
package informer
