package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/leader"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/restore/external"
)

const (
	// leaseLook is how long the Lease of the leader must not change before an order is written. A leader renews it more
	// often, also one with another clock.
	leaseLook = 3 * time.Second
	// externalTimeout limits the time of a command that asks an external kcp.
	externalTimeout = 5 * time.Minute
)

// behind is an external kcp that a command asks without a hub.
type behind struct {
	clients *kcp.Clients
	// cluster is the logical cluster of the root workspace of the tree.
	cluster string
}

// askBehind calls do with an external kcp that has a tree of a hub.
func askBehind(ctx context.Context, c Config, do func(ctx context.Context, b behind) error) error {
	ctx, cancel := context.WithTimeout(ctx, externalTimeout)
	defer cancel()
	clients, err := connect.Clients(ctx, c.KCP())
	if err != nil {
		return err
	}
	defer clients.Close()
	cluster, err := bootstrap.RootCluster(ctx, clients, c.Tree)
	if err != nil {
		return fmt.Errorf("this kcp has no data of a hub, restore it first: %w", err)
	}
	return do(ctx, behind{clients, cluster})
}

// RestoreExternal has the replicas of a hub end what ended after the backup from which their external kcp was restored, before
// they serve. Nothing is written where that cannot be known, or while a hub leads.
func RestoreExternal(ctx context.Context, c Config, o RestoreOptions, out io.Writer) error {
	switch {
	case c.Embedded:
		return errors.New("--external: this is about an external kcp; name it with --kcp-kubeconfig")
	case o.BackupAt.After(time.Now()):
		return errors.New("--backup-at: this time is ahead")
	}
	files, stored, closing, err := o.history(ctx, c)
	if err != nil {
		return err
	}
	defer closing()
	return askBehind(ctx, c, func(ctx context.Context, b behind) error {
		lease, err := b.unled(ctx)
		if err != nil {
			return err
		}
		text, err := bootstrap.RootAnnotation(ctx, b.clients, c.Tree, v1alpha1.AuditHeadsAnnotation)
		if err != nil {
			return err
		}
		recorded, err := audit.ParseRecorded(text)
		if err != nil {
			return err
		}
		order := restore.OrderFor(restore.Restored{BackupAt: o.BackupAt, Recorded: recorded, Renewed: renewed(lease)})
		order.Doubts, order.AcceptLostHistory = append(order.Doubts, endsLost(files)...), o.AcceptLostHistory
		plan, err := readOrder(ctx, order, files, stored)
		if err != nil {
			return err
		}
		if err := b.order(ctx, lease, plan); err != nil {
			return err
		}
		printEnds(out, plan)
		fmt.Fprintf(out, "kcp has the order: the next start of kedge-hub ends %d times what ended after %s, and then serves; "+
			"%d times something was given after it, which is lost: kedge-hub restore --report lists all of that\n",
			len(plan.Steps), order.BackupAt.Format(time.RFC3339), len(plan.Lost))
		return nil
	})
}

// order writes an order that nobody has begun to carry out when it is whole.
func (b behind) order(ctx context.Context, lease *coordinationv1.Lease, plan restore.Plan) error {
	orders := external.New(b.clients, b.cluster)
	id, err := orders.Begin(ctx)
	if err != nil {
		return err
	}
	if err := b.unchanged(ctx, lease); err != nil {
		return errors.Join(err, orders.Withdraw(ctx, id))
	}
	if err := orders.Complete(ctx, id, plan); err != nil {
		return fmt.Errorf("the order is not whole, and no hub serves until you repeat this: %w", err)
	}
	return nil
}

// unled returns the Lease of the leader when no hub has renewed it for a while. It is nil if there is none.
func (b behind) unled(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := b.lease(ctx)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(leaseLook)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
	}
	return lease, b.unchanged(ctx, lease)
}

// unchanged fails if a hub has taken or renewed the Lease since.
func (b behind) unchanged(ctx context.Context, before *coordinationv1.Lease) error {
	lease, err := b.lease(ctx)
	if err != nil {
		return err
	}
	if lease != nil && (before == nil || lease.ResourceVersion != before.ResourceVersion) {
		holder := "no hub any more"
		if lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			holder = *lease.Spec.HolderIdentity
		}
		return fmt.Errorf("a hub works with this kcp: its Lease changes, and %s holds it; stop all replicas, and repeat this", holder)
	}
	return nil
}

func (b behind) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease, err := b.clients.Leases(b.cluster).Leases(leader.LeaseNamespace).Get(ctx, leader.LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the Lease of the leader: %w", err)
	}
	return lease, nil
}

func renewed(lease *coordinationv1.Lease) time.Time {
	if lease == nil || lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

// PrintReport prints the report of the last restore as JSON.
func PrintReport(ctx context.Context, c Config, out io.Writer) error {
	if c.Embedded {
		raw, err := os.ReadFile(restore.ReportFile(c.DataDir))
		if err == nil {
			_, err = out.Write(raw)
		}
		return err
	}
	return askBehind(ctx, c, func(ctx context.Context, b behind) error {
		report, err := external.New(b.clients, b.cluster).Report(ctx)
		if err != nil {
			return err
		}
		to := json.NewEncoder(out)
		to.SetIndent("", "  ")
		return to.Encode(report)
	})
}
