package session

import (
	"context"
	"errors"

	"github.com/faroshq/kedge-hub/pkg/errs"
)

// IDToken returns the ID token of a Session, and renews it if little of its life is left. The
// portal's cookie is no credential for kcp, so the hub uses this token for requests to kcp on
// behalf of the person.
func (s *Service) IDToken(ctx context.Context, name string) (string, error) {
	// The name of a Session contains no space, and no secret begins with it.
	result := s.flight.DoChan("session "+name, func() (any, error) {
		ctx, cancel := detached(ctx)
		defer cancel()
		held, user, err := s.current(ctx, name)
		if err != nil {
			return "", err
		}
		kept, err := s.fresh(ctx, held, user)
		return kept.Token, err
	})
	select {
	case <-ctx.Done():
		return "", unavailable(ctx.Err(), "the ID token of the session could not be renewed in time; try again")
	case r := <-result:
		token, _ := r.Val.(string)
		var refusal *Error
		if errors.As(r.Err, &refusal) {
			return "", errs.Wrap(errs.Unauthenticated, r.Err, refusal.Description)
		}
		return token, r.Err
	}
}
