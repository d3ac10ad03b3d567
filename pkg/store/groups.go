package store

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// GroupsConfig is what Groups are made of.
type GroupsConfig struct {
	Store  UserStore
	People PeopleView
	// Room returns an error while only what ends something is written.
	Room func() error
	// Now is the time by which rights end.
	Now func() time.Time
	// MaxAge is for how long groups count after the issue of the credential that says them.
	MaxAge  time.Duration
	Metrics prometheus.Registerer
}

// Groups writes what credentials say of the groups of people. The controller of Organizations makes parts of
// Memberships of it.
type Groups struct {
	GroupsConfig
	flight  singleflight.Group
	counted *prometheus.CounterVec
}

// NewGroups returns Groups and registers their metric.
func NewGroups(c GroupsConfig) (*Groups, error) {
	g := &Groups{GroupsConfig: c, counted: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kedge_groups_heard_total",
		Help: "Credentials with newer groups of a person, by what followed: gained, lost (some also gained), same or error.",
	}, []string{"result"})}
	for _, result := range []string{"gained", "lost", "same", "error"} {
		g.counted.WithLabelValues(result)
	}
	if err := c.Metrics.Register(g.counted); err != nil {
		return nil, fmt.Errorf("register the metric of groups: %w", err)
	}
	return g, nil
}

// Hear writes the groups of a User if a credential says something new, and waits until the cache has it. Where that
// fails, it returns an error only if the person has lost a group: their rights by it would outlive it.
func (g *Groups) Hear(ctx context.Context, u *v1alpha1.User, heard tenancy.HeardGroups) error {
	next := heard.Learn(u.Spec.Groups, g.Now(), g.MaxAge)
	if next == nil {
		return nil
	}
	loses := tenancy.LosesGroup(u.Spec.Groups, next)
	if !loses && g.Room != nil && g.Room() != nil {
		return nil
	}
	result := g.flight.DoChan(u.Name+" "+next.IssuedAt.UTC().Format(time.RFC3339), func() (any, error) {
		// Others may wait for it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		return nil, g.write(ctx, u, heard)
	})
	var err error
	select {
	case <-ctx.Done():
		err = unavailable(ctx.Err())
	case r := <-result:
		err = r.Err
	}
	if err != nil && !loses {
		return nil
	}
	return err
}

func (g *Groups) write(ctx context.Context, u *v1alpha1.User, heard tenancy.HeardGroups) error {
	result := "same"
	changed, err := g.Store.ChangeUser(ctx, u, nil, func(_ context.Context, u *v1alpha1.User) error {
		next := heard.Learn(u.Spec.Groups, g.Now(), g.MaxAge)
		switch {
		case next == nil:
			return nil
		case tenancy.LosesGroup(u.Spec.Groups, next):
			result = "lost"
		case tenancy.LosesGroup(next, u.Spec.Groups):
			result = "gained"
		}
		u.Spec.Groups = next
		return nil
	})
	if err == nil {
		err = g.People.Await(ctx, []tenancy.Ref{tenancy.UserRef(u.Name)}, func() bool {
			seen, ok := g.People.ByIdentity(u.Spec.Issuer, u.Spec.Subject)
			return !ok || seen.Generation >= changed.Generation
		})
	}
	if err != nil {
		g.counted.WithLabelValues("error").Inc()
		if !errs.Is(err, errs.NotFound) {
			err = unavailable(err)
		}
		return err
	}
	g.counted.WithLabelValues(result).Inc()
	return nil
}
