package tenancy

import (
	"cmp"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// StorageLimits returns the limits of what an Organization stores: its own where they are set, else those of
// def. 0 is no limit.
func StorageLimits(own *v1alpha1.StorageLimits, def v1alpha1.StorageLimits) v1alpha1.StorageLimits {
	if own == nil {
		return def
	}
	return v1alpha1.StorageLimits{
		Bytes:                cmp.Or(own.Bytes, def.Bytes),
		WorkspaceBytes:       cmp.Or(own.WorkspaceBytes, def.WorkspaceBytes),
		WorkspaceObjects:     cmp.Or(own.WorkspaceObjects, def.WorkspaceObjects),
		WorkspaceCRDs:        cmp.Or(own.WorkspaceCRDs, def.WorkspaceCRDs),
		WorkspaceAPIBindings: cmp.Or(own.WorkspaceAPIBindings, def.WorkspaceAPIBindings),
		WorkspaceRoles:       cmp.Or(own.WorkspaceRoles, def.WorkspaceRoles),
	}
}
