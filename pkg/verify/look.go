package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/views"
)

const (
	// Settle is the time for which a difference has to be there. Controllers carry most changes out within a
	// second.
	Settle = 3 * time.Second
	// looks is the number of looks in that time, so that what is mended during it is left out.
	looks = 6
	// repairTime is the time that controllers get for a repair.
	repairTime = 20 * time.Second
	// pageSize is the number of logical clusters that are read at a time.
	pageSize = 500
)

// ErrNotLooked says that kcp could not be read.
var ErrNotLooked = errors.New("the state in kcp could not be compared")

// Source is a kcp to look at.
type Source struct {
	// Deps says what is wanted. Its views are not used.
	reconciler.Deps
	// Admin may read all logical clusters. It is for one of several shards if Sharded is true.
	Admin   *kcp.Clients
	Sharded bool
	// Clock is the time by which rights end.
	Clock clock.WithTicker
	// Timeout bounds the time until everything is read. Settle is Settle, but in tests.
	Timeout, Settle time.Duration
}

// Look compares what kcp has. repair is called with each difference that a controller heals, and nil for none.
func Look(ctx context.Context, s Source, repair func(Difference) error) (Report, error) {
	c := s.Clusters
	v, err := views.New(views.Config{
		Clusters: views.Clusters{Root: c.Root, Users: c.Users, Orgs: c.Orgs, Providers: c.Providers, Hub: c.IDs()},
		Clients:  s.Clients, Admin: s.Admin, OrgBindings: c.OrgBindings, Clock: s.Clock, Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		return Report{}, err
	}
	s.Views = v
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() { cancel(); running.Wait() }()
	running.Go(func() { v.Run(ctx) })
	l := &look{Source: s}
	filling, filled := context.WithTimeout(ctx, s.Timeout)
	defer filled()
	ready := func(context.Context) (bool, error) { return v.Ready(), nil }
	if err := wait.PollUntilContextCancel(filling, 20*time.Millisecond, true, ready); err != nil {
		return Report{}, fmt.Errorf("%w: kcp did not list everything within %s", ErrNotLooked, s.Timeout)
	}
	return l.report(ctx, repair)
}

type look struct {
	Source
	unseen   []string
	compared int
}

func (l *look) report(ctx context.Context, repair func(Difference) error) (Report, error) {
	found, err := l.steady(ctx)
	r := Report{Differences: found}
	if err == nil && repair != nil {
		err = l.repair(ctx, &r, repair)
	}
	r.Unseen, r.Compared = l.unseen, l.compared
	if r.Differences == nil {
		r.Differences = []Difference{}
	}
	return r, err
}

// steady returns the differences that are there for a while: those that each of several looks finds. It ends when
// nothing is left.
func (l *look) steady(ctx context.Context) ([]Difference, error) {
	found, err := l.compare(ctx)
	for range looks {
		if err != nil || len(found) == 0 {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrNotLooked, ctx.Err())
		case <-time.After(l.Settle / looks):
		}
		var now []Difference
		now, err = l.compare(ctx)
		found = both(found, now)
	}
	return found, err
}

// repair has controllers heal what they can, and looks again.
func (l *look) repair(ctx context.Context, r *Report, repair func(Difference) error) error {
	asked := slices.DeleteFunc(slices.Clone(r.Differences), func(d Difference) bool { return d.Heals == "" })
	if len(asked) == 0 {
		return nil
	}
	for _, d := range asked {
		if err := repair(d); err != nil {
			return fmt.Errorf("%w: %w", ErrNotLooked, err)
		}
	}
	var failed error
	_ = wait.PollUntilContextTimeout(ctx, l.Settle/8, repairTime, true, func(ctx context.Context) (bool, error) {
		var now []Difference
		now, failed = l.compare(ctx)
		return failed == nil && !slices.ContainsFunc(now, func(d Difference) bool { return slices.ContainsFunc(asked, d.same) }), nil
	})
	if failed != nil {
		return failed
	}
	left, err := l.steady(ctx)
	r.Repaired = slices.DeleteFunc(asked, func(d Difference) bool { return slices.ContainsFunc(left, d.same) })
	r.Differences = left
	return err
}

// same reports whether two differences are about one object.
func (d Difference) same(o Difference) bool {
	return d.Kind == o.Kind && d.Place == o.Place && d.Name == o.Name
}

func (l *look) compare(ctx context.Context) ([]Difference, error) {
	s := State{Deps: l.Deps}
	l.unseen = nil
	var err error
	if s.LogicalClusters, err = l.logicalClusters(ctx); apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		l.unseen = append(l.unseen, "logical clusters, and whether they are deactivated: kcp shows them to its shard admin alone")
	} else if err != nil {
		return nil, fmt.Errorf("%w: list the logical clusters: %w", ErrNotLooked, err)
	}
	s.SeesClusters = err == nil
	if err := l.Views.Outage(); err != nil || !l.Views.Ready() {
		return nil, fmt.Errorf("%w: kcp does not answer any more: %w", ErrNotLooked, err)
	}
	found, compared := Compare(s)
	l.compared = compared
	return found, nil
}

func (l *look) logicalClusters(ctx context.Context) ([]*kcpcorev1alpha1.LogicalCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	return LogicalClusters(ctx, l.Clients, l.Admin, l.Sharded)
}

// LogicalClusters reads all logical clusters of all shards, page by page. admin may read them, and is for one of several
// shards if sharded is true; clients then list the shards.
func LogicalClusters(ctx context.Context, clients, admin *kcp.Clients, sharded bool) (all []*kcpcorev1alpha1.LogicalCluster, err error) {
	_, host := admin.HTTP()
	hosts := []string{host}
	if sharded {
		shards, err := clients.ListShards(ctx)
		if err != nil {
			return nil, err
		}
		hosts = nil
		for _, shard := range shards.Items {
			hosts = append(hosts, strings.TrimSuffix(shard.Spec.BaseURL, "/"))
		}
	}
	for _, host := range hosts {
		client := admin.REST(host+"/clusters/*", kcpcorev1alpha1.SchemeGroupVersion)
		for next := ""; ; {
			var page kcpcorev1alpha1.LogicalClusterList
			request := client.Get().Resource("logicalclusters").Param("limit", fmt.Sprint(pageSize))
			if next != "" {
				request.Param("continue", next)
			}
			if err := request.Do(ctx).Into(&page); err != nil {
				return nil, err
			}
			for i := range page.Items {
				all = append(all, &page.Items[i])
			}
			if next = page.Continue; next == "" {
				break
			}
		}
	}
	return all, nil
}
