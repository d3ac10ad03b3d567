package tenancy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestStorageLimits_areTheHubsWhereAnOrgHasNone(t *testing.T) {
	t.Parallel()
	def := v1alpha1.StorageLimits{Bytes: 1, WorkspaceBytes: 2, WorkspaceObjects: 3, WorkspaceCRDs: 4}
	require.Equal(t, def, tenancy.StorageLimits(nil, def))
	require.Equal(t, def, tenancy.StorageLimits(&v1alpha1.StorageLimits{}, def))
	own := v1alpha1.StorageLimits{Bytes: 10, WorkspaceBytes: 20, WorkspaceObjects: 30, WorkspaceCRDs: 40, WorkspaceAPIBindings: 50, WorkspaceRoles: 60}
	require.Equal(t, own, tenancy.StorageLimits(&own, def))
	require.Equal(t, v1alpha1.StorageLimits{Bytes: 1, WorkspaceBytes: 20, WorkspaceObjects: 3, WorkspaceCRDs: 4},
		tenancy.StorageLimits(&v1alpha1.StorageLimits{WorkspaceBytes: 20}, def))
}
