package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/health"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/log"
	"github.com/faroshq/kedge-hub/pkg/metrics"
	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/pkg/restore/external"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/template"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// replay ends what ended after the backup, if there is such. It returns when this or another replica has written
// everything, and nothing that it began runs any more.
func (h *hub) replay(starting context.Context, admin *rest.Config) (err error) {
	if !h.restored.replaying() {
		return nil
	}
	if applied, err := h.restored.at.Applied(starting); err != nil || applied {
		return err
	}
	below, stop := context.WithCancel(starting)
	servers, serving := errgroup.WithContext(below)
	part := &hub{
		config: h.config, registry: metrics.NewRegistry(), checks: health.NewChecks(), tokens: h.tokens, embedded: h.embedded, audit: h.audit,
		storage: h.storage, purges: h.purges, replays: true,
	}
	a := &assembly{hub: part, admin: admin}
	defer func() {
		stop()
		a.running.Wait()
		err = errors.Join(err, servers.Wait())
		if a.clients != nil {
			a.clients.Close()
		}
	}()
	h.serveLocal(serving, servers, h.restored)
	log.From(starting).Info("restore mode: ending what ended after the backup", zap.Int("endings", len(h.restored.plan.Steps)))
	applied := make(chan error, 1)
	if err := a.apply(starting, below, h.restored, applied); err != nil {
		return err
	}
	return h.restored.awaitApplied(starting, applied)
}

// awaitApplied waits until this replica, which then sends to applied, or another one has ended everything.
func (r *restored) awaitApplied(ctx context.Context, applied <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-applied:
			return err
		case <-time.After(orderInterval):
		}
		switch done, err := r.at.Applied(ctx); {
		case errors.Is(err, external.ErrReplaced):
			return err
		case err != nil:
			log.From(ctx).Debug("it is not known how far the restore is", zap.Error(err))
		case done:
			return nil
		}
	}
}

// apply starts what a replay needs of a hub, and the replay whenever this replica leads. The result is sent to applied.
func (a *assembly) apply(starting, below context.Context, r *restored, applied chan<- error) error {
	if err := a.connect(below); err != nil {
		return err
	}
	if err := a.bootstrap(starting, below); err != nil {
		return err
	}
	if err := a.caches(); err != nil {
		return err
	}
	if err := a.controllers(); err != nil {
		return err
	}
	s := store.New(a.writers(), a.hub.config.Tree, a.clusters.Users, a.clusters.Orgs)
	sessions, err := a.newSessions(s, nil)
	if err != nil {
		return err
	}
	a.runViews(below)
	if err := awaitReady(starting, a.views.Ready); err != nil {
		return err
	}
	applier := &restore.Applier{
		Views: a.views, Members: a.views, Store: s, Sessions: sessions, Audit: a.hub.audit, Clock: a.clock, RightsClock: transport.Current(a.clock),
		Within: a.freezer.Within, Kept: template.Keeps(a.hub.config.Template), Patience: replayPatience,
		PersonalOrgs: a.hub.config.PersonalOrgs, Interval: replayInterval, Waiting: r.waiting,
	}
	leading := []func(context.Context){func(ctx context.Context) {
		if err := r.run(ctx, applier, a.closeOrphans); err == nil || ctx.Err() == nil {
			select {
			case applied <- err:
			default:
				// It led before, and has said so.
			}
		}
	}}
	for _, c := range a.leading {
		if slices.Contains(replaying, c.Name()) {
			leading = append(leading, a.whileAvailable(c.Run))
		}
	}
	a.lead(below, leading...)
	return nil
}

// run carries out the order, from where a run before left it, and closes what has no Workspace.
func (r *restored) run(
	ctx context.Context, applier *restore.Applier, orphans func(context.Context) ([]restore.Orphan, error),
) error {
	written, err := r.at.Report(ctx)
	if err != nil {
		return err
	}
	applier.Save = func(report restore.Report) error { return r.at.Save(ctx, report, restore.PhaseOrdered) }
	report, err := applier.Run(ctx, r.plan, written)
	if err != nil {
		return err
	}
	if report.Orphans, err = orphans(ctx); err != nil {
		return err
	}
	return r.at.Save(ctx, report, restore.PhaseApplied)
}

// endRestore ends restore mode when the bindings in kcp have followed what was ended, and says what the restore did. The
// views have all of it: they were filled afterwards.
func (a *assembly) endRestore(starting context.Context) error {
	r := a.hub.restored
	if !r.replaying() {
		return nil
	}
	report, err := r.at.Report(starting)
	if err != nil {
		return err
	}
	if err := a.awaitFollowed(starting, r, &report); err != nil {
		return err
	}
	report.WithoutAdmin, report.Purges = a.withoutAdmin(), a.duePurges()
	if err := r.at.Save(starting, report, restore.PhaseHeld); err != nil {
		return err
	}
	if !a.hub.config.Embedded {
		// It is in kcp, until purges are released. This copy stays.
		if err := restore.WriteReport(a.hub.config.DataDir, report); err != nil {
			log.From(starting).Warn("the report of the restore is not in the data folder", zap.Error(err))
		}
	}
	r.end()
	logReport(log.From(starting), report, restore.ReportFile(a.hub.config.DataDir))
	return nil
}

// awaitFollowed waits for the bindings in kcp. Where they do not follow for a long time, the hub serves nevertheless: it
// refuses by itself who is no member, and its controllers go on.
func (a *assembly) awaitFollowed(ctx context.Context, r *restored, report *restore.Report) error {
	left, moved := bindingsOf(r.plan.Steps), a.clock.Now()
	lags, never := errors.New("the bindings in kcp follow"), errors.New("the hub has ended it, and the bindings in kcp do not follow")
	return wait.PollUntilContextCancel(ctx, replayInterval, true, func(ctx context.Context) (bool, error) {
		before := len(left)
		left = lagging(a.rights, left)
		if len(left) < before || !a.hub.checks.KCPReachable() {
			moved = a.clock.Now()
		}
		r.waiting(len(left), lags)
		if a.clock.Since(moved) < replayPatience {
			return len(left) == 0, nil
		}
		for _, s := range left {
			report.Impossible = append(report.Impossible, restore.GiveUp(ctx, s, never, replayPatience))
		}
		return true, nil
	})
}

// bindings tell whether those in kcp follow.
type bindings interface {
	// Behind has the people for whom they do not in Workspaces of an Organization, with the UUIDs of these.
	Behind(org string) map[string][]string
	FollowedEverywhere(user string) bool
}

// bindingsOf returns one Step for each person in each place, and for each person everywhere, whose bindings have to follow.
func bindingsOf(steps []restore.Step) (left []restore.Step) {
	type place struct{ org, workspace, user string }
	asked := map[place]bool{}
	for _, s := range steps {
		switch s.Kind {
		case restore.RemoveMember, restore.LimitMember, restore.RejectPerson, restore.SuspendPerson, restore.DeletePerson:
			if at := (place{s.Org, s.Workspace, s.Object}); !asked[at] {
				asked[at], left = true, append(left, s)
			}
		}
	}
	return left
}

// lagging returns the Steps that bindings do not follow yet. It looks at each Organization once: tenants decide how many
// people lose something in it.
func lagging(kcp bindings, steps []restore.Step) (left []restore.Step) {
	orgs := map[string]map[string][]string{}
	for _, s := range steps {
		follows := false
		if s.Org == "" {
			follows = kcp.FollowedEverywhere(s.Object)
		} else {
			behind, known := orgs[s.Org]
			if !known {
				behind = kcp.Behind(s.Org)
				orgs[s.Org] = behind
			}
			in := behind[s.Object]
			follows = len(in) == 0 || s.Workspace != "" && !slices.Contains(in, s.Workspace)
		}
		if !follows {
			left = append(left, s)
		}
	}
	return left
}

// withoutAdmin returns the Organizations that no admin can manage.
func (a *assembly) withoutAdmin() (orgs []string) {
	now := transport.Current(a.clock).Now()
	for _, o := range a.views.Orgs() {
		if o.Organization == nil || o.Deleted() || o.Spec.Personal || o.ClusterID == "" {
			continue
		}
		if !slices.ContainsFunc(tenancy.Living(a.views.MembershipsIn(o.ClusterID), now), func(m *v1alpha1.Membership) bool {
			return m.Spec.Scope == v1alpha1.ScopeOrg && m.Spec.Role.AtLeast(v1alpha1.RoleAdmin)
		}) {
			orgs = append(orgs, o.UUID())
		}
	}
	slices.Sort(orgs)
	return orgs
}

// duePurges returns what would be purged now.
func (a *assembly) duePurges() (due []restore.Purge) {
	now, graces := a.clock.Now(), graces(a.hub.config)
	add := func(p restore.Purge, at time.Time) {
		if p.Due = at.UTC(); !now.Before(at) {
			due = append(due, p)
		}
	}
	for _, o := range a.views.Orgs() {
		if o.Organization == nil {
			continue
		}
		if at := tenancy.PurgeAt(o.Status.DeletionRequestedAt, graces.Deletion); at != nil {
			add(restore.Purge{Kind: "organization", Org: o.UUID()}, at.Time)
		}
		for _, ws := range a.views.Workspaces(o.UUID()) {
			if at := graces.PurgeAt(ws); at != nil {
				add(restore.Purge{Kind: "workspace", Org: o.UUID(), Workspace: ws.UUID}, at.Time)
			}
		}
	}
	for _, u := range a.views.People() {
		if at := tenancy.PurgeAt(u.Status.DeletionRequestedAt, graces.Deletion); at != nil {
			add(restore.Purge{Kind: "person", Object: u.Name}, at.Time)
		}
	}
	slices.SortFunc(due, func(a, b restore.Purge) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Org, b.Org), cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Object, b.Object))
	})
	return due
}

// logReport sums up a report.
func logReport(to *zap.Logger, r restore.Report, file string) {
	for _, end := range r.Ends {
		to.Info("restored: what ended later on this replica is not known",
			zap.String("replica", end.Replica), zap.Uint64("seq", end.Seq), zap.Time("until", end.Time))
	}
	for _, unknown := range r.Unknown {
		to.Warn("restored without knowing all that ended, as the operator accepted", zap.String("unknown", unknown))
	}
	for _, s := range r.GivenUp() {
		to.Error("restored, and what ended after the backup may be there again: end it", zap.String("step", string(s.Kind)), zap.String("org", s.Org),
			zap.String("workspace", s.Workspace), zap.String("object", s.Object))
	}
	for _, o := range r.Orphans {
		if o.Open != "" {
			to.Error("restored, and kcp may let people into what has no Workspace: look at it with kedge-hub verify",
				zap.String("path", o.Path), zap.String("cluster", o.Cluster), zap.String("reason", o.Open))
		}
	}
	for _, uuid := range r.WithoutAdmin {
		to.Warn("restored: an organization has no admin; a platform admin can help", zap.String("org", uuid))
	}
	to.Info("restored: what ended after the backup is ended, and purges are held until kedge-hub restore --release", zap.Int("ended", len(r.Done)),
		zap.Int("impossible", len(r.Impossible)), zap.Int("lost", len(r.Lost)), zap.Int("heldPurges", len(r.Purges)),
		zap.String("report", file))
}
