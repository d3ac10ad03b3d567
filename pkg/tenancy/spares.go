package tenancy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// ReservationTTL is the time after which a reserved spare without a claim is thrown away.
const ReservationTTL = time.Minute

// Spare is a kcp Workspace that nobody owns: the workspace of the next Organization, or the next
// child Workspace. It has no people, no name and no finalizer of the hub.
type Spare struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	// ClusterID is empty until kcp has scheduled the Workspace.
	ClusterID string
	CreatedAt metav1.Time
	// Hash identifies what the spare was made with.
	Hash string
	// Reserved is nil if the spare is free.
	Reserved *Reservation
	KCPReady bool
	// Whole says that all of the spare is there, the enforced admission policy included.
	Whole       bool
	Terminating bool
}

// Compare orders spares by age.
func (s Spare) Compare(o Spare) int {
	return cmp.Or(s.CreatedAt.Compare(o.CreatedAt.Time), cmp.Compare(s.Name, o.Name))
}

// Takeable reports whether a create may take the spare that was made with what hash stands for.
func (s Spare) Takeable(hash string) bool {
	return s.Whole && !s.Terminating && s.Reserved == nil && s.Hash == hash
}

// ReservedSpare is a spare that is reserved for one claim. The zero value is none.
type ReservedSpare struct {
	// Cluster is the logical cluster that the spare is in, and UUID its name.
	Cluster, UUID string
	// UID and Version are those of the reservation.
	UID     types.UID
	Version string
}

// Reservation says for whom a spare is. Its claim has the name of the spare as UUID.
type Reservation struct {
	// User is the name of the User with the claim, or in the Organization with the claim. It is empty
	// for a person who signs up, who has no name yet: Identity then is the hash of their identity.
	User     string      `json:"user,omitempty"`
	Identity string      `json:"identity,omitempty"`
	At       metav1.Time `json:"at"`
}

// IsFor reports whether the reservation is for a User.
func (r Reservation) IsFor(u *v1alpha1.User) bool {
	if r.User != "" {
		return r.User == u.Name
	}
	return r.Identity != "" && r.Identity == IdentityHash(u.Spec.Issuer, u.Spec.Subject)
}

// IsSpare reports whether a kcp Workspace is a spare.
func IsSpare(o metav1.Object) bool {
	_, ok := o.GetLabels()[v1alpha1.SpareLabel]
	return ok
}

// SpareOf decodes a spare. A reservation that cannot be read is one for nobody. Whole is about a child
// Workspace.
func SpareOf(ws *kcptenancyv1alpha1.Workspace) Spare {
	s := Spare{
		Name: ws.Name, UID: ws.UID, ResourceVersion: ws.ResourceVersion, ClusterID: ws.Spec.Cluster,
		CreatedAt: ws.CreationTimestamp, Hash: ws.Labels[v1alpha1.SpareLabel],
		KCPReady: ws.Status.Phase == kcpcorev1alpha1.LogicalClusterPhaseReady, Terminating: !ws.DeletionTimestamp.IsZero(),
	}
	s.Whole = s.KCPReady && wholeSpare(WorkspaceOf("", ws).Status.Conditions)
	if raw, ok := ws.Annotations[v1alpha1.SpareReservedAnnotation]; ok {
		s.Reserved = &Reservation{}
		if json.Unmarshal([]byte(raw), s.Reserved) != nil {
			s.Reserved = &Reservation{At: ws.CreationTimestamp}
		}
	}
	return s
}

// wholeSpare reports whether all conditions are True but those that people make True. AccessReady is
// the last one that the controller sets.
func wholeSpare(conditions []metav1.Condition) bool {
	if meta.FindStatusCondition(conditions, v1alpha1.ConditionAccessReady) == nil || !meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionPolicyEnforced) {
		return false
	}
	for _, c := range conditions {
		switch c.Type {
		case v1alpha1.ConditionReady, v1alpha1.ConditionFirstAdmin, v1alpha1.ConditionAccessReady:
		default:
			if c.Status != metav1.ConditionTrue {
				return false
			}
		}
	}
	return true
}

// SpareHash identifies what spares are made with. The value is one of a label.
func SpareHash(madeWith ...any) (string, error) {
	h := sha256.New()
	for _, part := range madeWith {
		raw, err := json.Marshal(part)
		if err != nil {
			return "", fmt.Errorf("encode what spares are made with: %w", err)
		}
		// The length keeps two parts from being read as one.
		fmt.Fprintf(h, "%d:%s", len(raw), raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// ClaimsOrg reports whether a User has claimed the Organization with that UUID, or has it as their
// personal one.
func ClaimsOrg(u *v1alpha1.User, uuid string) bool {
	_, ok := FindClaim(u.Spec.OrgClaims, uuid)
	return ok || PersonalOrgOf(u) == uuid
}

// ClaimsWorkspace reports whether the Workspace with that UUID is claimed in an Organization, or is the
// default Workspace of a personal one.
func ClaimsWorkspace(o *v1alpha1.Organization, uuid string) bool {
	_, ok := FindClaim(o.Spec.WorkspaceClaims, uuid)
	return ok || o.Spec.Personal && DefaultWorkspaceOf(o) == uuid
}
