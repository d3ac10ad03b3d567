package store

import (
	"context"
	"fmt"

	"golang.org/x/sync/singleflight"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// UserStore is what sign-up writes to.
type UserStore interface {
	CreateUser(ctx context.Context, u *v1alpha1.User) (*v1alpha1.User, error)
	GetUser(ctx context.Context, name string) (*v1alpha1.User, error)
	AmendUser(ctx context.Context, held *v1alpha1.User, change func(context.Context, *v1alpha1.User) (map[string]any, error)) (*v1alpha1.User, error)
}

// PeopleView is what sign-up waits for.
type PeopleView interface {
	ByIdentity(issuer, subject string) (*v1alpha1.User, bool)
	Await(ctx context.Context, cond func() bool) error
}

// SignUp makes the User of an identity that is seen for the first time, exactly
// once: in this process by a flight per identity, across replicas because the
// name follows from the identity and kcp gives it away once.
type SignUp struct {
	store  UserStore
	people PeopleView
	flight singleflight.Group
}

// NewSignUp returns a SignUp.
func NewSignUp(store UserStore, people PeopleView) *SignUp {
	return &SignUp{store: store, people: people}
}

// Ensure returns the User of the identity in desired, made from desired.Spec
// where there is none, once the view has it. preferred is the readable name to
// try first.
func (s *SignUp) Ensure(ctx context.Context, desired v1alpha1.UserSpec, preferred string) (*v1alpha1.User, error) {
	hash := tenancy.IdentityHash(desired.Issuer, desired.Subject)
	// The flight outlives a caller that goes away: others may be waiting for it.
	result := s.flight.DoChan(hash, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		if u, ok := s.people.ByIdentity(desired.Issuer, desired.Subject); ok {
			return u, nil
		}
		if _, err := s.make(ctx, desired, preferred, hash); err != nil {
			return nil, err
		}
		var made *v1alpha1.User
		if err := s.people.Await(ctx, func() (ok bool) {
			made, ok = s.people.ByIdentity(desired.Issuer, desired.Subject)
			return ok
		}); err != nil {
			return nil, unavailable(fmt.Errorf("wait for the view of people: %w", err))
		}
		return made, nil
	})
	select {
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*v1alpha1.User), nil
	}
}

// Approve lets in somebody who waits, and returns them once the view has it. Who is
// not waiting any more, but rejected for one, stays as they are.
func (s *SignUp) Approve(ctx context.Context, held *v1alpha1.User) (*v1alpha1.User, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	u, err := s.store.AmendUser(ctx, held, func(_ context.Context, u *v1alpha1.User) (map[string]any, error) {
		if u.Spec.Registration != v1alpha1.RegistrationPending {
			return nil, nil
		}
		return map[string]any{"registration": v1alpha1.RegistrationApproved}, nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.people.Await(ctx, func() bool {
		seen, ok := s.people.ByIdentity(u.Spec.Issuer, u.Spec.Subject)
		return !ok || seen.Generation >= u.Generation
	}); err != nil {
		return nil, unavailable(fmt.Errorf("wait for the view of people: %w", err))
	}
	return u, nil
}

func (s *SignUp) make(ctx context.Context, desired v1alpha1.UserSpec, preferred, hash string) (*v1alpha1.User, error) {
	first, second := tenancy.UserNames(desired.Issuer, desired.Subject, preferred, desired.Email)
	for _, name := range []string{first, second} {
		u := &v1alpha1.User{Spec: desired}
		u.Name = name
		u.Labels = map[string]string{v1alpha1.IdentityLabel: hash}
		// What comes back may be somebody else's, too, where an answer was lost.
		held, err := s.store.CreateUser(ctx, u)
		if errs.Is(err, errs.AlreadyExists) {
			held, err = s.store.GetUser(ctx, name)
		}
		if err != nil {
			return nil, err
		}
		if held.Spec.Issuer == desired.Issuer && held.Spec.Subject == desired.Subject {
			return held, nil
		}
		if held.Spec.RBACIdentity == desired.RBACIdentity {
			// kcp could not tell the two apart, so the second gets nothing.
			return nil, errs.New(errs.Forbidden, "another person already has this username; ask a platform admin")
		}
	}
	return nil, errs.New(errs.Conflict, "no free name for this person could be found; ask a platform admin")
}
