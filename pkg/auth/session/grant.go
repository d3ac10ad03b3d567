package session

import (
	"bytes"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/auth"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// leaseLife is the duration of the lease on a grant. It is longer than one attempt, which
	// renews it, so that only a holder that died blocks others.
	leaseLife = 20 * time.Second
	// providerTimeout limits one request to the identity provider.
	providerTimeout = 10 * time.Second
	// leaseWait is how long a refresh waits for another one of the same person.
	leaseWait = 10 * time.Second
	// newerWait is how long a refused refresh waits for a newer grant: the login that ended
	// the old one has not stored it yet.
	newerWait = 3 * time.Second
	// poll is the interval at which kcp is asked during these waits.
	poll = 100 * time.Millisecond
	// maxAttempts is the number of grants that a refresh presents.
	maxAttempts = 3
)

// errHeld means that another refresh has the lease.
var errHeld = errors.New("another refresh of this person has not finished")

// fresh returns an ID token of a Session with enough of its life left.
func (s *Service) fresh(ctx context.Context, held *v1alpha1.Session, user *v1alpha1.User) (storedToken, error) {
	if kept := s.storedToken(held); kept.fresh(s.Clock.Now()) {
		return kept, nil
	}
	if s.Provider == nil {
		return storedToken{}, unavailable(nil, "this hub has no identity provider at the moment")
	}
	holder, err := s.Keys.randomHex()
	if err != nil {
		return storedToken{}, failure(err)
	}
	grant, err := s.lease(ctx, user.Name, holder)
	if errs.Is(err, errs.NotFound) {
		if _, unknown := s.Keys.Open(purposeIDToken, held.Spec.IDToken); errors.Is(unknown, ErrUnknownKey) {
			return storedToken{}, unavailable(unknown, "this replica of the hub does not have the key of the session; try again")
		}
		return storedToken{}, s.lost(ctx, held, "the identity provider gave no refresh token")
	}
	if err != nil {
		return storedToken{}, failure(err)
	}
	defer s.release(ctx, user.Name, holder)
	// The refresh that had the lease before may have been one of this Session.
	if held, user, err = s.current(ctx, held.Name); err != nil {
		return storedToken{}, err
	}
	if kept := s.storedToken(held); kept.fresh(s.Clock.Now()) {
		return kept, nil
	}
	return s.renew(ctx, held, user, grant, holder)
}

// renew asks the identity provider for an ID token. The caller has the lease on the grant.
func (s *Service) renew(ctx context.Context, held *v1alpha1.Session, user *v1alpha1.User, grant tenancy.ProviderGrant, holder string) (storedToken, error) {
	for attempt := 1; ; attempt++ {
		given, err := s.ask(ctx, grant)
		if err == nil && (given.Identity.Issuer != user.Spec.Issuer || given.Identity.Subject != user.Spec.Subject) {
			return storedToken{}, s.lost(ctx, held, "the identity provider answered with another person")
		}
		if given != nil {
			// The provider may no longer accept the old refresh token.
			if err := s.store(ctx, grant, given); err != nil {
				return storedToken{}, err
			}
		}
		if err == nil && s.Heard != nil {
			if err := s.Heard(ctx, user, given.Identity); err != nil {
				return storedToken{}, failure(err)
			}
		}
		if err == nil {
			return s.storeToken(ctx, held, given)
		}
		if !errors.Is(err, auth.ErrGrantRefused) {
			return storedToken{}, notRenewed(err)
		}
		newer, ok, err := s.newer(ctx, grant, holder)
		if err != nil {
			return storedToken{}, failure(err)
		}
		if !ok || attempt == maxAttempts {
			return storedToken{}, s.lost(ctx, held, "the identity provider does not renew this login any more")
		}
		grant = newer
	}
}

// notRenewed is the error for the client where the identity provider did not refuse the
// grant.
func notRenewed(err error) error {
	var e *errs.Error
	switch {
	case errs.Is(err, errs.Unavailable):
		return err
	case errors.As(err, &e) && e.Code == errs.Forbidden:
		// The person is not accepted as the provider describes them now.
		return refused(e.Message)
	}
	return unavailable(err, "the identity provider gives no valid answer at the moment; try again")
}

// ask presents the refresh token of a grant. One that was altered counts as refused. One of a key that this replica
// does not have says nothing about the Session: another replica may have the key.
func (s *Service) ask(ctx context.Context, grant tenancy.ProviderGrant) (*auth.Grant, error) {
	token, err := s.Keys.Open(purposeGrant, grant.Sealed)
	if errors.Is(err, ErrUnknownKey) {
		return nil, unavailable(err, "this replica of the hub does not have the session key of this login; "+
			"try again, or log in again: kedge login")
	}
	if err != nil {
		return nil, auth.ErrGrantRefused
	}
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	given, err := s.Provider.Refresh(ctx, string(token))
	s.metrics.renewed(err)
	return given, err
}

// lost ends a Session that cannot be refreshed any more.
func (s *Service) lost(ctx context.Context, held *v1alpha1.Session, why string) error {
	if err := s.end(ctx, held); err != nil {
		return err
	}
	return endedBy(held, why+"; the session has ended"+loginAgain)
}

// lease takes the lease on the grant of a User. It waits for another refresh that has it.
func (s *Service) lease(ctx context.Context, user, holder string) (grant tenancy.ProviderGrant, err error) {
	// A request that has been sent is completed, so the condition does not take the deadline.
	waited := wait.PollUntilContextTimeout(ctx, poll, leaseWait, true, func(context.Context) (bool, error) {
		grant, err = s.Grants.ChangeGrant(ctx, user, func(g tenancy.ProviderGrant) (tenancy.ProviderGrant, error) {
			now := s.Clock.Now()
			if g.HeldByOther(holder, now) {
				return g, errHeld
			}
			g.Holder, g.HeldUntil = holder, now.Add(leaseLife)
			return g, nil
		})
		return !errors.Is(err, errHeld), nil
	})
	if waited != nil {
		return grant, unavailable(errors.Join(waited, err), errHeld.Error()+"; try again")
	}
	return grant, err
}

// release gives the lease back. If that fails, the lease ends by itself.
func (s *Service) release(ctx context.Context, user, holder string) {
	_, _ = s.Grants.ChangeGrant(ctx, user, func(g tenancy.ProviderGrant) (tenancy.ProviderGrant, error) {
		if g.Holder == holder {
			g.Holder, g.HeldUntil = "", time.Time{}
		}
		return g, nil
	})
}

// store stores the refresh token that came with an ID token. If a login has stored another
// one meanwhile, that one stays: the provider gave it later. A provider that gives no other
// refresh token takes the old one again, which is then encrypted with the first session key:
// the key that it was encrypted with may be about to be removed.
func (s *Service) store(ctx context.Context, used tenancy.ProviderGrant, given *auth.Grant) error {
	token := []byte(given.RefreshToken)
	if len(token) == 0 {
		if s.Keys.Current(used.Sealed) {
			return nil
		}
		var err error
		if token, err = s.Keys.Open(purposeGrant, used.Sealed); err != nil {
			return failure(err)
		}
	}
	sealed, err := s.Keys.Seal(purposeGrant, token)
	if err != nil {
		return failure(err)
	}
	_, err = s.Grants.ChangeGrant(ctx, used.User, func(g tenancy.ProviderGrant) (tenancy.ProviderGrant, error) {
		if bytes.Equal(g.Sealed, used.Sealed) {
			g.Sealed, g.SavedAt = sealed, s.Clock.Now()
			if given.RefreshToken != "" && given.Identity != nil {
				g.IssuedAt = given.Identity.IssuedAt
			}
		}
		return g, nil
	})
	if errs.Is(err, errs.NotFound) {
		// The person's Sessions have ended.
		return errEnded()
	}
	return failure(err)
}

// newer waits a moment for a newer grant than the refused one and renews the lease. ok is
// false if there is none.
func (s *Service) newer(ctx context.Context, old tenancy.ProviderGrant, holder string) (grant tenancy.ProviderGrant, ok bool, err error) {
	waited := wait.PollUntilContextTimeout(ctx, poll, newerWait, true, func(context.Context) (bool, error) {
		if grant, err = s.Grants.GetGrant(ctx, old.User); err != nil {
			return false, err
		}
		return !bytes.Equal(grant.Sealed, old.Sealed), nil
	})
	switch {
	case errs.Is(err, errs.NotFound), err == nil && wait.Interrupted(waited) && ctx.Err() == nil:
		return grant, false, nil
	case waited != nil:
		return grant, false, waited
	}
	if grant, err = s.lease(ctx, old.User, holder); errs.Is(err, errs.NotFound) {
		return grant, false, nil
	}
	return grant, err == nil, err
}

// storeToken writes an ID token to its Session. It precedes the answer, so that a Session that
// has ended meanwhile returns no token.
func (s *Service) storeToken(ctx context.Context, held *v1alpha1.Session, given *auth.Grant) (storedToken, error) {
	kept := storedTokenOf(given)
	sealed, err := s.seal(kept)
	if err != nil {
		return storedToken{}, err
	}
	_, err = s.Sessions.ChangeSession(ctx, held, func(_ context.Context, o *v1alpha1.Session) error {
		if o.Spec.EndedAt != nil {
			return errEnded()
		}
		if bytes.Equal(o.Spec.IDToken, sealed) {
			return nil
		}
		tokens, ok := remember(o.Spec.Tokens, kept.record(), s.Clock.Now())
		if !ok {
			return unavailable(nil, "the session has too many tokens that have not expired; try again later")
		}
		o.Spec.Tokens, o.Spec.IDToken, o.Spec.Groups, o.Spec.Email = tokens, sealed, groupsOf(given.Identity), emailOf(given.Identity)
		return nil
	})
	return kept, failure(err)
}
