package api

import (
	"context"
	"net/http"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Taking decides the UUID of what a request creates: that of what an earlier request with the same
// Idempotency-Key created, else that of a spare, else that which the claim has.
type Taking struct {
	deps *Deps
	// asked is the claim of the request, by user.
	asked v1alpha1.Claim
	user  *v1alpha1.User
	// made are the existing objects, from the cache.
	made func() []tenancy.KeyedObject
	// Claim has the UUID that was decided before the write.
	Claim v1alpha1.Claim
	spare tenancy.ReservedSpare
	// claimed reports that kcp may have, or get, a claim of the spare.
	claimed bool
}

// Taking begins a create. claims are those in the cache.
func (d *Deps) Taking(user *v1alpha1.User, asked v1alpha1.Claim, claims []v1alpha1.Claim, made func() []tenancy.KeyedObject) *Taking {
	t := &Taking{deps: d, asked: asked, user: user, made: made, Claim: asked}
	if uuid, ok := tenancy.FindKeyed(user, asked, claims, made()); ok {
		t.Claim.UUID = uuid
	}
	return t
}

// Check refuses what the cache shows to be refused. It does not refuse a key that may be that of something which
// the cache does not have yet: a repeated request counts against no quota.
func (t *Taking) Check(claims []v1alpha1.Claim, check func(v1alpha1.Claim) error) error {
	if _, repeated := tenancy.FindKeyed(t.user, t.asked, claims, t.made()); !repeated && t.unclear(claims) {
		return nil
	}
	return check(t.Claim)
}

// unclear reports whether the key of the request may be that of an object which the cache does not have yet.
func (t *Taking) unclear(claims []v1alpha1.Claim) bool {
	return t.asked.Request.IdempotencyKey != "" && tenancy.Unmade(claims, t.made())
}

// Reserve reserves a spare for the claim, unless an earlier request created it.
func (t *Taking) Reserve(claims []v1alpha1.Claim, reserve func(Spares) tenancy.ReservedSpare) {
	if _, repeated := tenancy.FindKeyed(t.user, t.asked, claims, t.made()); repeated || t.deps.Spares == nil {
		return
	}
	if t.spare = reserve(t.deps.Spares); t.spare.UUID != "" {
		t.Claim.UUID = t.spare.UUID
	}
}

// In returns the claim to write where kcp has claims. claim adds it to them, or refuses it.
func (t *Taking) In(r *http.Request, claims []v1alpha1.Claim, refs []tenancy.Ref, claim func(v1alpha1.Claim) error) error {
	_, t.claimed = tenancy.FindClaim(claims, t.spare.UUID)
	uuid, repeated := tenancy.FindKeyed(t.user, t.asked, claims, t.made())
	if !repeated && t.unclear(claims) {
		// What the cache does not have yet may be what an earlier request created.
		if !t.deps.Until(r, refs, func() bool { return !tenancy.Unmade(claims, t.made()) }) {
			return errs.New(errs.Unavailable, "something else is still being created; try again").After(time.Second)
		}
		uuid, repeated = tenancy.FindKeyed(t.user, t.asked, claims, t.made())
	}
	c := t.Claim
	if repeated {
		c.UUID = uuid
	}
	err := claim(c)
	if err == nil {
		t.claimed, t.Claim = t.claimed || c.UUID == t.spare.UUID, c
	}
	return err
}

// Refused says that a write was refused where kcp has claims, before In.
func (t *Taking) Refused(claims []v1alpha1.Claim) {
	_, t.claimed = tenancy.FindClaim(claims, t.spare.UUID)
}

// End gives the spare back if no claim names it. What kcp did not answer may be a claim.
func (t *Taking) End(ctx context.Context) {
	if t.deps.Spares != nil && !t.claimed {
		t.deps.Spares.GiveBack(ctx, t.spare)
	}
}
