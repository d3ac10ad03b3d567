package spare

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// inUse is the time after its last new Workspace for which an Organization keeps spares.
	inUse = 24 * time.Hour
	// unfinished is the time after which a spare that is not whole is thrown away.
	unfinished = 5 * time.Minute
	// recheck is the time after which the controller looks again whether kcp is busy. It learns of the
	// end of a create by its event.
	recheck = 10 * time.Second
)

// Config holds what the reconciler needs.
type Config struct {
	Clock clock.PassiveClock
	// Hash identifies what spares are made with at present.
	Hash string
	// Organizations is the number of spare Organizations, and Workspaces that of spare Workspaces in an
	// Organization that is in use.
	Organizations, Workspaces int
	// OrgsCluster is the logical cluster of the workspaces of Organizations.
	OrgsCluster string
	Cache       Cache
	KCP         KCP
	// Full reports whether the store has no room for a spare.
	Full func() bool
	// Busy reports whether kcp makes a workspace: one that somebody waits for, or a spare. Idle enqueues
	// the key again when it makes none.
	Busy func() bool
	Idle func(controller.Key)
	// Discarded is called for every spare that is thrown away.
	Discarded func(reason string)
}

// Cache reads from the views.
type Cache interface {
	// SparesIn returns the spares in a logical cluster, the oldest first.
	SparesIn(cluster string) []tenancy.Spare
	// OrgByCluster finds the Organization whose workspace is a logical cluster.
	OrgByCluster(cluster string) (tenancy.Org, bool)
	Workspaces(org string) []tenancy.Workspace
}

// KCP reads and writes kcp.
type KCP interface {
	// Create makes a spare in a logical cluster.
	Create(ctx context.Context, in string) error
	// Finish does what is missing of the workspace of a spare Organization.
	Finish(ctx context.Context, s tenancy.Spare) (time.Duration, error)
	// Delete deletes just this version of a spare.
	Delete(ctx context.Context, in string, s tenancy.Spare) error
	// Claimed reports whether kcp has the claim for which a spare is reserved.
	Claimed(ctx context.Context, in string, s tenancy.Spare) (bool, error)
}

// The reasons for which a spare is thrown away, as in metrics.
const (
	reasonAbandoned  = "abandoned"
	reasonOutdated   = "outdated"
	reasonIncomplete = "incomplete"
	reasonSurplus    = "surplus"
)

type keeper struct{ Config }

// New returns the reconciler.
func New(c Config) controller.Func { return (&keeper{c}).reconcile }

func (r *keeper) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	want, known := r.wanted(key.Cluster)
	if !known {
		return controller.Result{}, nil
	}
	var result controller.Result
	again := func(after time.Duration) {
		if after > 0 && (result.RequeueAfter == 0 || after < result.RequeueAfter) {
			result.RequeueAfter = after
		}
	}
	kept, now := 0, r.Clock.Now()
	for _, s := range r.Cache.SparesIn(key.Cluster) {
		if s.Terminating {
			continue
		}
		if s.Reserved != nil {
			after, err := r.reserved(ctx, key.Cluster, s)
			if err != nil {
				return controller.Result{}, err
			}
			again(after)
			continue
		}
		if reason := r.reason(s, kept, want, now); reason != "" {
			if err := r.discard(ctx, key.Cluster, s, reason); err != nil {
				return controller.Result{}, err
			}
			continue
		}
		kept++
		if s.Whole {
			continue
		}
		again(unfinished - now.Sub(s.CreatedAt.Time))
		if key.Cluster == r.OrgsCluster {
			after, err := r.KCP.Finish(ctx, s)
			if err != nil {
				return controller.Result{}, err
			}
			again(after)
		}
	}
	if kept >= want {
		return result, nil
	}
	if r.Full() {
		again(recheck)
		return result, nil
	}
	if r.Busy() {
		r.Idle(key)
		again(recheck)
		return result, nil
	}
	return result, r.KCP.Create(ctx, key.Cluster)
}

// wanted returns the number of spares in a logical cluster. known is false where none are kept or
// removed: in what is not an Organization, in a soft-deleted one, and in a spare that is going.
func (r *keeper) wanted(cluster string) (want int, known bool) {
	if cluster == r.OrgsCluster {
		return r.Organizations, true
	}
	for _, s := range r.Cache.SparesIn(r.OrgsCluster) {
		if s.ClusterID == cluster {
			return 1, s.KCPReady && !s.Terminating && s.Reserved == nil && s.Hash == r.Hash
		}
	}
	org, ok := r.Cache.OrgByCluster(cluster)
	if !ok || org.Deleted() {
		return 0, false
	}
	if r.inUse(org) {
		return r.Workspaces, true
	}
	return 0, true
}

// inUse reports whether somebody created a Workspace in the Organization, or the Organization itself,
// a short time ago.
func (r *keeper) inUse(org tenancy.Org) bool {
	since := r.Clock.Now().Add(-inUse)
	if org.CreationTimestamp.After(since) {
		return true
	}
	for _, ws := range r.Cache.Workspaces(org.UUID()) {
		if ws.CreatedAt.After(since) {
			return true
		}
	}
	return false
}

// Unwanted returns why spares in a logical cluster that nobody reserved are to be thrown away, by their names.
func (c Config) Unwanted(cluster string) map[string]string {
	r, reasons, kept := &keeper{c}, map[string]string{}, 0
	want, known := r.wanted(cluster)
	for _, s := range c.Cache.SparesIn(cluster) {
		if !known || s.Terminating || s.Reserved != nil {
			continue
		}
		if reason := r.reason(s, kept, want, c.Clock.Now()); reason != "" {
			reasons[s.Name] = reason
			continue
		}
		kept++
	}
	return reasons
}

// reason returns why a spare that nobody reserved is thrown away; it is empty for one that is kept.
func (r *keeper) reason(s tenancy.Spare, kept, want int, now time.Time) string {
	switch {
	case s.Hash != r.Hash:
		return reasonOutdated
	case !s.Whole && now.Sub(s.CreatedAt.Time) >= unfinished:
		return reasonIncomplete
	case kept >= want:
		return reasonSurplus
	}
	return ""
}

// reserved throws a spare away that was reserved for a claim that did not come. It returns the time
// after which to look again.
func (r *keeper) reserved(ctx context.Context, in string, s tenancy.Spare) (time.Duration, error) {
	if left := tenancy.ReservationTTL - r.Clock.Since(s.Reserved.At.Time); left > 0 {
		return left, nil
	}
	claimed, err := r.KCP.Claimed(ctx, in, s)
	if err != nil || claimed {
		return tenancy.ReservationTTL, err
	}
	return 0, r.discard(ctx, in, s, reasonAbandoned)
}

func (r *keeper) discard(ctx context.Context, in string, s tenancy.Spare, reason string) error {
	err := r.KCP.Delete(ctx, in, s)
	if err == nil {
		r.Discarded(reason)
	}
	return err
}
