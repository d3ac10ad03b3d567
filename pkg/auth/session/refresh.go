package session

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
)

const (
	// grace is the time for which a secret works after its successor was handed out.
	grace = time.Minute
	// maxRotations is the number of secrets of the last minute that a Session remembers. A
	// client that refreshes more often gets the current one again.
	maxRotations = 32
	// useInterval is the longest time between two writes of lastUsedAt.
	useInterval = 5 * time.Minute
)

// Refresh returns an ID token and the next secret for a secret of the command line. Calls
// with one secret get the same tokens, on all replicas. A secret works for a minute after its
// successor was handed out; one that is older ends the Session, because somebody else has it.
func (s *Service) Refresh(ctx context.Context, secret string) (Tokens, error) {
	name, generation, ok := s.Keys.parseSecret(v1alpha1.SessionCLI, secret)
	if !ok {
		return Tokens{}, refused("the refresh token is not valid" + loginAgain)
	}
	result := s.flight.DoChan(secret, func() (any, error) {
		ctx, cancel := detached(ctx)
		defer cancel()
		return s.refresh(ctx, name, generation)
	})
	select {
	case <-ctx.Done():
		return Tokens{}, unavailable(ctx.Err(), "the refresh takes too long; try again")
	case r := <-result:
		tokens, _ := r.Val.(Tokens)
		return tokens, r.Err
	}
}

func (s *Service) refresh(ctx context.Context, name string, generation int64) (Tokens, error) {
	held, user, err := s.current(ctx, name)
	if err != nil {
		return Tokens{}, err
	}
	if err := s.accept(ctx, held, generation); err != nil {
		return Tokens{}, err
	}
	if err := s.room(); err != nil {
		if kept := s.storedToken(held); kept.fresh(s.Clock.Now()) {
			// It needs no write. The current secret goes on to work.
			return s.tokens(held, kept), nil
		}
		return Tokens{}, err
	}
	kept, err := s.fresh(ctx, held, user)
	if err != nil {
		return Tokens{}, err
	}
	held, err = s.Sessions.ChangeSession(ctx, held, func(_ context.Context, o *v1alpha1.Session) error {
		if o.Spec.EndedAt != nil {
			return errEnded()
		}
		s.rotate(o, generation)
		return nil
	})
	if err != nil {
		return Tokens{}, failure(err)
	}
	return s.tokens(held, kept), nil
}

// room returns an error while only what ends something is written.
func (s *Service) room() error {
	if s.Room == nil {
		return nil
	}
	return s.Room()
}

// accept refuses a secret whose grace is over, and ends its Session.
func (s *Service) accept(ctx context.Context, held *v1alpha1.Session, generation int64) error {
	switch {
	case generation == held.Spec.Generation:
		return nil
	case generation > held.Spec.Generation:
		return refused("the refresh token is not valid" + loginAgain)
	}
	for _, r := range held.Spec.Rotations {
		if r.Generation == generation+1 && s.Clock.Now().Before(r.At.Add(grace)) {
			return nil
		}
	}
	if err := s.end(ctx, held); err != nil {
		return err
	}
	return endedBy(held, "the refresh token was replaced more than a minute ago and is not valid any more; the session has ended"+loginAgain)
}

// rotate makes the successor of a secret the current one, unless it has a successor already.
func (s *Service) rotate(o *v1alpha1.Session, generation int64) {
	if o.Spec.Generation != generation {
		return
	}
	now := s.Clock.Now()
	var rotations []v1alpha1.SessionRotation
	for _, r := range o.Spec.Rotations {
		if now.Before(r.At.Add(grace)) {
			rotations = append(rotations, r)
		}
	}
	if len(rotations) >= maxRotations {
		return
	}
	o.Spec.Generation, o.Spec.Rotations = generation+1, append(rotations, v1alpha1.SessionRotation{Generation: generation + 1, At: metav1.NewMicroTime(now)})
	if s.unused(o) {
		o.Spec.LastUsedAt = metav1.NewTime(now)
	}
}

// unused reports whether the last use that was written is long ago.
func (s *Service) unused(o *v1alpha1.Session) bool {
	return s.Clock.Since(o.Spec.LastUsedAt.Time) >= min(useInterval, s.IdleTimeout/4)
}

// Touch writes that a Session is in use, at most once in five minutes.
func (s *Service) Touch(ctx context.Context, name string) error {
	if err := s.room(); err != nil {
		return err
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	held, _, err := s.current(ctx, name)
	if err != nil {
		return err
	}
	_, err = s.Sessions.ChangeSession(ctx, held, func(_ context.Context, o *v1alpha1.Session) error {
		if o.Spec.EndedAt == nil && s.unused(o) {
			o.Spec.LastUsedAt = metav1.NewTime(s.Clock.Now())
		}
		return nil
	})
	return failure(err)
}
