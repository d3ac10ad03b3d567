package session

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of Sessions.
func NewController(d reconciler.Deps) *controller.Controller {
	stored, sessions := d.Objects(), reconciler.Keys(d.Views.Sessions.Keys)
	c := d.Controller(controller.Options{Name: "session", All: func() []controller.Key {
		return append(sessions(), controller.Key{Cluster: d.Clusters.Users})
	}}, Sessions{
		RightsClock: d.Settings.RightsClock, Clock: d.Settings.Clock, Idle: d.Settings.SessionIdleTimeout,
		Of: d.Views.SessionsOf, ByName: d.Views.ByName,
		Sessions: stored.Sessions, Users: stored.Users, Secrets: stored.Secrets, Cluster: d.Clusters.Users,
	}.Reconcile)
	// All keys are in one logical cluster: those of a person wait in their line.
	enqueue := func(user, name string, ends bool) {
		c.EnqueueFor("user "+user, controller.Key{Cluster: d.Clusters.Users, Name: name}, ends)
	}
	of := func(user string, ends bool) {
		for _, s := range d.Views.SessionsOf(user) {
			enqueue(user, s.Name, ends)
		}
	}
	d.Views.Sessions.OnChange(func(s views.Change[*v1alpha1.Session]) {
		if s.New == nil {
			return
		}
		user := s.New.Spec.UserRef.Name
		enqueue(user, s.New.Name, s.Ends(func(s *v1alpha1.Session) any { return s.Spec.EndedAt }))
		if s.Added() && len(d.Views.SessionsOf(user)) > maxSessions {
			of(user, false)
		}
	})
	// A User who is rejected, soft-deleted or removed has no Session any more.
	d.Views.Users.OnChange(func(u views.Change[*v1alpha1.User]) {
		if u.Ends(func(u *v1alpha1.User) any {
			return []any{u.Spec.Registration, u.Status.DeletionRequestedAt, u.Spec.TokensValidAfter}
		}) {
			of(u.Object().Name, true)
		}
	})
	return c
}
