package session

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Sessions reconciles the Sessions of Users and the Secrets about their logins.
type Sessions struct {
	// RightsClock is the time by which Sessions end. Clock is the earliest time that it may be, by which
	// what they leave is removed: it refuses tokens, or is the login of a person.
	RightsClock, Clock clock.PassiveClock
	// Idle is the time without a use after which a Session ends.
	Idle time.Duration
	// Of returns the Sessions of a User from the cache, and ByName a User.
	Of       func(user string) []*v1alpha1.Session
	ByName   func(name string) (*v1alpha1.User, bool)
	Sessions objects.Repository[*v1alpha1.Session]
	Users    objects.Repository[*v1alpha1.User]
	Secrets  objects.Repository[*corev1.Secret]
	// Cluster is the logical cluster of all of them.
	Cluster string
}

// maxSessions is the number of Sessions that a User can have. Those that were used longest
// ago end, so that a client that logs in again and again does not fill kcp.
const maxSessions = 100

// settled is the age at which the Session of a grant is in the cache, if there is one.
const settled = 2 * time.Minute

// Reconcile ends a Session when it is time and removes what is left of one. A key without a name is
// for the Secrets that nobody needs.
func (c Sessions) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	if key.Name == "" {
		return controller.Result{}, c.sweep(ctx)
	}
	s, ok := c.Sessions.ByKey(key)
	if !ok || s.Annotations[v1alpha1.OperationAnnotation] == v1alpha1.OperationIgnore {
		return controller.Result{}, nil
	}
	user, err := c.user(ctx, s.Spec.UserRef.Name)
	if err != nil {
		return controller.Result{}, err
	}
	now := c.RightsClock.Now()
	ended := tenancy.SessionEnded(s, user, now, c.Idle)
	if !ended && !c.surplus(s, user) {
		return controller.Result{RequeueAfter: until(tenancy.SessionEnd(s, c.Idle), now)}, nil
	}
	if s.Spec.EndedAt == nil {
		ended := map[string]any{"endedAt": metav1.NewTime(now), "idToken": nil, "code": nil}
		return controller.Result{}, c.Sessions.Merge(ctx, c.Cluster, s, map[string]any{"spec": ended})
	}
	wait, err := c.removeGrant(ctx, user, s.Spec.UserRef.Name)
	if err != nil || wait > 0 {
		return controller.Result{RequeueAfter: wait}, err
	}
	now = c.Clock.Now()
	if expiry := tenancy.SessionTokensEnd(s); now.Before(expiry) {
		return controller.Result{RequeueAfter: until(expiry, now)}, nil
	}
	return controller.Result{}, c.remove(ctx, s)
}

// remove deletes a Session. One that is being deleted, by this controller or by hand, is let
// go.
func (c Sessions) remove(ctx context.Context, s *v1alpha1.Session) error {
	switch {
	case s.DeletionTimestamp.IsZero():
		return c.Sessions.DeleteUnchanged(ctx, c.Cluster, s)
	case !controller.HasFinalizer(s):
		// Somebody else has a finalizer.
		return nil
	}
	released := s.DeepCopy()
	controller.RemoveFinalizer(released)
	return c.Sessions.Merge(ctx, c.Cluster, s, finalizers(released.Finalizers))
}

func finalizers(all []string) map[string]any {
	return map[string]any{"metadata": map[string]any{"finalizers": all}}
}

// user returns a User, or nil if there is none. It asks kcp for a User whom the cache does
// not have: the cache of Users may be behind that of Sessions.
func (c Sessions) user(ctx context.Context, name string) (*v1alpha1.User, error) {
	if u, ok := c.ByName(name); ok {
		return u, nil
	}
	u, ok, err := c.Users.Find(ctx, c.Cluster, name)
	if err != nil || !ok {
		return nil, err
	}
	return u, nil
}

// removeGrant removes the grant of a User without a Session. It returns how long it is to
// wait before: the Session of a new grant may not be in the cache yet.
func (c Sessions) removeGrant(ctx context.Context, user *v1alpha1.User, name string) (wait time.Duration, err error) {
	if c.live(user, name) {
		return 0, nil
	}
	grant, ok, err := c.Secrets.Find(ctx, c.Cluster, tenancy.ProviderGrantName(name))
	if err != nil || !ok {
		return 0, err
	}
	now := c.Clock.Now()
	if settles := tenancy.ProviderGrantOf(grant).SavedAt.Add(settled); now.Before(settles) {
		return until(settles, now), nil
	}
	return 0, c.Secrets.DeleteUnchanged(ctx, c.Cluster, grant)
}

// surplus reports whether a User has as many Sessions that were used later as they can have.
func (c Sessions) surplus(s *v1alpha1.Session, user *v1alpha1.User) bool {
	later := 0
	for _, other := range c.Of(s.Spec.UserRef.Name) {
		order := cmp.Or(other.Spec.LastUsedAt.Compare(s.Spec.LastUsedAt.Time), cmp.Compare(other.Name, s.Name))
		if order > 0 && !tenancy.SessionEnded(other, user, c.RightsClock.Now(), c.Idle) {
			later++
		}
	}
	return later >= maxSessions
}

// live reports whether a User may have a Session that has not ended.
func (c Sessions) live(user *v1alpha1.User, name string) bool {
	for _, s := range c.Of(name) {
		if !tenancy.SessionEnded(s, user, c.Clock.Now(), c.Idle) {
			return true
		}
	}
	return false
}

// sweep removes the Secrets about logins that nobody needs.
func (c Sessions) sweep(ctx context.Context) error {
	return c.Secrets.Each(ctx, c.Cluster, tenancy.LoginLabel, func(s *corev1.Secret) error {
		switch s.Labels[tenancy.LoginLabel] {
		case tenancy.LoginDevice:
			// A device that was confirmed at the last moment gets its tokens later.
			if c.Clock.Now().Before(tenancy.DeviceLoginOf(s).ExpiresAt.Add(settled)) {
				return nil
			}
			return c.Secrets.DeleteUnchanged(ctx, c.Cluster, s)
		case tenancy.LoginGrant:
			return c.sweepGrant(ctx, tenancy.ProviderGrantOf(s).User)
		}
		return nil
	})
}

func (c Sessions) sweepGrant(ctx context.Context, name string) error {
	user, err := c.user(ctx, name)
	if err == nil {
		_, err = c.removeGrant(ctx, user, name)
	}
	return err
}

// until returns the time to a later moment, and a second at least: kcp stores whole seconds.
func until(end, now time.Time) time.Duration { return max(time.Second, end.Sub(now)) }
