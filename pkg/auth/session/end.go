package session

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
)

// Revoke ends the Session of a secret, which may be the cookie of the portal or a secret
// that was replaced. A secret that the hub did not issue is ignored (RFC 7009, section 2.2), unless
// it names a Session that goes on: that is Unavailable, and ends nothing.
func (s *Service) Revoke(ctx context.Context, secret string) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	name, _, ok := s.Keys.parseSecret(v1alpha1.SessionCLI, secret)
	if !ok {
		name, ok = s.Keys.PortalSession(secret)
	}
	if !ok {
		return s.unverified(secret)
	}
	held, err := s.Sessions.GetSession(ctx, name)
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	if err != nil {
		return failure(err)
	}
	return s.end(ctx, held)
}

// unverified is the answer to a logout with a secret that no key of this replica verifies. A replica that has another
// key may have issued it, and a success would hide that its Session goes on. The answer needs the cache alone, and
// names of Sessions are random: a forged secret costs nothing and finds none.
func (s *Service) unverified(secret string) error {
	name, _, ok := secretParts(secret)
	if !ok || s.Cached == nil {
		return nil
	}
	held, ok := s.Cached(name)
	if !ok || held.Spec.EndedAt != nil || !s.Clock.Now().Before(held.Spec.ExpiresAt.Time) {
		return nil
	}
	return unavailable(nil, "the session has not ended: this replica of the hub does not have the key of its secret; "+
		"try again, or end it in the list of your sessions")
}

// End ends a Session of a User. The error is NotFound if the User has none of that name.
func (s *Service) End(ctx context.Context, user, name string) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	held, err := s.Sessions.GetSession(ctx, name)
	if errs.Is(err, errs.NotFound) || err == nil && held.Spec.UserRef.Name != user {
		return errs.New(errs.NotFound, "there is no such session")
	}
	if err != nil {
		return failure(err)
	}
	return s.end(ctx, held)
}

// EndAll ends all Sessions of a User, and refuses every ID token that was issued before this
// moment, those that the User got elsewhere included.
func (s *Service) EndAll(ctx context.Context, user string) error {
	return s.EndAllUntil(ctx, user, s.Clock.Now())
}

// EndAllUntil is EndAll for ID tokens that were issued before a moment.
func (s *Service) EndAllUntil(ctx context.Context, user string, until time.Time) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	held, err := s.Users.GetUser(ctx, user)
	if errs.Is(err, errs.NotFound) {
		return errs.New(errs.NotFound, "there is no such user")
	}
	if err != nil {
		return failure(err)
	}
	now := metav1.NewTime(until)
	if _, err = s.Users.ChangeUser(ctx, held, nil, func(_ context.Context, u *v1alpha1.User) error {
		if after := u.Spec.TokensValidAfter; after == nil || after.Time.Before(now.Truncate(time.Second)) {
			u.Spec.TokensValidAfter = &now
		}
		return nil
	}); err != nil {
		return failure(err)
	}
	// The list is read from kcp and after the write: a cache may not have a new Session yet.
	all, err := s.Sessions.ListSessions(ctx, user)
	if err != nil {
		return failure(err)
	}
	for i := range all {
		if err := s.end(ctx, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// Advance ends the secrets of a Session before those of a generation, and the code that it began with. The secret of
// the generation works: it follows from the name and the number alone.
func (s *Service) Advance(ctx context.Context, name string, generation int64) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	held, err := s.Sessions.GetSession(ctx, name)
	if errs.Is(err, errs.NotFound) {
		return errs.New(errs.NotFound, "there is no such session")
	}
	if err != nil {
		return failure(err)
	}
	_, err = s.Sessions.ChangeSession(ctx, held, func(_ context.Context, o *v1alpha1.Session) error {
		if o.Spec.EndedAt == nil && o.Spec.Generation < generation {
			o.Spec.Generation, o.Spec.Rotations, o.Spec.Code = generation, nil, nil
		}
		return nil
	})
	return failure(err)
}

// WriteEnds writes the end of every Session of a User that has ended by rule, such as those of a
// person who is soft-deleted or rejected. It comes before the change that makes the person active
// again: without it those Sessions would go on.
func (s *Service) WriteEnds(ctx context.Context, user string) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	held, err := s.Users.GetUser(ctx, user)
	if errs.Is(err, errs.NotFound) {
		return errs.New(errs.NotFound, "there is no such user")
	}
	if err != nil {
		return failure(err)
	}
	// The list is read from kcp: a cache may not have a new Session yet.
	all, err := s.Sessions.ListSessions(ctx, user)
	if err != nil {
		return failure(err)
	}
	for i := range all {
		if all[i].Spec.EndedAt == nil && s.ended(&all[i], held) {
			if err := s.end(ctx, &all[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// end writes the end of a Session. One that has ended stays as it is.
func (s *Service) end(ctx context.Context, held *v1alpha1.Session) error {
	_, err := s.Sessions.ChangeSession(ctx, held, func(_ context.Context, o *v1alpha1.Session) error {
		if o.Spec.EndedAt == nil {
			now := metav1.NewTime(s.Clock.Now())
			o.Spec.EndedAt, o.Spec.IDToken, o.Spec.Code = &now, nil, nil
		}
		return nil
	})
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	return failure(err)
}
