package access

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

const (
	// Settled is how long after the end of somebody's right to write bindings nothing of
	// theirs is on its way any more: kcp's authorizer may be behind what is in kcp, and a
	// write that it let through behind what was looked for.
	Settled = 2 * time.Second
	// remembered is how long an end that nobody has dealt with is kept: longer than it
	// takes another replica to lead, or kcp to come back.
	remembered = 5 * time.Minute
	// takeover is how long it may take until a replica leads, and sweeps.
	takeover = 15 * time.Second
)

// place is a person in a Workspace.
type place struct {
	controller.Key
	user string
}

// ended are those who could write bindings in a Workspace until a moment ago. What
// they bound themselves to goes with that, and every trace of it in the Workspace
// itself they could remove; so it is remembered here, by every replica, of which one
// may be the next to lead.
type ended struct {
	clock clock.PassiveClock

	mu sync.Mutex
	at map[place]end
	// held are the bindings that had finalizers, and when they were emptied.
	held map[types.UID]time.Time
}

type end struct {
	identity string
	when     time.Time
	// swept is when it was first looked for what they are bound to.
	swept time.Time
}

// Ended is told of everybody whose right to write bindings in a Workspace ended. The
// next pass over it, and another one when all has settled, takes them out of what
// tenants bound there.
func (r *Reconciler) Ended(key controller.Key, user string) {
	u, ok := r.config.User(user)
	if !ok {
		return
	}
	r.ended.mu.Lock()
	defer r.ended.mu.Unlock()
	now := r.ended.clock.Now()
	for p, e := range r.ended.at {
		if now.Sub(e.when) > remembered {
			delete(r.ended.at, p)
		}
	}
	r.ended.at[place{key, user}] = end{identity: u.Spec.RBACIdentity, when: now}
}

// EndedLately tells whether the User's right to write bindings in a Workspace ended a
// moment ago, and what they have on its way is still to settle. A replica that does not
// lead does not know when they are swept out of bindings, and waits for the longest.
func (r *Reconciler) EndedLately(key controller.Key, user string) bool {
	r.ended.mu.Lock()
	defer r.ended.mu.Unlock()
	e, ok := r.ended.at[place{key, user}]
	if e.swept.IsZero() {
		return ok && r.ended.clock.Since(e.when) < takeover
	}
	// A pass that began before it ended may have gone on to write what it knew.
	return r.ended.clock.Since(e.swept) < Settled
}

// sweep takes those whose right ended before the grants were read out of what tenants
// bound, and returns when to look once more.
func (r *Reconciler) sweep(ctx context.Context, cluster string, before map[place]end, d due) (after time.Duration, err error) {
	for p, e := range before {
		switch {
		case tenancy.IsAdmin(d.grants, p.user) || r.ended.clock.Since(e.when) > remembered:
			r.ended.done(p, e)
		case e.swept.IsZero():
			if err := r.config.Unbind(ctx, cluster, e.identity, d.wanted); err != nil {
				return 0, err
			}
			r.ended.swept(p, e)
			after = Settled
		case r.ended.clock.Since(e.swept) < Settled:
			after = max(after, Settled-r.ended.clock.Since(e.swept))
		default:
			if err := r.config.Unbind(ctx, cluster, e.identity, d.wanted); err != nil {
				return 0, err
			}
			r.ended.done(p, e)
		}
	}
	return after, nil
}

// emptied is told of a binding that had finalizers, and may be given them again. kcp
// asks its copy of a binding, too, and does not write to that while the binding waits
// for its finalizers; so the copy is to be empty before the binding is deleted.
func (d *ended) emptied(binding types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	for uid, when := range d.held {
		if now.Sub(when) > remembered {
			delete(d.held, uid)
		}
	}
	d.held[binding] = now
}

// copied tells whether a binding can go.
func (d *ended) copied(binding types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	when, ok := d.held[binding]
	return !ok || d.clock.Since(when) >= Settled
}

func (d *ended) of(key controller.Key) map[place]end {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := map[place]end{}
	for p, e := range d.at {
		if p.Key == key {
			found[p] = e
		}
	}
	return found
}

// done forgets an end, unless there was another one meanwhile.
func (d *ended) done(p place, e end) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at[p].when.Equal(e.when) {
		delete(d.at, p)
	}
}

func (d *ended) swept(p place, e end) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at[p].when.Equal(e.when) {
		e.swept = d.clock.Now()
		d.at[p] = e
	}
}
