package server

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/restore/external"
)

// orderInterval is the time between two looks of a replica whether kcp has an order of a restore, and how far it is.
const orderInterval = time.Second

// errOrdered ends a hub behind which kcp was restored.
var errOrdered = errors.New("kcp was restored, and kedge-hub restore has ordered to end what ended after the backup: " +
	"the next start of this hub is in restore mode")

// shared is the ledger of an external kcp.
type shared struct {
	orders *external.Orders
	id     string
	plan   restore.Plan
}

// Report implements ledger.
func (s shared) Report(ctx context.Context) (r restore.Report, err error) {
	return r, retrying(ctx, "read the report of the restore", func() error {
		r, err = s.orders.Report(ctx)
		if errors.Is(err, external.ErrNone) {
			// Another replica has ended everything, and the operator has released purges.
			r, err = restore.Report{Plan: s.plan}, nil
		}
		return err
	})
}

// Save implements ledger.
func (s shared) Save(ctx context.Context, r restore.Report, phase restore.Phase) error {
	return retrying(ctx, "store the report of the restore", func() error { return s.orders.Save(ctx, s.id, r, phase) })
}

// Applied implements ledger.
func (s shared) Applied(ctx context.Context) (bool, error) {
	state, err := s.orders.State(ctx)
	if err != nil {
		return false, err
	}
	if state.ID != s.id {
		return false, external.ErrReplaced
	}
	// Without a phase the operator has released purges since.
	return state.Phase == "" || !state.Phase.Before(restore.PhaseApplied), nil
}

// retrying calls do until it succeeds, ctx ends, or there is another order.
func retrying(ctx context.Context, what string, do func() error) error {
	return wait.PollUntilContextCancel(ctx, orderInterval, true, func(ctx context.Context) (bool, error) {
		err := do()
		if err != nil && !errors.Is(err, external.ErrReplaced) {
			log.From(ctx).Warn("cannot "+what+" yet; trying again", zap.Error(err))
			return false, nil
		}
		return err == nil, err
	})
}

// findOrder finds what a restore of an external kcp has left to do, and whether purges are held. It waits for an order that
// is being written.
func (a *assembly) findOrder(starting context.Context) error {
	h := a.hub
	if h.config.Embedded {
		return nil
	}
	orders := external.New(a.clients, a.clusters.Root)
	var state external.State
	var plan restore.Plan
	err := retrying(starting, "read what kedge-hub restore has ordered", func() (err error) {
		if state, err = orders.State(starting); err != nil {
			return err
		}
		if state.Phase == restore.PhaseWriting {
			const text = "kedge-hub restore --external has not written all of its order; where it was interrupted, run it again"
			h.restored.wait(text)
			return errors.New(text)
		}
		if state.Replaying() {
			plan, err = orders.Plan(starting, state)
		}
		return err
	})
	if err != nil {
		return err
	}
	h.orders = orders
	h.purges.free = func(ctx context.Context) error {
		return errors.Join(orders.Release(ctx), restore.Release(h.config.DataDir))
	}
	h.purges.held.Store(h.held(state))
	if !state.Replaying() {
		h.restored.end()
		return nil
	}
	h.restored.order(shared{orders: orders, id: state.ID, plan: plan}, plan)
	return nil
}

// watchOrders follows whether purges are held, until ctx ends. It fails when the operator has restored kcp behind a hub that
// serves: its next start is in restore mode.
func (h *hub) watchOrders(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(orderInterval):
		}
		state, err := h.orders.State(ctx)
		switch {
		case err != nil:
			log.From(ctx).Debug("it is not known whether kcp was restored", zap.Error(err))
		case state.Replaying():
			h.purges.held.Store(true)
			return errOrdered
		default:
			held := h.held(state)
			if h.purges.held.Swap(held) && !held {
				log.From(ctx).Info("the operator lets purges run again")
			}
		}
	}
}

// held reports whether purges are held: by kcp, or by a data folder that was restored for the embedded kcp before its data
// was given to this one.
func (h *hub) held(state external.State) bool {
	here, err := restore.Held(h.config.DataDir)
	return state.Phase != "" || here || err != nil
}
