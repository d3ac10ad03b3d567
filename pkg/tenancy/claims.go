package tenancy

import (
	"slices"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

// KeyedUUID is the UUID of an object that a User creates with an Idempotency-Key in an Organization. place
// begins with the UUID of the Organization or Workspace. It is derived from these, so that a repeated request
// refers to the same object on every replica. Organizations and Workspaces have no such UUID: their history is
// read by the UUID and outlives them, and a key that is repeated after a purge must not give it to another one.
func KeyedUUID(userUID, place, key string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://tenancy.kedge.faros.sh/keys/"+userUID+"/"+place+"/"+key)).String()
}

// FindClaim returns the claim with that UUID.
func FindClaim(claims []v1alpha1.Claim, uuid string) (v1alpha1.Claim, bool) {
	return first(claims, func(c v1alpha1.Claim) bool { return c.UUID == uuid })
}

// KeyedObject is something that was created with an Idempotency-Key: its UUID, the hash of the key, and who
// created it and when.
type KeyedObject struct {
	UUID, Hash, CreatedBy string
	CreatedAt             metav1.Time
}

// FindKeyed returns the UUID of what a User created with the Idempotency-Key of a claim. ok is false if
// there is none. It is found by the hash of the key, and what an attempt of the same request has claimed also by its
// UUID. made are the existing objects.
func FindKeyed(u *v1alpha1.User, c v1alpha1.Claim, claims []v1alpha1.Claim, made []KeyedObject) (uuid string, ok bool) {
	if c.Request.IdempotencyKey == "" {
		return "", false
	}
	for _, held := range claims {
		if held.Request != nil {
			made = append(made, KeyedObject{held.UUID, held.Request.IdempotencyKey, held.Request.CreatedBy, held.Request.RequestedAt})
		}
		if held.UUID == c.UUID {
			return c.UUID, true
		}
	}
	for _, o := range made {
		if o.UUID == c.UUID || o.Hash == c.Request.IdempotencyKey && o.CreatedBy == u.Name && MayHaveMade(u, o.CreatedAt) {
			return o.UUID, true
		}
	}
	return "", false
}

// Unmade returns a claim without a request whose object is not among made: the cache does not have it
// yet, or not any more.
func Unmade(claims []v1alpha1.Claim, made []KeyedObject) bool {
	return slices.ContainsFunc(claims, func(c v1alpha1.Claim) bool {
		return c.Request == nil && !slices.ContainsFunc(made, func(o KeyedObject) bool { return o.UUID == c.UUID })
	})
}

// Used is the number of objects that count against a quota: the claims, and the existing
// objects without a claim.
func Used(claims []v1alpha1.Claim, existing []string) int {
	n := len(claims)
	for _, uuid := range existing {
		if _, ok := FindClaim(claims, uuid); !ok {
			n++
		}
	}
	return n
}

// ClaimOrg returns the User's claims with c added, or nil if c or its object exists (O-5).
// existing are the UUIDs of the Organizations that count against the quota, and def is the
// default quota.
func ClaimOrg(u *v1alpha1.User, existing []string, def int, c v1alpha1.Claim) ([]v1alpha1.Claim, error) {
	return claim(u.Spec.OrgClaims, existing, c, func(used int) error { return CheckOrgQuota(Limit(u.Spec.OrgQuota, def), used) })
}

// ClaimWorkspace is ClaimOrg for a Workspace in an Organization (O-6).
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

// NewClaim returns a claim with a request to create an object.
func NewClaim(uuid, displayName, createdBy, keyHash string, now metav1.Time) v1alpha1.Claim {
	return v1alpha1.Claim{UUID: uuid, Request: &v1alpha1.ClaimRequest{
		DisplayName: displayName, CreatedBy: createdBy, RequestedAt: now.Rfc3339Copy(), IdempotencyKey: keyHash,
	}}
}

// ClaimedOrg returns the Organization that a claim requests.
func ClaimedOrg(c v1alpha1.Claim) *v1alpha1.Organization {
	o := NewOrganization(c.UUID, c.Request.DisplayName, c.Request.CreatedBy)
	o.Labels, o.Spec.Description = keyLabel(c), c.Request.Description
	if c.Request.Billing != nil {
		o.Spec.Billing = c.Request.Billing.Billing.DeepCopy()
	}
	return o
}

// ClaimedWorkspace returns the Workspace that a claim requests.
func ClaimedWorkspace(org string, c v1alpha1.Claim) Workspace {
	w := Workspace{
		UUID: c.UUID, OrgUUID: org, DisplayName: c.Request.DisplayName, Description: c.Request.Description,
		CreatedAt: c.Request.RequestedAt, CreatedBy: c.Request.CreatedBy, Labels: keyLabel(c), ExpiresAt: c.Request.ExpiresAt,
	}
	if c.Request.Billing != nil {
		w.Billing = *c.Request.Billing
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

// Claimed are the calls to kcp that SettleClaims makes.
type Claimed struct {
	// Claims returns the current claims of the object.
	Claims func() ([]v1alpha1.Claim, error)
	// Make creates the object that a claim requests. An existing one is not an error.
	Make func(v1alpha1.Claim) error
	// Exists reports whether the object of that UUID exists.
	Exists func(uuid string) (bool, error)
}

// SettleClaims creates the objects that claims request and returns the claims as they should
// be afterwards: no request for an object that exists, no claim for an object that is
// deleted, and a claim for each existing object without one. existing are the UUIDs of objects
// in the cache. If kcp fails, the result has the changes up to then.
//
// An object is created only if kcp still has the request. A cache that is behind, as of a
// leader that was paused, can show a request for an object that was created and deleted since;
// creating it again would exceed the quota.
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
			// The cache may not have an object that was created a moment ago.
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
