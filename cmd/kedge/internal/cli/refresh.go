package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/oauth"
)

const (
	// refreshBefore is the remaining lifetime of a token below which it is refreshed. A token
	// that lives for less than twice as long is refreshed after half its lifetime.
	refreshBefore = 2 * time.Minute
	// refusalLasts is the time for which a refused refresh is not tried again.
	refusalLasts = 30 * time.Second
	// refreshTimeout is the maximum time that a command spends on a refresh, the wait for
	// that of another command included.
	refreshTimeout = 30 * time.Second
)

// refreshLock is the file whose lock serializes the refreshes of a profile.
func refreshLock(path, name string) string { return path + "." + name }

// token returns the bearer token of the login and refreshes it when little of its lifetime is
// left. Of commands that run at the same time, one refreshes it for all. While the hub is
// unavailable, the token is used until it expires.
func (s *session) token(ctx context.Context) (string, error) {
	if s.login.Secret == "" || s.app.Clock.Now().Before(s.login.RefreshAt) {
		return s.login.Token, nil
	}
	if err := s.refused(); err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeoutCause(ctx, refreshTimeout, fmt.Errorf("the hub at %s did not refresh the login in time", s.login.Server))
	defer cancel()
	err := s.refresh(limited)
	switch {
	case err == nil:
		return s.login.Token, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, errEnded), !s.app.Clock.Now().Before(s.login.ExpiresAt):
		return "", err
	}
	return s.login.Token, nil
}

// errEnded means that the login has ended and that its token must not be used.
var errEnded = errors.New("to log in again, run")

// refused returns the error of a refresh that the hub refused a short time ago.
func (s *session) refused() error {
	r := s.login.Refusal
	if r == nil {
		return nil
	}
	if age := s.app.Clock.Since(r.At); age < 0 || age >= refusalLasts {
		return nil
	}
	return fmt.Errorf("the login to %s has ended: %s; %w: %s", s.login.Server, reasonOf(r.Message), errEnded, s.relogin)
}

// refresh sets s.login to the profile with a new token.
func (s *session) refresh(ctx context.Context) error {
	unlock, err := config.Lock(ctx, refreshLock(s.path, s.name))
	if err != nil {
		return err
	}
	defer unlock()
	before := s.login.Secret
	if err := s.reload(ctx); err != nil {
		return err
	}
	if err := s.refused(); err != nil {
		return err
	}
	if s.login.Secret != before && s.app.Clock.Now().Before(s.login.ExpiresAt) {
		// Another command has refreshed it, or has logged in again.
		return nil
	}
	hub, err := oauth.Discover(ctx, s.app.oauthConfig(s.login))
	if err != nil {
		return err
	}
	used := s.login.Secret
	tokens, err := hub.Refresh(ctx, used)
	var answer *oauth.Error
	refused := errors.As(err, &answer) && answer.Status >= http.StatusBadRequest && !oauth.Unavailable(err)
	if err != nil && !refused {
		return err
	}
	if err := s.update(ctx, func(p *config.Profile) {
		switch {
		case p.Secret != used:
			// Somebody has logged in again meanwhile.
		case refused:
			p.Refusal = &config.Refusal{At: s.app.Clock.Now(), Message: answer.Error()}
		default:
			setTokens(p, tokens, s.app.Clock.Now())
		}
	}); err != nil {
		return err
	}
	return s.refused()
}

// setTokens stores the answer to a login or a refresh.
func setTokens(p *config.Profile, tokens oauth.Tokens, now time.Time) {
	p.Token, p.Secret, p.ExpiresAt, p.Refusal = tokens.AccessToken, tokens.Secret, tokens.ExpiresAt, nil
	p.RefreshAt = p.ExpiresAt.Add(-min(refreshBefore, p.ExpiresAt.Sub(now)/2))
}

// reload reads the profile again.
func (s *session) reload(ctx context.Context) error {
	c, err := config.Load(ctx, s.path)
	if err != nil {
		return err
	}
	if c.Profiles[s.name] == nil {
		return s.loggedOut()
	}
	s.login = c.Profiles[s.name]
	return nil
}

// loggedOut is the error of a command whose profile another command has removed.
func (s *session) loggedOut() error {
	return fmt.Errorf("another kedge has logged out the profile %s; %w: %s", s.name, errEnded, s.relogin)
}
