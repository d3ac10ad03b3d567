package store

import (
	"context"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// SaveGrant stores the refresh token of a new login, over that of an earlier one and never
// over that of a later one. A refresh that is going on keeps its lease and finds the newer
// token.
func (s *Store) SaveGrant(ctx context.Context, g tenancy.ProviderGrant) error {
	for {
		err := s.createLogin(ctx, g.Secret())
		if !errs.Is(err, errs.AlreadyExists) {
			return err
		}
		_, err = s.ChangeGrant(ctx, g.User, func(held tenancy.ProviderGrant) (tenancy.ProviderGrant, error) {
			if !g.IssuedAt.Before(held.IssuedAt) {
				held.Sealed, held.SavedAt, held.IssuedAt = g.Sealed, g.SavedAt, g.IssuedAt
			}
			return held, nil
		})
		// NotFound means that it was removed in between.
		if !errs.Is(err, errs.NotFound) || ctx.Err() != nil {
			return err
		}
	}
}

// GetGrant gets the grant of a User from kcp.
func (s *Store) GetGrant(ctx context.Context, user string) (tenancy.ProviderGrant, error) {
	held, err := read(ctx, s.loginSecrets(), tenancy.ProviderGrantName(user), "grant")
	if err != nil {
		return tenancy.ProviderGrant{}, err
	}
	return tenancy.ProviderGrantOf(held), nil
}

// ChangeGrant changes the grant of a User by compare-and-swap. After a conflict, edit is
// called again with the newer grant. It writes nothing if edit returns what it was given.
func (s *Store) ChangeGrant(ctx context.Context, user string, edit func(tenancy.ProviderGrant) (tenancy.ProviderGrant, error)) (tenancy.ProviderGrant, error) {
	return changeLogin(ctx, s, tenancy.ProviderGrantName(user), tenancy.ProviderGrantOf, tenancy.ProviderGrant.Data, edit, "grant")
}

// CreateDevice stores a login of the device flow. The error is AlreadyExists if its user
// code is in use.
func (s *Store) CreateDevice(ctx context.Context, d tenancy.DeviceLogin) error {
	return s.createLogin(ctx, d.Secret())
}

// GetDevice gets a login of the device flow from kcp.
func (s *Store) GetDevice(ctx context.Context, id string) (tenancy.DeviceLogin, error) {
	held, err := read(ctx, s.loginSecrets(), tenancy.DeviceLoginName(id), "login")
	if err != nil {
		return tenancy.DeviceLogin{}, err
	}
	return tenancy.DeviceLoginOf(held), nil
}

// ChangeDevice changes a login of the device flow as ChangeGrant changes a grant.
func (s *Store) ChangeDevice(ctx context.Context, id string, edit func(tenancy.DeviceLogin) (tenancy.DeviceLogin, error)) (tenancy.DeviceLogin, error) {
	return changeLogin(ctx, s, tenancy.DeviceLoginName(id), tenancy.DeviceLoginOf, tenancy.DeviceLogin.Data, edit, "login")
}

func (s *Store) loginSecrets() *kcp.Client[*corev1.Secret] {
	return s.clients.Secrets(s.users, tenancy.DefaultNamespace)
}

// createLogin creates a Secret about a login, and the namespace if it is missing: kcp
// creates it shortly after the workspace. After a lost answer the error is AlreadyExists,
// because it could not tell its own object from that of another login.
func (s *Store) createLogin(ctx context.Context, secret *corev1.Secret) error {
	client := s.loginSecrets()
	create := func(ctx context.Context) error {
		_, err := client.Create(ctx, secret, metav1.CreateOptions{FieldManager: kcp.FieldManager})
		return err
	}
	return convert(retry(ctx, func(ctx context.Context) error {
		err := create(ctx)
		if !apierrors.IsNotFound(err) {
			return err
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenancy.DefaultNamespace}}
		_, err = s.clients.Namespaces(s.users).Create(ctx, namespace, metav1.CreateOptions{FieldManager: kcp.FieldManager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return create(ctx)
	}), "login")
}

// changeLogin changes a Secret about a login, of which of and data are the content.
func changeLogin[T any](ctx context.Context, s *Store, name string, of func(*corev1.Secret) T, data func(T) map[string][]byte,
	edit func(T) (T, error), what string,
) (T, error) {
	var none T
	held := &corev1.Secret{}
	held.Name = name
	changed, err := change(ctx, s.turns, s.loginSecrets(), held, nil, func(_ context.Context, o *corev1.Secret) error {
		before := of(o)
		after, err := edit(before)
		if err == nil && !reflect.DeepEqual(before, after) {
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			maps.Copy(o.Data, data(after))
		}
		return err
	}, what)
	if err != nil {
		return none, err
	}
	return of(changed), nil
}
