package views

import (
	"sync"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// enabled finds the child Workspaces that bind an APIExport. It leaves out the export that all
// bind.
type enabled struct {
	mu sync.RWMutex
	// byExport has the logical clusters and the number of bindings.
	byExport map[v1alpha1.APIExportRef]map[string]int
}

func newEnabled() enabled {
	return enabled{byExport: map[v1alpha1.APIExportRef]map[string]int{}}
}

func (e *enabled) change(cluster string, old, new *kcpapisv1alpha2.APIBinding) {
	was, did := exportOf(old)
	is, does := exportOf(new)
	if did == does && was == is {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if did {
		if e.byExport[was][cluster]--; e.byExport[was][cluster] <= 0 {
			remove(e.byExport, was, cluster)
		}
	}
	if does {
		put(e.byExport, is, cluster, e.byExport[is][cluster]+1)
	}
}

// exportOf is the APIExport that a binding names; ok is false if the index leaves it out.
func exportOf(b *kcpapisv1alpha2.APIBinding) (ref v1alpha1.APIExportRef, ok bool) {
	if b == nil || b.Spec.Reference.Export == nil || b.Spec.Reference.Export.Name == tenancy.ExportAccess {
		return ref, false
	}
	return v1alpha1.APIExportRef{Path: b.Spec.Reference.Export.Path, Name: b.Spec.Reference.Export.Name}, true
}

// WorkspacesBinding returns the keys of the child Workspaces with a binding that names the
// APIExport by this path, in no order.
func (v *Views) WorkspacesBinding(ref v1alpha1.APIExportRef) (found []Key) {
	v.enabled.mu.RLock()
	clusters := make([]string, 0, len(v.enabled.byExport[ref]))
	for cluster := range v.enabled.byExport[ref] {
		clusters = append(clusters, cluster)
	}
	v.enabled.mu.RUnlock()
	for _, cluster := range clusters {
		if key, ok := v.WorkspaceKeyOf(cluster); ok {
			found = append(found, key)
		}
	}
	return found
}

// MemberResources are the resources of the API of a binding in a child Workspace that members
// may write, as tenancy.MemberResources defines them. None means all.
func (v *Views) MemberResources(cluster string, b *kcpapisv1alpha2.APIBinding) []string {
	var entries []tenancy.ScopedEntry
	org := v.topology.cluster(cluster).OrgUUID
	if ref, ok := exportOf(b); ok && org != "" {
		entries = v.catalogEntriesByExport(org, ref)
	}
	return tenancy.MemberResources(org, b, entries)
}

// BindingsIn returns the APIBindings of a child Workspace, in no order.
func (v *Views) BindingsIn(cluster string) []*kcpapisv1alpha2.APIBinding {
	return v.Bindings.InCluster(cluster)
}
