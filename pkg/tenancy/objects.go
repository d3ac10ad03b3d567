package tenancy

import (
	"cmp"
	"encoding/json"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// Org is an Organization with its logical cluster.
type Org struct {
	*v1alpha1.Organization
	// ClusterID is the ID of the logical cluster of the Organization's workspace. It is
	// empty until kcp has scheduled the workspace.
	ClusterID string
}

// UUID is the name of the Organization (O-1).
func (o Org) UUID() string { return o.Name }

// CreatedBy is the name of the User who created the Organization.
func (o Org) CreatedBy() string { return o.Annotations[v1alpha1.CreatedByAnnotation] }

// Maker is the User who created the Organization, or the Organization itself if nobody did.
func (o Org) Maker() string { return cmp.Or(o.CreatedBy(), o.Name) }

// Deleted reports whether the Organization is soft-deleted or being removed (O-13).
func (o Org) Deleted() bool {
	return o.Status.DeletionRequestedAt != nil || !o.DeletionTimestamp.IsZero()
}

// Deactivated reports whether the workspace of an Organization is deactivated because the
// Organization is soft-deleted. It takes no writes then.
func (o Org) Deactivated() bool {
	return o.Organization != nil && o.Status.DeletionRequestedAt != nil && o.DeletionTimestamp.IsZero()
}

// Workspace is a child Workspace, decoded from kcp's Workspace object.
type Workspace struct {
	UUID        string
	OrgUUID     string
	DisplayName string
	// Description says what the Workspace is for. It may be empty.
	Description string
	// ClusterID is empty until kcp has scheduled the Workspace.
	ClusterID string
	CreatedAt metav1.Time
	CreatedBy string
	Labels    map[string]string
	// Generation and ResourceVersion are of kcp's Workspace object.
	Generation      int64
	ResourceVersion string
	// KCPReady is true if kcp reports the phase Ready.
	KCPReady bool
	// Status is the status that the hub keeps in an annotation (O-11).
	Status              v1alpha1.CommonStatus
	DeletionRequestedAt *metav1.Time
	// ExpiresAt is the end of the Workspace by time, or nil.
	ExpiresAt *metav1.Time
	// Requests is RequestsMembers if members of the Organization who are not in the Workspace may ask for rights
	// in it.
	Requests string
	// Billing is the Workspace's own; BillingOf is the one that counts.
	Billing v1alpha1.RevisedBilling
	// BotClaims are the Bots that are being created, with the times of their claims.
	BotClaims map[string]metav1.Time
	// Terminating is true if the object has a deletion timestamp.
	Terminating bool
}

// Deleted reports whether the Workspace is soft-deleted or being removed (O-13).
func (w Workspace) Deleted() bool { return w.DeletionRequestedAt != nil || w.Terminating }

// Ready reports whether the Workspace is completely provisioned (O-11).
func (w Workspace) Ready() bool { return w.KCPReady && w.Status.Phase == v1alpha1.PhaseReady }

// PolicyEnforced reports whether kcp enforces the admission policy of the Workspace.
func (w Workspace) PolicyEnforced() bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionPolicyEnforced)
}

// WorkspaceOf decodes a child Workspace of org from kcp's Workspace object. An invalid
// annotation counts as absent, except the deletion request: an invalid time counts as set, so
// that the Workspace is not served.
func WorkspaceOf(org string, ws *kcptenancyv1alpha1.Workspace) Workspace {
	w := Workspace{
		UUID:            ws.Name,
		OrgUUID:         org,
		DisplayName:     ws.Annotations[v1alpha1.DisplayNameAnnotation],
		Description:     ws.Annotations[v1alpha1.DescriptionAnnotation],
		ClusterID:       ws.Spec.Cluster,
		CreatedAt:       ws.CreationTimestamp,
		CreatedBy:       ws.Annotations[v1alpha1.CreatedByAnnotation],
		Labels:          ws.Labels,
		Generation:      ws.Generation,
		ResourceVersion: ws.ResourceVersion,
		KCPReady:        ws.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady,
		Terminating:     !ws.DeletionTimestamp.IsZero(),
		BotClaims:       botClaims(ws.Annotations[v1alpha1.BotClaimsAnnotation]),
		Billing:         workspaceBilling(ws.Annotations[v1alpha1.BillingAnnotation]),
	}
	if raw, ok := ws.Annotations[v1alpha1.StatusAnnotation]; ok {
		var status v1alpha1.CommonStatus
		if json.Unmarshal([]byte(raw), &status) == nil {
			w.Status = status
		}
	}
	w.Status.Phase = PhaseOf(w.Status)
	if at, err := time.Parse(time.RFC3339, ws.Annotations[v1alpha1.CreatedAtAnnotation]); err == nil {
		w.CreatedAt = metav1.NewTime(at)
	}
	if raw, ok := ws.Annotations[v1alpha1.DeletionRequestedAtAnnotation]; ok {
		at, err := time.Parse(time.RFC3339, raw)
		if err != nil {
			at = ws.CreationTimestamp.Time
		}
		w.DeletionRequestedAt = &metav1.Time{Time: at}
	}
	if at, err := time.Parse(time.RFC3339, ws.Annotations[v1alpha1.ExpiresAtAnnotation]); err == nil {
		w.ExpiresAt = &metav1.Time{Time: at}
	}
	w.Requests = RequestsNone
	if ws.Annotations[v1alpha1.RequestsAnnotation] == RequestsMembers {
		w.Requests = RequestsMembers
	}
	return w
}

// SetWorkspaceRequests writes who may ask for rights in a Workspace into its annotations.
func SetWorkspaceRequests(annotations map[string]string, who string) {
	if who == RequestsMembers {
		annotations[v1alpha1.RequestsAnnotation] = who
		return
	}
	delete(annotations, v1alpha1.RequestsAnnotation)
}

// SetWorkspaceDescription writes what a Workspace is for into its annotations.
func SetWorkspaceDescription(annotations map[string]string, text string) {
	if text == "" {
		delete(annotations, v1alpha1.DescriptionAnnotation)
		return
	}
	annotations[v1alpha1.DescriptionAnnotation] = text
}

// PhaseOf is the phase of an object; Progressing until a controller has set one.
func PhaseOf(s v1alpha1.CommonStatus) v1alpha1.Phase {
	return cmp.Or(s.Phase, v1alpha1.PhaseProgressing)
}

// WorkspaceUUID is the UUID of the Workspace that a Membership is of, or empty for a
// Membership of the Organization.
func WorkspaceUUID(m *v1alpha1.Membership) string {
	if m.Spec.WorkspaceRef == nil {
		return ""
	}
	return m.Spec.WorkspaceRef.Name
}

// ClusterKind is the role of a logical cluster in the tree.
type ClusterKind int

// The kinds of logical cluster. The zero value is unknown; access to it is refused.
const (
	// ClusterUnknown is a logical cluster that is not in the tree.
	ClusterUnknown ClusterKind = iota
	// ClusterHub is the root workspace, users, providers or orgs.
	ClusterHub
	// ClusterOrg is the workspace of an Organization.
	ClusterOrg
	// ClusterWorkspace is a child Workspace.
	ClusterWorkspace
)

// Cluster is a logical cluster and its place in the tree.
type Cluster struct {
	ID            string
	Kind          ClusterKind
	OrgUUID       string
	WorkspaceUUID string
}
