package tenancy

import (
	"cmp"
	"encoding/json"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// Org is an Organization and where it is.
type Org struct {
	*v1alpha1.Organization
	// ClusterID is the logical cluster of the Org's own workspace; empty until
	// kcp has made it.
	ClusterID string
}

// UUID is the Org's identity (O-1).
func (o Org) UUID() string { return o.Name }

// CreatedBy is the name of the User who asked for the Org.
func (o Org) CreatedBy() string { return o.Annotations[v1alpha1.CreatedByAnnotation] }

// Deleted tells whether the Org is soft-deleted or going away (O-13).
func (o Org) Deleted() bool {
	return o.Status.DeletionRequestedAt != nil || !o.DeletionTimestamp.IsZero()
}

// Workspace is what the hub knows of a child Workspace, read off kcp's object.
type Workspace struct {
	UUID        string
	OrgUUID     string
	DisplayName string
	// ClusterID is empty until kcp has scheduled the Workspace.
	ClusterID string
	CreatedAt metav1.Time
	CreatedBy string
	Labels    map[string]string
	// Generation and ResourceVersion are those of kcp's object.
	Generation      int64
	ResourceVersion string
	// KCPReady says that kcp has finished with the Workspace.
	KCPReady bool
	// Status is the hub's own: Ready only when everything in it is there (O-11).
	Status              v1alpha1.CommonStatus
	DeletionRequestedAt *metav1.Time
	// Terminating says that kcp is removing the Workspace.
	Terminating bool
}

// Deleted tells whether the Workspace is soft-deleted or going away (O-13).
func (w Workspace) Deleted() bool { return w.DeletionRequestedAt != nil || w.Terminating }

// Ready tells whether all of the Workspace is there (O-11).
func (w Workspace) Ready() bool { return w.KCPReady && w.Status.Phase == v1alpha1.PhaseReady }

// WorkspaceOf reads a child Workspace of org off kcp's object. An unreadable
// annotation counts as absent, but for the deletion mark, which then counts as
// set: what cannot be understood is not served.
func WorkspaceOf(org string, ws *kcptenancyv1alpha1.Workspace) Workspace {
	w := Workspace{
		UUID:            ws.Name,
		OrgUUID:         org,
		DisplayName:     ws.Annotations[v1alpha1.DisplayNameAnnotation],
		ClusterID:       ws.Spec.Cluster,
		CreatedAt:       ws.CreationTimestamp,
		CreatedBy:       ws.Annotations[v1alpha1.CreatedByAnnotation],
		Labels:          ws.Labels,
		Generation:      ws.Generation,
		ResourceVersion: ws.ResourceVersion,
		KCPReady:        ws.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady,
		Terminating:     !ws.DeletionTimestamp.IsZero(),
	}
	if raw, ok := ws.Annotations[v1alpha1.StatusAnnotation]; ok {
		var status v1alpha1.CommonStatus
		if json.Unmarshal([]byte(raw), &status) == nil {
			w.Status = status
		}
	}
	w.Status.Phase = PhaseOf(w.Status)
	if raw, ok := ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation]; ok {
		at, err := time.Parse(time.RFC3339, raw)
		if err != nil {
			at = ws.CreationTimestamp.Time
		}
		w.DeletionRequestedAt = &metav1.Time{Time: at}
	}
	return w
}

// PhaseOf is Progressing where no controller has seen the object yet.
func PhaseOf(s v1alpha1.CommonStatus) v1alpha1.Phase {
	return cmp.Or(s.Phase, v1alpha1.PhaseProgressing)
}

// WorkspaceUUID is the Workspace that a Membership is in; empty for the Org itself.
func WorkspaceUUID(m *v1alpha1.Membership) string {
	if m.Spec.WorkspaceRef == nil {
		return ""
	}
	return m.Spec.WorkspaceRef.Name
}

// ClusterKind is what a logical cluster is to the platform.
type ClusterKind int

// The kinds of cluster. The zero value is unknown and is refused like a foreign
// one.
const (
	// ClusterUnknown is none that the hub knows.
	ClusterUnknown ClusterKind = iota
	// ClusterHub is the root workspace, users, providers or orgs.
	ClusterHub
	// ClusterOrg is an Org's own workspace.
	ClusterOrg
	// ClusterWorkspace is a child Workspace.
	ClusterWorkspace
)

// Cluster is where a logical cluster is in the tree.
type Cluster struct {
	ID            string
	Kind          ClusterKind
	OrgUUID       string
	WorkspaceUUID string
}
