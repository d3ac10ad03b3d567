package views

import (
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// newEnabled finds the bindings of an APIExport in child Workspaces. It leaves out the export that
// all bind.
func newEnabled() *index[v1alpha1.APIExportRef, *kcpapisv1alpha2.APIBinding] {
	return newIndex(func(b *kcpapisv1alpha2.APIBinding) []v1alpha1.APIExportRef {
		if ref, ok := exportOf(b); ok {
			return []v1alpha1.APIExportRef{ref}
		}
		return nil
	})
}

// exportOf is the APIExport that a binding names; ok is false if the index leaves it out.
func exportOf(b *kcpapisv1alpha2.APIBinding) (ref v1alpha1.APIExportRef, ok bool) {
	if b.Spec.Reference.Export == nil || b.Spec.Reference.Export.Name == tenancy.ExportAccess {
		return ref, false
	}
	return v1alpha1.APIExportRef{Path: b.Spec.Reference.Export.Path, Name: b.Spec.Reference.Export.Name}, true
}

// WorkspacesBinding returns the keys of the child Workspaces with a binding that names the
// APIExport by this path, in no order.
func (v *Views) WorkspacesBinding(ref v1alpha1.APIExportRef) (found []Key) {
	seen := map[string]bool{}
	for _, b := range v.enabled.all(ref) {
		cluster := kcp.ClusterOf(b)
		if key, ok := v.WorkspaceKeyOf(cluster); ok && !seen[cluster] {
			found = append(found, key)
		}
		seen[cluster] = true
	}
	return found
}

// WorkspacesEnabling returns the number of child Workspaces with a binding that names the APIExport by this
// path: of the Organization in a logical cluster, or of all without one.
func (v *Views) WorkspacesEnabling(ref v1alpha1.APIExportRef, org string) (n int) {
	for _, key := range v.WorkspacesBinding(ref) {
		if org == "" || key.Cluster == org {
			n++
		}
	}
	return n
}

// MemberResources are the resources of the API of a binding in a child Workspace that members
// may write, as tenancy.MemberResources defines them. None means all.
func (v *Views) MemberResources(cluster string, b *kcpapisv1alpha2.APIBinding) []string {
	var entries []tenancy.ScopedEntry
	org := v.Cluster(cluster).OrgUUID
	if ref, ok := exportOf(b); ok && org != "" {
		entries = v.byExport(org, ref)
	}
	return tenancy.MemberResources(org, b, entries)
}

// HubRole finds a ClusterRole of a child Workspace. Those of the hub have their rules.
func (v *Views) HubRole(cluster, name string) (*rbacv1.ClusterRole, bool) {
	return v.ClusterRoles.Get(cluster, name)
}

// BindingsIn returns the APIBindings of a child Workspace, in no order.
func (v *Views) BindingsIn(cluster string) []*kcpapisv1alpha2.APIBinding {
	return v.Bindings.InCluster(cluster)
}
