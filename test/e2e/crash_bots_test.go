package e2e

import (
	"net/http"
	"time"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

func createBot(s *scene) framework.Call {
	c := inWorkspace(s, http.MethodPost, "/serviceaccounts", map[string]string{"displayName": "CI", "role": "member"})
	c.Header = http.Header{"Idempotency-Key": {s.key}}
	return c
}

func bot(l *lane, s *scene) error {
	a, err := l.ask(createBot(s))
	s.bot = a.Text("uuid")
	return err
}

// onBot returns a call about the bot of the scene.
func onBot(method, below string, body any) func(s *scene) framework.Call {
	return func(s *scene) framework.Call {
		return inWorkspace(s, method, "/serviceaccounts/"+s.bot+below, body)
	}
}

func token(l *lane, s *scene) error {
	a, err := l.ask(onBot(http.MethodPost, "/tokens", map[string]any{})(s))
	s.token, s.secret = a.Text("id"), a.Text("token")
	return err
}

// good are the tokens of a Bot that the hub accepts.
func good(b *v1alpha1.Bot) (n int) {
	for _, t := range b.Spec.Tokens {
		if t.SecretUID != "" {
			n++
		}
	}
	return n
}

// botIs reports whether the only bot of the scene is as told.
func botIs(told func(b *v1alpha1.Bot) bool) func(truth *framework.Truth, s *scene) bool {
	return func(truth *framework.Truth, s *scene) bool {
		bots := truth.Orgs[s.org].Bots
		for _, b := range bots {
			return len(bots) == 1 && told(b)
		}
		return false
	}
}

// rotated reports whether a good token replaces that of the scene, or none does and it is as good as before. A new
// token that was not given out can be listed in either case, as after an issue that was killed.
func rotated(done bool) func(truth *framework.Truth, s *scene) bool {
	return func(truth *framework.Truth, s *scene) bool {
		return botIs(func(b *v1alpha1.Bot) bool {
			old, ok := tenancy.FindToken(b.Spec.Tokens, s.token)
			if ok = ok && old.SecretUID != ""; !done {
				return ok && old.RotatedTo == "" && time.Until(old.ExpiresAt.Time) > time.Hour
			}
			replacement, _ := tenancy.FindToken(b.Spec.Tokens, old.RotatedTo)
			return ok && replacement.SecretUID != "" && time.Until(old.ExpiresAt.Time) < time.Hour
		})(truth, s)
	}
}

func noBot(truth *framework.Truth, s *scene) bool { return len(truth.Orgs[s.org].Bots) == 0 }

// The audit of every look finds tokens, accounts and bindings that belong to no bot.
func botOperations() []operation {
	place := steps(asked(signUp), org, workspace)
	withBot := steps(place, bot)
	withToken := steps(withBot, token)
	exists := botIs(func(*v1alpha1.Bot) bool { return true })
	hasToken := botIs(func(b *v1alpha1.Bot) bool { return good(b) > 0 })
	hasNone := botIs(func(b *v1alpha1.Bot) bool { return good(b) == 0 })
	is := func(role v1alpha1.Role) func(truth *framework.Truth, s *scene) bool {
		return botIs(func(b *v1alpha1.Bot) bool { return b.Spec.Role == role })
	}
	gone := []int{http.StatusNotFound}
	return []operation{
		{name: "bot create", setup: place, call: createBot, done: exists, none: noBot},
		{name: "bot token", setup: withBot, call: onBot(http.MethodPost, "/tokens", map[string]any{}), done: hasToken, none: hasNone},
		{
			name: "bot token revoke", setup: withToken,
			call: func(s *scene) framework.Call { return onBot(http.MethodDelete, "/tokens/"+s.token, nil)(s) },
			done: hasNone, none: hasToken, already: gone,
		},
		{
			name: "bot token rotate", setup: withToken,
			call: func(s *scene) framework.Call {
				return onBot(http.MethodPost, "/tokens/"+s.token+"/rotate", map[string]any{})(s)
			},
			done: rotated(true), none: rotated(false), already: []int{http.StatusConflict},
		},
		{
			name: "bot revoke all", setup: withToken, call: onBot(http.MethodDelete, "/tokens", nil),
			done: botIs(func(b *v1alpha1.Bot) bool { return good(b) == 0 && b.Spec.Generation > 0 }),
			none: botIs(func(b *v1alpha1.Bot) bool { return good(b) == 1 && b.Spec.Generation == 0 }),
		},
		{
			name: "bot role", setup: withToken, call: onBot(http.MethodPatch, "", map[string]string{"role": "admin"}),
			done: is(v1alpha1.RoleAdmin), none: is(v1alpha1.RoleMember),
		},
		{
			name: "bot delete", setup: withToken, call: onBot(http.MethodDelete, "", nil),
			done: noBot, none: exists, already: gone,
		},
	}
}
