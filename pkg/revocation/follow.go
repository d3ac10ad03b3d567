package revocation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Run asks kcp about rights that have ended until ctx ends.
func (r *Revocation) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, r.queue.ShutDown)
	defer stop()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for {
				l, ended := r.queue.Get()
				if ended {
					return
				}
				r.follow(ctx, l)
				r.queue.Done(l)
			}
		})
	}
	running.Wait()
}

// follow asks kcp once, or not yet where the binding is about to be removed. It makes the
// last cut where kcp has followed or the deadline is over, and has kcp asked again otherwise.
func (r *Revocation) follow(ctx context.Context, l loss) {
	r.mu.Lock()
	since, lost := r.since[l]
	r.mu.Unlock()
	if !lost {
		return
	}
	left, over := r.over(l)
	if over {
		r.settle(l, since)
		return
	}
	if r.config.Clock.Since(since) < unboundWithin && r.bound(l) {
		// kcp would say that it does not follow. The removal of the binding asks it at once.
		r.queue.AddRateLimited(l)
		return
	}
	var followed bool
	var err error
	if left.Workspace.ClusterID != "" {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		followed, err = r.config.Kcp.Followed(asking, l.user, l.role, left)
	}
	took := r.config.Clock.Since(since)
	switch {
	case ctx.Err() != nil:
	case followed:
		r.cut(l)
		r.metrics.followed.Observe(took.Seconds())
		r.settle(l, since)
	case took >= deadline:
		r.cut(l)
		r.metrics.late.Inc()
		log.From(ctx).Warn("kcp still goes by a right that has ended, or cannot be asked; streams were cut for the last time",
			zap.String("user", l.user), zap.String("cluster", l.cluster), zap.String("role", l.role), zap.Error(err))
		r.settle(l, since)
	default:
		r.queue.AddRateLimited(l)
	}
}

// over tells that nothing is left to ask kcp: the gate refuses the User, so that no stream
// is opened any more, or the User has the ClusterRole again. Otherwise it returns what is
// left to the User, which is empty while the gate cannot tell.
func (r *Revocation) over(l loss) (left tenancy.Entry, over bool) {
	left, err := r.config.Enter(l.user, l.cluster)
	if err != nil {
		return tenancy.Entry{}, !errs.Is(err, errs.Unavailable)
	}
	return left, left.Gives(l.role)
}

// bound reports whether the views still have a binding of the person to the role.
func (r *Revocation) bound(l loss) bool {
	if namespace, role, namespaced := strings.Cut(l.role, "/"); namespaced {
		return slices.ContainsFunc(r.config.Views.RoleBindings.InCluster(l.cluster), func(b *rbacv1.RoleBinding) bool {
			return b.Namespace == namespace && b.RoleRef.Name == role && b.Labels[v1alpha1.UserLabel] == l.user
		})
	}
	return slices.ContainsFunc(r.config.Views.ClusterRoleBindings.InCluster(l.cluster), func(b *rbacv1.ClusterRoleBinding) bool {
		return b.RoleRef.Name == l.role && b.Labels[v1alpha1.UserLabel] == l.user
	})
}

// settle forgets an end of a right, unless the right has ended once more since.
func (r *Revocation) settle(l loss, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since[l].Equal(since) {
		delete(r.since, l)
		r.queue.Forget(l)
	}
}

type metrics struct {
	followed prometheus.Histogram
	late     prometheus.Counter
}

func newMetrics() metrics {
	return metrics{
		followed: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kedge_revocation_followed_seconds",
			Help:    "Seconds from the hub learning that a right ended until kcp's authorizer refused it, where a lesser right is left.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 12),
		}),
		late: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kedge_revocation_late_total",
			Help: "Rights that kcp's authorizer still granted at the deadline, or that it could not be asked about.",
		}),
	}
}

func (m metrics) register(registry prometheus.Registerer) error {
	return errors.Join(registry.Register(m.followed), registry.Register(m.late))
}
