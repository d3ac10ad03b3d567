// Package template reads the operator's Workspace template: a folder of
// manifests whose objects the hub keeps in every child Workspace. It refuses what
// no kcp could make sense of, and what belongs to the hub; it talks to nobody.
package template
