// Package template loads the operator's Workspace template (--workspace-template): a
// directory of manifests whose objects the hub keeps in every child Workspace. Load
// validates all of them and reports every problem with file and document. It refuses
// manifests that no kcp could accept, objects of kcp's or the hub's own APIs, and names,
// labels and annotations that the hub reserves. It calls no API: the workspace reconciler
// applies the objects.
//
// The hub applies the objects server-side. Those of kinds that kcp serves by itself get a label of the
// hub, and the admission policy keeps tenants from them. The hub has no informers for other
// kinds: it applies all objects again every nine minutes, and APIBindings at once.
package template
