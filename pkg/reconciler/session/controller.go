package session

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of Sessions.
func NewController(d reconciler.Deps) *controller.Controller {
	sessions := reconciler.Keys(d.Views.Sessions.Keys)
	c := d.Controller(controller.Options{Name: "session", All: func() []controller.Key {
		return append(sessions(), controller.Key{Cluster: d.Clusters.Users})
	}}, New(configOf(d)))
	enqueue := func(name string) { c.Enqueue(controller.Key{Cluster: d.Clusters.Users, Name: name}) }
	of := func(user string) {
		for _, s := range d.Views.SessionsOf(user) {
			enqueue(s.Name)
		}
	}
	d.Views.Sessions.OnChange(func(s views.Change[*v1alpha1.Session]) {
		if s.New == nil {
			return
		}
		enqueue(s.New.Name)
		if user := s.New.Spec.UserRef.Name; s.Added() && len(d.Views.SessionsOf(user)) > maxSessions {
			of(user)
		}
	})
	// A User who is rejected, soft-deleted or removed has no Session any more.
	d.Views.Users.OnChange(func(u views.Change[*v1alpha1.User]) {
		if u.Ends(func(u *v1alpha1.User) any {
			return []any{u.Spec.Registration, u.Status.DeletionRequestedAt, u.Spec.TokensValidAfter}
		}) {
			of(u.Object().Name)
		}
	})
	return c
}

func configOf(d reconciler.Deps) Config {
	sessions, users := d.Clients.Sessions(d.Clusters.Users), d.Clients.Users(d.Clusters.Users)
	return Config{
		Clock: d.Settings.Clock, Idle: d.Settings.SessionIdleTimeout, Logins: loginsOf(d),
		Sessions: Sessions{
			Get: func(key controller.Key) (*v1alpha1.Session, bool) {
				return d.Views.Sessions.Get(key.Cluster, key.Name)
			},
			Of: d.Views.SessionsOf,
			Patch: func(ctx context.Context, s *v1alpha1.Session, changes map[string]any) error {
				return objects.Merge(ctx, sessions, s, changes)
			},
			Delete: func(ctx context.Context, s *v1alpha1.Session) error { return objects.DeleteUnchanged(ctx, sessions, s) },
		},
		Users: Users{
			Get: d.Views.ByName,
			Find: func(ctx context.Context, name string) (*v1alpha1.User, bool, error) {
				return objects.Find(ctx, users, name)
			},
		},
	}
}

func loginsOf(d reconciler.Deps) Logins {
	secrets := d.Clients.Secrets(d.Clusters.Users, tenancy.DefaultNamespace)
	return Logins{
		Find: func(ctx context.Context, name string) (*corev1.Secret, bool, error) {
			return objects.Find(ctx, secrets, name)
		},
		Each: func(ctx context.Context, f func(*corev1.Secret) error) error {
			return objects.Each(ctx, secrets, "secrets", tenancy.LoginLabel, func() *corev1.SecretList { return &corev1.SecretList{} }, func(l *corev1.SecretList) error {
				for i := range l.Items {
					if err := f(&l.Items[i]); err != nil {
						return err
					}
				}
				return nil
			})
		},
		Delete: func(ctx context.Context, s *corev1.Secret) error { return objects.DeleteUnchanged(ctx, secrets, s) },
	}
}
