package views

import (
	"testing"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// A spare is in no view but that of spares. When it is taken, all others learn of it as of something new.
func TestSpares_areUnknownUntilTheyAreTaken(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	var told []string
	tell := func(kind string) func(Change[*kcptenancyv1alpha1.Workspace]) {
		return func(c Change[*kcptenancyv1alpha1.Workspace]) {
			what := " added"
			if c.Removed() {
				what = " removed"
			}
			told = append(told, kind+what)
		}
	}
	v.OrgWorkspaces.OnChange(tell("org"))
	v.ChildWorkspaces.OnChange(tell("child"))
	v.Spares.OnChange(tell("spare"))
	handle := func(old, new *kcptenancyv1alpha1.Workspace) {
		workspacesOf(v)(old, new)
		v.Spares.handle(old, new)
	}
	spare := func(ws *kcptenancyv1alpha1.Workspace) *kcptenancyv1alpha1.Workspace {
		made := ws.DeepCopy()
		made.Labels = map[string]string{v1alpha1.SpareLabel: "hash"}
		made.Status.Phase = kcpcorev1alpha1.LogicalClusterPhaseReady
		made.Annotations[v1alpha1.StatusAnnotation] = `{"conditions":[{"type":"PolicyEnforced","status":"True"},{"type":"AccessReady","status":"False"}]}`
		return made
	}
	org, child := workspace("o", orgUUID, "org1"), workspace("org1", wsUUID, "ws1")
	handle(nil, spare(org))
	require.False(t, v.SparesIn("o")[0].Whole, "it has no Workspace yet")
	handle(nil, spare(child))

	require.True(t, v.SparesIn("o")[0].Takeable("hash"))
	require.True(t, v.SparesIn("org1")[0].Takeable("hash"))
	for _, cluster := range []string{"org1", "ws1"} {
		require.Equal(t, tenancy.ClusterUnknown, v.Cluster(cluster).Kind)
		_, ok := v.WorkspaceKeyOf(cluster)
		require.False(t, ok)
		_, ok = v.SpareKeyOf(cluster)
		require.True(t, ok, "controllers know it")
	}
	_, ok := v.OrgByCluster("org1")
	require.False(t, ok)
	require.Empty(t, v.Workspaces(orgUUID))
	require.Zero(t, v.UsedWorkspaces(orgUUID, nil))

	handle(spare(org), org)
	require.Equal(t, tenancy.ClusterOrg, v.Cluster("org1").Kind)
	require.Empty(t, v.Workspaces(orgUUID), "the Workspace in it is a spare still")
	handle(spare(child), child)
	require.Equal(t, tenancy.ClusterWorkspace, v.Cluster("ws1").Kind)
	require.Empty(t, v.SparesIn("o"))
	require.Empty(t, v.SpareParents())
	require.Equal(t, []string{"spare added", "spare added", "org added", "spare removed", "child added", "spare removed"}, told)
}
