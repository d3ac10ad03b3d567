package store

import (
	"context"
	"fmt"

	"golang.org/x/sync/singleflight"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// UserStore is the part of Store that sign-up uses.
type UserStore interface {
	CreateUser(ctx context.Context, u *v1alpha1.User) (*v1alpha1.User, error)
	GetUser(ctx context.Context, name string) (*v1alpha1.User, error)
	ChangeUser(ctx context.Context, held *v1alpha1.User, match Match, edit func(context.Context, *v1alpha1.User) error) (*v1alpha1.User, error)
}

// PeopleView is the cache of Users that sign-up waits for.
type PeopleView interface {
	ByIdentity(issuer, subject string) (*v1alpha1.User, bool)
	ByUsername(rbacIdentity string) (*v1alpha1.User, bool)
	Await(ctx context.Context, refs []tenancy.Ref, cond func() bool) error
}

// SignUp creates the User of a new identity exactly once. A singleflight group serializes
// requests of one process. Across replicas, the name is derived from the identity and kcp
// accepts it once.
type SignUp struct {
	store    UserStore
	people   PeopleView
	reserved func(issuer, name string) bool
	spares   SpareStore
	flight   singleflight.Group
}

// SpareStore is the part of Spares that sign-up uses.
type SpareStore interface {
	ForSignUp(ctx context.Context, identity string) tenancy.ReservedSpare
	GiveBack(ctx context.Context, spare tenancy.ReservedSpare)
}

// NewSignUp returns a SignUp that writes to store and waits for people. A User of the issuer
// does not get a name that is reserved. spares has what becomes a personal Organization; nil means that
// sign-up takes none.
func NewSignUp(store UserStore, people PeopleView, reserved func(issuer, name string) bool, spares SpareStore) *SignUp {
	return &SignUp{store: store, people: people, reserved: reserved, spares: spares}
}

// Ensure returns the User of the identity in desired. If there is none, it creates one with
// the spec desired and waits until the cache has it. preferred is the readable name to try
// first.
func (s *SignUp) Ensure(ctx context.Context, desired v1alpha1.UserSpec, preferred string) (*v1alpha1.User, error) {
	hash := tenancy.IdentityHash(desired.Issuer, desired.Subject)
	// The call continues after its caller has gone, because others may wait for it.
	result := s.flight.DoChan(hash, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		if u, ok := s.people.ByIdentity(desired.Issuer, desired.Subject); ok {
			return u, nil
		}
		// Another hub may have created the User of this identity since.
		if u, ok := s.people.ByUsername(desired.RBACIdentity); ok && !identifies(desired, u) {
			return nil, errUsernameTaken()
		}
		held, err := s.createWithSpare(ctx, desired, preferred, hash)
		if err != nil {
			return nil, err
		}
		var created *v1alpha1.User
		if err := s.people.Await(ctx, []tenancy.Ref{tenancy.UserRef(held.Name)}, func() (ok bool) {
			created, ok = s.people.ByIdentity(desired.Issuer, desired.Subject)
			return ok
		}); err != nil {
			return nil, unavailable(fmt.Errorf("wait for the view of people: %w", err))
		}
		return created, nil
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

// Approve approves a User whose registration is pending and waits until the cache has the
// change. Other registrations stay as they are.
func (s *SignUp) Approve(ctx context.Context, held *v1alpha1.User) (*v1alpha1.User, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	u, err := s.store.ChangeUser(ctx, held, nil, func(_ context.Context, u *v1alpha1.User) error {
		if u.Spec.Registration == v1alpha1.RegistrationPending {
			u.Spec.Registration = v1alpha1.RegistrationApproved
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.people.Await(ctx, []tenancy.Ref{tenancy.UserRef(u.Name)}, func() bool {
		seen, ok := s.people.ByIdentity(u.Spec.Issuer, u.Spec.Subject)
		return !ok || seen.Generation >= u.Generation
	}); err != nil {
		return nil, unavailable(fmt.Errorf("wait for the view of people: %w", err))
	}
	return u, nil
}

// createWithSpare creates the User with the name of a spare as the UUID of their personal Organization,
// if there is one.
func (s *SignUp) createWithSpare(ctx context.Context, desired v1alpha1.UserSpec, preferred, hash string) (*v1alpha1.User, error) {
	if s.spares == nil {
		return s.create(ctx, desired, preferred, hash, "")
	}
	spare := s.spares.ForSignUp(ctx, hash)
	held, err := s.create(ctx, desired, preferred, hash, spare.UUID)
	if err == nil && tenancy.PersonalOrgOf(held) != spare.UUID {
		// Another hub was first. After an error the User may exist nevertheless.
		s.spares.GiveBack(ctx, spare)
	}
	return held, err
}

func (s *SignUp) create(ctx context.Context, desired v1alpha1.UserSpec, preferred, hash, personalOrg string) (*v1alpha1.User, error) {
	for _, name := range tenancy.UserNames(desired.Issuer, desired.Subject, preferred, desired.Email) {
		if s.reserved(desired.Issuer, name) {
			continue
		}
		u := &v1alpha1.User{Spec: desired}
		u.Name = name
		u.Labels = map[string]string{v1alpha1.IdentityLabel: hash}
		// With the finalizer the controller need not write it before it makes anything else.
		u.Finalizers = []string{v1alpha1.CascadeFinalizer}
		if personalOrg != "" {
			u.Annotations = map[string]string{v1alpha1.PersonalOrgAnnotation: personalOrg}
		}
		// After a lost answer, the returned User can belong to another identity.
		held, err := s.store.CreateUser(ctx, u)
		if errs.Is(err, errs.AlreadyExists) {
			held, err = s.store.GetUser(ctx, name)
		}
		if err != nil {
			return nil, err
		}
		if identifies(desired, held) {
			return held, nil
		}
		if held.Spec.RBACIdentity == desired.RBACIdentity {
			return nil, errUsernameTaken()
		}
	}
	return nil, errs.New(errs.Unavailable,
		"no free name for this person could be found; try again, and ask a platform admin if it lasts").After(retryAfter)
}

// identifies reports whether a User has the identity in desired.
func identifies(desired v1alpha1.UserSpec, u *v1alpha1.User) bool {
	return u.Spec.Issuer == desired.Issuer && u.Spec.Subject == desired.Subject
}

// errUsernameTaken refuses the second of two people whom kcp could not tell apart.
func errUsernameTaken() error {
	return errs.New(errs.Forbidden, "another person already has this username; ask a platform admin")
}
