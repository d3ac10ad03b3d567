package httpmw

import (
	"context"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// freshToken is the age up to which a token that no Bot lists is waited for: another
	// replica may have issued it.
	freshToken = 10 * time.Second
	// waitForToken is how long it is waited for.
	waitForToken = 2 * time.Second
)

// BotAuthentication is the part of Authentication about bots.
type BotAuthentication struct {
	// Names reports whether a token names kcp as its issuer. Nothing of it is verified.
	Names func(token string) bool
	// Tokens verifies tokens of ServiceAccounts.
	Tokens auth.Authenticator
	// Check is the method of tenancy.BotGate.
	Check func(t tenancy.BotToken, now time.Time) (place tenancy.ScopedBot, until time.Time, err error)
	// Await waits until cond holds for a Bot in a logical cluster.
	Await func(ctx context.Context, cluster string, cond func() bool) error
	// May reports whether bots may make a request. If it is nil, they may make every one.
	May func(r *http.Request, p tenancy.ScopedBot) bool
	// Used is called with the Bot and the ID of a token of which a use is to be recorded. It must not
	// block. It can be nil.
	Used  func(b *v1alpha1.Bot, token string)
	Clock clock.PassiveClock
}

// BotTokenOf returns what a token of a ServiceAccount says, for tenancy.BotGate.
func BotTokenOf(a *auth.ServiceAccount) tenancy.BotToken {
	return tenancy.BotToken{Cluster: a.Cluster, Namespace: a.Namespace, Name: a.Name, Account: a.UID, Secret: a.SecretUID}
}

func (b BotAuthentication) caller(r *http.Request, token string) (*Caller, error) {
	id, ok, err := b.Tokens.Authenticate(r.Context(), token)
	switch {
	case err != nil:
		return nil, notVerified(err)
	case !ok || id.Account == nil:
		return nil, tenancy.NotABot()
	}
	is := BotTokenOf(id.Account)
	check := func() (tenancy.ScopedBot, time.Time, error) {
		now := b.Clock.Now()
		if !now.Before(id.ExpiresAt) {
			return tenancy.ScopedBot{}, time.Time{}, tenancy.NotABot()
		}
		return b.Check(is, now)
	}
	place, until, err := check()
	if errs.Is(err, errs.Unauthenticated) && b.Clock.Since(id.IssuedAt) < freshToken {
		ctx, cancel := context.WithTimeout(r.Context(), waitForToken)
		defer cancel()
		_ = b.Await(ctx, is.Cluster, func() bool {
			place, until, err = check()
			return !errs.Is(err, errs.Unauthenticated)
		})
	}
	if err != nil {
		return nil, err
	}
	if b.Used != nil && tenancy.TokenUseDue(place.Bot, place.Token, b.Clock.Now()) {
		b.Used(place.Bot, place.Token)
	}
	earlier := func(until time.Time) time.Time {
		if id.ExpiresAt.Before(until) {
			return id.ExpiresAt
		}
		return until
	}
	return &Caller{Identity: id, Bot: &place, token: token, expiresAt: earlier(until), valid: func(*Caller) error {
		_, _, err := check()
		return err
	}, endsAt: func(c *Caller) time.Time {
		// A rotation brings the end forward.
		if _, until, err := check(); err == nil {
			return earlier(until)
		}
		return c.expiresAt
	}}, nil
}

// BotMay reports whether bots may make a request to the API: they may read themselves, the
// kubeconfig of their Workspace and its providers, and rotate the token that they present. Admin bots
// may also enable and disable providers there.
func BotMay(r *http.Request, p tenancy.ScopedBot) bool {
	// The router reads an encoded path as it was sent, and could find another route.
	if r.URL.RawPath != "" {
		return false
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	workspace := "/api/orgs/" + p.Org.UUID() + "/workspaces/" + p.Workspace.UUID
	switch r.URL.Path {
	case "/api/users/me", "/api/providers", workspace + "/kubeconfig":
		return reads
	case workspace + "/serviceaccounts/" + p.Bot.Name + "/tokens/" + p.Token + "/rotate":
		return r.Method == http.MethodPost
	}
	name, ok := strings.CutPrefix(r.URL.Path, workspace+"/providers/")
	if !ok || !p.Bot.Spec.Role.AtLeast(v1alpha1.RoleAdmin) {
		return false
	}
	name, enable := strings.CutSuffix(name, "/enable")
	return tenancy.IsUUID(name) && (enable && (r.Method == http.MethodPost || r.Method == http.MethodDelete) || !enable && reads)
}
