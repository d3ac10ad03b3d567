package tenancy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

func TestWorkspaceEnd_isASoftDeletionFromThatSecondOn(t *testing.T) {
	t.Parallel()
	end := metav1.NewTime(botTime)
	stored := &kcptenancyv1alpha1.Workspace{}
	stored.Annotations = map[string]string{}
	tenancy.SetWorkspaceEnd(stored.Annotations, &end)
	w := tenancy.WorkspaceOf("org", stored)
	require.True(t, end.Equal(w.ExpiresAt))
	require.False(t, w.Deleted())
	require.False(t, tenancy.MarkEnded(w, stored.Annotations, botTime.Add(-time.Nanosecond)))
	require.True(t, w.AtEnd().Deleted())
	require.True(t, w.AtEnd().Expired())

	require.True(t, tenancy.MarkEnded(w, stored.Annotations, botTime))
	marked := tenancy.WorkspaceOf("org", stored)
	require.True(t, marked.Deleted())
	require.True(t, marked.Expired())
	require.False(t, tenancy.MarkEnded(marked, stored.Annotations, botTime.Add(time.Hour)), "once")
	require.True(t, marked.AtEnd().DeletionRequestedAt.Equal(&end))

	tenancy.SetWorkspaceEnd(stored.Annotations, nil)
	require.NotContains(t, stored.Annotations, v1alpha1.ExpiresAtAnnotation)
}

func TestGraces_areShorterAfterAnEnd(t *testing.T) {
	t.Parallel()
	end, before := metav1.NewTime(botTime), metav1.NewTime(botTime.Add(-time.Hour))
	g := tenancy.Graces{Deletion: 720 * time.Hour, Expired: 24 * time.Hour}
	require.Nil(t, g.PurgeAt(tenancy.Workspace{ExpiresAt: &end}))
	require.Equal(t, botTime.Add(24*time.Hour), g.PurgeAt(tenancy.Workspace{ExpiresAt: &end, DeletionRequestedAt: &end}).Time)
	require.Equal(t, before.Add(720*time.Hour), g.PurgeAt(tenancy.Workspace{ExpiresAt: &end, DeletionRequestedAt: &before}).Time, "by a person, before its end")
	require.Equal(t, botTime.Add(720*time.Hour), g.PurgeAt(tenancy.Workspace{DeletionRequestedAt: &end}).Time)
	g.Deletion = time.Hour
	require.Equal(t, botTime.Add(time.Hour), g.PurgeAt(tenancy.Workspace{ExpiresAt: &end, DeletionRequestedAt: &end}).Time, "at most the other one")
}

func TestGone_saysWhenAndWhy(t *testing.T) {
	t.Parallel()
	end, before := metav1.NewTime(botTime), metav1.NewTime(botTime.Add(-time.Hour))
	org := tenancy.Org{Organization: tenancy.NewOrganization(botOrg, "Acme", "alice")}
	require.Contains(t, tenancy.Gone(org, &tenancy.Workspace{ExpiresAt: &end, DeletionRequestedAt: &end}), "time of the workspace was over at 2026-03-01T12:00:00Z")
	require.Contains(t, tenancy.Gone(org, &tenancy.Workspace{ExpiresAt: &end, DeletionRequestedAt: &before}), "workspace was deleted at 2026-03-01T11:00:00Z")
	org.Status.DeletionRequestedAt = &before
	require.Contains(t, tenancy.Gone(org, nil), "organization was deleted at 2026-03-01T11:00:00Z")
}
