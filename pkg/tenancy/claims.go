package tenancy

import (
	"slices"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// KeyedUUID is the UUID of what a caller makes with an Idempotency-Key in a place,
// which is the UUID of an Org, or empty for Orgs themselves. It is derived, so
// that the same request names the same object, on every replica.
func KeyedUUID(userUID, place, key string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://tenancy.kedge.faros.sh/keys/"+userUID+"/"+place+"/"+key)).String()
}

// FindClaim returns the claim of that UUID.
func FindClaim(claims []v1alpha1.Claim, uuid string) (v1alpha1.Claim, bool) {
	if i := slices.IndexFunc(claims, func(c v1alpha1.Claim) bool { return c.UUID == uuid }); i >= 0 {
		return claims[i], true
	}
	return v1alpha1.Claim{}, false
}

// Used counts what takes a place in a quota: what is claimed and, where it is not
// among that, what exists.
func Used(claims []v1alpha1.Claim, existing []string) int {
	n := len(claims)
	for _, uuid := range existing {
		if _, ok := FindClaim(claims, uuid); !ok {
			n++
		}
	}
	return n
}

// ClaimOrg returns the User's claims with one more, for an Org that is to be made
// (O-5), or nil where it is claimed already. existing are the UUIDs of the Orgs
// that count against the User, and def the limit of people without their own.
func ClaimOrg(u *v1alpha1.User, existing []string, def int, c v1alpha1.Claim) ([]v1alpha1.Claim, error) {
	return claim(u.Spec.OrgClaims, existing, c, func(used int) error { return CheckOrgQuota(Limit(u.Spec.OrgQuota, def), used) })
}

// ClaimWorkspace is ClaimOrg for a Workspace in an Org (O-6).
func ClaimWorkspace(o *v1alpha1.Organization, existing []string, def int, c v1alpha1.Claim) ([]v1alpha1.Claim, error) {
	return claim(o.Spec.WorkspaceClaims, existing, c, func(used int) error { return CheckWorkspaceQuota(Limit(o.Spec.WorkspaceQuota, def), used) })
}

func claim(claims []v1alpha1.Claim, existing []string, c v1alpha1.Claim, check func(used int) error) ([]v1alpha1.Claim, error) {
	if _, ok := FindClaim(claims, c.UUID); ok || slices.Contains(existing, c.UUID) {
		return nil, nil
	}
	if err := check(Used(claims, existing)); err != nil {
		return nil, err
	}
	return append(slices.Clone(claims), c), nil
}

// NewClaim asks for something of that display name to be made.
func NewClaim(uuid, displayName, createdBy, keyHash string, now metav1.Time) v1alpha1.Claim {
	return v1alpha1.Claim{UUID: uuid, Request: &v1alpha1.ClaimRequest{
		DisplayName: displayName, CreatedBy: createdBy, RequestedAt: now.Rfc3339Copy(), IdempotencyKey: keyHash,
	}}
}

// ClaimedOrg is the Organization that a claim asks for.
func ClaimedOrg(c v1alpha1.Claim) *v1alpha1.Organization {
	o := NewOrganization(c.UUID, c.Request.DisplayName, c.Request.CreatedBy)
	o.Labels = keyLabel(c)
	return o
}

// ClaimedWorkspace is the Workspace that a claim asks for.
func ClaimedWorkspace(org string, c v1alpha1.Claim) Workspace {
	w := Workspace{
		UUID: c.UUID, OrgUUID: org, DisplayName: c.Request.DisplayName,
		CreatedAt: c.Request.RequestedAt, CreatedBy: c.Request.CreatedBy, Labels: keyLabel(c),
	}
	w.Status.Phase = v1alpha1.PhaseProgressing
	return w
}

func keyLabel(c v1alpha1.Claim) map[string]string {
	if c.Request.IdempotencyKey == "" {
		return nil
	}
	return map[string]string{v1alpha1.IdempotencyKeyLabel: c.Request.IdempotencyKey}
}

// Claimed is what SettleClaims does and asks in kcp itself.
type Claimed struct {
	// Claims are those of the object now.
	Claims func() ([]v1alpha1.Claim, error)
	// Make makes what a claim asks for, and may find it there.
	Make   func(v1alpha1.Claim) error
	Exists func(uuid string) (bool, error)
}

// SettleClaims carries out what claims ask for and returns them as they should be
// then: without a request for what exists, without those whose object is gone, and
// with one for everything that exists without. existing are the UUIDs that are
// known to exist. Where kcp fails, what was done before is in the result.
//
// What kcp is not asked for any more is not made: to somebody with an old memory, a
// leader that was paused, what was made and deleted since still looks like a request,
// and would be made again beside what has taken its place in the quota.
func SettleClaims(claims []v1alpha1.Claim, existing []string, kcp Claimed) ([]v1alpha1.Claim, error) {
	var settled []v1alpha1.Claim
	var failed error
	for _, c := range claims {
		known := slices.Contains(existing, c.UUID)
		switch {
		case failed != nil:
		case known:
			c.Request = nil
		case c.Request != nil:
			var now []v1alpha1.Claim
			if now, failed = kcp.Claims(); failed != nil {
				break
			}
			if held, ok := FindClaim(now, c.UUID); !ok || held.Request == nil {
				break
			}
			if failed = kcp.Make(c); failed == nil {
				c.Request = nil
			}
		default:
			// Memory may not have what was made a moment ago.
			var there bool
			if there, failed = kcp.Exists(c.UUID); failed == nil && !there {
				continue
			}
		}
		settled = append(settled, c)
	}
	for _, uuid := range slices.Sorted(slices.Values(existing)) {
		if _, ok := FindClaim(settled, uuid); !ok {
			settled = append(settled, v1alpha1.Claim{UUID: uuid})
		}
	}
	return settled, failed
}
