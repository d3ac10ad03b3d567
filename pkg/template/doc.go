// Package template loads the operator's Workspace template (--workspace-template): a
// directory of manifests whose objects the hub keeps in every child Workspace. Load
// validates all of them and reports every problem with file and document. It refuses
// manifests that no kcp could accept, objects of kcp's or the hub's own APIs, and names,
// labels and annotations that the hub reserves. It calls no API: the workspace reconciler
// applies the objects.
//
// The hub applies the objects server-side and repairs them. It has no informers for kinds
// that it does not know: the proxy reports each write of a tenant to one of these objects,
// and the hub applies the object again a second later. It also applies all objects again
// every nine minutes.
package template
