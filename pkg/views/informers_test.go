package views

import (
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/kcp"
)

func TestOrgBindings_keepOnlyWhatIsCompared(t *testing.T) {
	t.Parallel()
	spec := func(state kcpapisv1alpha2.AcceptablePermissionClaimState) (s kcpapisv1alpha2.APIBindingSpec) {
		s.Reference.Export = &kcpapisv1alpha2.ExportBindingReference{Path: "root", Name: "ours"}
		c := kcpapisv1alpha2.AcceptablePermissionClaim{State: state}
		c.Resource, c.Verbs, c.Selector.MatchAll = "workspaces", []string{"list"}, true
		s.PermissionClaims = append(s.PermissionClaims, c)
		return s
	}
	wanted := &kcpapisv1alpha2.APIBinding{Spec: spec(kcpapisv1alpha2.ClaimAccepted)}
	now := metav1.Now()
	for _, state := range []kcpapisv1alpha2.AcceptablePermissionClaimState{kcpapisv1alpha2.ClaimAccepted, kcpapisv1alpha2.ClaimRejected} {
		b := &kcpapisv1alpha2.APIBinding{Spec: spec(state)}
		b.Name, b.UID, b.ResourceVersion, b.DeletionTimestamp = "ours-abcde", "uid", "7", &now
		b.Annotations = map[string]string{logicalcluster.AnnotationKey: "org1", "more": "of it"}
		b.Labels, b.Finalizers = map[string]string{"a": "label"}, []string{"kcp's"}
		b.Status.APIExportClusterName = "providers"
		b.Status.BoundResources = []kcpapisv1alpha2.BoundAPIResource{{Group: "tenancy.kedge.faros.sh"}}
		bindingOnly([]*kcpapisv1alpha2.APIBinding{wanted})(b)

		want := &kcpapisv1alpha2.APIBinding{Spec: spec(state)}
		want.Name, want.UID, want.ResourceVersion, want.DeletionTimestamp = "ours-abcde", "uid", "7", &now
		want.Annotations = map[string]string{logicalcluster.AnnotationKey: "org1"}
		want.Status.APIExportClusterName = "providers"
		require.Equal(t, want, b)
		require.Equal(t, "org1", kcp.ClusterOf(b))
		require.Equal(t, state == kcpapisv1alpha2.ClaimAccepted, b.Spec.Reference.Export == wanted.Spec.Reference.Export)
	}
}
