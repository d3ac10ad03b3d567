package restore

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// batch are Steps that are carried out one after the other: a single one, or all that need the same deactivated logical
// cluster. That is activated once for them.
type batch struct {
	cluster string
	// deactivated reports whether the cluster still is. It is nil for a single Step.
	deactivated func() bool
	// steps are their places in what is left.
	steps []int
}

// batches returns all Steps in batches. What comes last stays last.
func (p *pass) batches(left []Step) (all []*batch) {
	type key struct {
		cluster string
		last    bool
	}
	of := map[key]*batch{}
	for i, s := range left {
		cluster, deactivated := p.asleep(s)
		k := key{cluster, s.Kind.last()}
		b := of[k]
		if cluster == "" || b == nil {
			b = &batch{cluster: cluster, deactivated: deactivated}
			of[k], all = b, append(all, b)
		}
		b.steps = append(b.steps, i)
	}
	return all
}

// asleep returns the deactivated logical cluster in which a Step writes, and a func that reports whether it still is
// deactivated. There is none for most Steps.
func (p *pass) asleep(s Step) (cluster string, deactivated func() bool) {
	switch s.Kind {
	case AnswerInvitation, BindInvitation:
		s.Org, _ = p.orgOfInvitation(s)
	case DisableProvider, LimitProvider:
		org, known := p.Views.Org(s.Org)
		ws, ok := p.Views.Workspace(s.Org, s.Workspace)
		deactivated = p.workspaceDeactivated(s)
		if !known || !ok || !org.DeletionTimestamp.IsZero() || ws.Terminating || ws.ClusterID == "" || !deactivated() {
			return "", nil
		}
		return ws.ClusterID, deactivated
	case RemoveMember, LimitMember, EndWorkspace, DeleteWorkspace, DeleteEntry:
	case DeleteBot, LimitBot, RevokeToken, RevokeTokens, RemoveTrust:
	default:
		return "", nil
	}
	if org, ok := p.Views.Org(s.Org); ok && org.Deactivated() && org.ClusterID != "" {
		return org.ClusterID, p.orgDeactivated(s)
	}
	return "", nil
}

func (p *pass) orgDeactivated(s Step) func() bool {
	return func() bool {
		org, ok := p.Views.Org(s.Org)
		return ok && org.Deactivated()
	}
}

func (p *pass) workspaceDeactivated(s Step) func() bool {
	return func() bool {
		org, known := p.Views.Org(s.Org)
		ws, ok := p.Views.Workspace(s.Org, s.Workspace)
		return known && ok && (org.Deleted() || ws.Deleted())
	}
}

// carryOut tries the Steps of a batch. Where their cluster cannot be activated, or not deactivated again, that is the result
// of all of them.
func (p *pass) carryOut(ctx context.Context, b *batch, results []error, try func(step int)) {
	if b.cluster == "" {
		try(b.steps[0])
		return
	}
	err := p.Within(ctx, b.cluster, b.deactivated, func() error {
		p.awake = p.wake(b.cluster)
		defer func() { p.awake = nil }()
		for _, i := range b.steps {
			try(i)
		}
		return nil
	})
	if err == nil {
		return
	}
	for _, i := range b.steps {
		results[i] = err
	}
}

// within calls do, which reads and writes in the workspace of a Step's Organization. One that is soft-deleted is
// activated meanwhile: what ended in it must not come back when it is undeleted.
func (p *pass) within(ctx context.Context, s Step, do func(org tenancy.Org) error) error {
	org, err := p.orgOf(ctx, s)
	switch {
	case err != nil:
		return err
	case !org.Deleted() && org.ClusterID == "":
		return errNotYet
	case !org.Deleted():
		return do(org)
	case !org.DeletionTimestamp.IsZero():
		return impossible{reason: "the organization is being removed for good"}
	case org.ClusterID == "":
		return notThere("the workspace of the organization")
	}
	return p.activated(ctx, org.ClusterID, p.orgDeactivated(s), func() error { return do(org) })
}

// activationTimeout is how long kcp may take to let the hub into what was activated.
const activationTimeout = 5 * time.Second

// awake is a logical cluster that is activated.
type awake struct {
	cluster string
	// until is when kcp has had the time to let the hub in.
	until time.Time
}

func (p *pass) wake(cluster string) *awake { return &awake{cluster, time.Now().Add(activationTimeout)} }

// activated calls do while a logical cluster is activated.
func (p *pass) activated(ctx context.Context, cluster string, deactivated func() bool, do func() error) error {
	if p.awake != nil && p.awake.cluster == cluster {
		return p.awake.call(ctx, p.Interval, do)
	}
	return p.Within(ctx, cluster, deactivated, func() error { return p.wake(cluster).call(ctx, p.Interval, do) })
}

// call repeats do while kcp lets nobody in, as long as that can be because the cluster was activated a moment ago.
func (a *awake) call(ctx context.Context, interval time.Duration, do func() error) (err error) {
	_ = wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		err = do()
		return !apierrors.IsForbidden(err) || time.Now().After(a.until), nil
	})
	return err
}
