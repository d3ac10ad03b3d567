package tenancy

import (
	"slices"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// BotChangeOf returns the pending change of the Bot of that name.
func BotChangeOf(o *v1alpha1.Organization, name string) (v1alpha1.BotChange, bool) {
	return first(o.Spec.BotChanges, func(c v1alpha1.BotChange) bool { return c.Name == name })
}

// WithoutCreation returns spec.botChanges of the Organization without the creation of the Bot of that name.
func WithoutCreation(o *v1alpha1.Organization, name string) []v1alpha1.BotChange {
	return slices.DeleteFunc(slices.Clone(o.Spec.BotChanges), func(c v1alpha1.BotChange) bool { return c.Name == name && c.UID == "" })
}

// BotChangeApplies reports whether a change is still to be carried out on this Bot, or, if b is
// nil, on none.
func BotChangeApplies(c v1alpha1.BotChange, b *v1alpha1.Bot) bool {
	if b == nil {
		return c.UID == ""
	}
	return b.DeletionTimestamp.IsZero() && b.UID == c.UID && b.Spec.Role == c.From && b.Spec.RightsGeneration == c.RightsGeneration
}

// RaisesBot reports whether a change of its role gives a Bot rights.
func RaisesBot(b *v1alpha1.Bot, role v1alpha1.Role) bool { return Lowers(role, b.Spec.Role) }

// SetBotRole gives a Bot a role that is not above its own.
func SetBotRole(b *v1alpha1.Bot, role v1alpha1.Role) {
	if b.Spec.Role != role {
		b.Spec.Role = role
		b.Spec.RightsGeneration++
	}
}

// DecideBot returns spec.botChanges of the Organization with the new change, or nil if there is
// nothing to change. held is the Bot in kcp, read after o was, or nil if there is none.
func DecideBot(o *v1alpha1.Organization, held *v1alpha1.Bot, c v1alpha1.BotChange) ([]v1alpha1.BotChange, error) {
	pending, ok := BotChangeOf(o, c.Name)
	switch ok = ok && BotChangeApplies(pending, held); {
	case c.UID == "" && held != nil && !held.DeletionTimestamp.IsZero():
		return nil, errs.New(errs.Conflict, "the bot that was made with this Idempotency-Key is being deleted; use another key")
	case c.UID == "" && (ok || held != nil):
		// An earlier attempt or request with the same key made it.
		return nil, nil
	case c.UID != "" && (held == nil || held.UID != c.UID || !held.DeletionTimestamp.IsZero()):
		return nil, NoSuchBot()
	}
	if c.UID != "" {
		if c.Trust != nil {
			c.Role = held.Spec.Role
			if err := checkNewTrust(held, *c.Trust); err != nil {
				return nil, err
			}
		}
		want := ChangedBot(held, c)
		unchanged := want.Spec.Role == held.Spec.Role && want.Spec.DisplayName == held.Spec.DisplayName && len(want.Spec.Trust) == len(held.Spec.Trust)
		repeated := ok && pending.Role == c.Role && pending.DisplayName == c.DisplayName && (c.Trust == nil || sameRule(pending.Trust, c.Trust))
		if unchanged || repeated {
			return nil, nil
		}
		// The Bot has one pending change, which keeps what its author was granted before.
		switch ruled := c.Trust != nil || pending.Trust != nil; {
		case ok && ruled && pending.By != c.By, ok && c.Trust != nil && pending.Trust != nil && !sameRule(pending.Trust, c.Trust):
			return nil, errs.New(errs.Conflict, "another change of the bot is being carried out; repeat the request")
		case ok && c.Trust != nil:
			c.Role, c.DisplayName = pending.Role, pending.DisplayName
		case ok:
			c.Trust = pending.Trust
		}
		c.From, c.RightsGeneration = held.Spec.Role, held.Spec.RightsGeneration
	}
	return append(slices.DeleteFunc(slices.Clone(o.Spec.BotChanges), func(o v1alpha1.BotChange) bool { return o.Name == c.Name }), c), nil
}

// ChangedBot returns the Bot that a change creates or, with held, makes of it.
func ChangedBot(held *v1alpha1.Bot, c v1alpha1.BotChange) *v1alpha1.Bot {
	if held == nil {
		return NewBot(c.Name, c.Workspace, c.DisplayName, c.Role, c.By, c.IdempotencyKey)
	}
	b := held.DeepCopy()
	b.Spec.Role = c.Role
	if c.DisplayName != "" {
		b.Spec.DisplayName = c.DisplayName
	}
	if _, there := TrustOf(b, trustID(c.Trust)); c.Trust != nil && !there {
		b.Spec.Trust = append(b.Spec.Trust, *c.Trust)
	}
	return b
}
