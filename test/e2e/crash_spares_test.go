package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// A spare that is reserved, claimed, taken, made or thrown away when the hub is killed is somebody's or
// nobody's afterwards, and the hub keeps as many as before.
func TestKill_atEveryWriteOfASpareLosesNothing(t *testing.T) {
	t.Parallel()
	k, err := framework.StartKCP(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(k.Kill)
	l := newLane(t, k, "--spare-organizations", "1", "--spare-workspaces", "1")
	choices := []func(int) []point{one}
	if os.Getenv(pointsVariable) == "all" {
		choices = []func(int) []point{every(1, 0, "after"), every(1, 0, "before")}
	}
	for _, choose := range choices {
		for _, o := range spareOperations() {
			t.Run(o.name, func(t *testing.T) { l.try(t, o, choose) })
		}
	}
	// A reservation without a claim is thrown away after a minute.
	require.NoError(t, framework.Wait(framework.Long, func() error { return l.spares(t.Context(), l.root+":orgs", 1) }), "%s", l.hub.Log())
}

func spareOperations() []operation {
	ready := func(l *lane, _ *scene) error {
		return framework.Wait(framework.Long, func() error { return l.spares(context.Background(), l.root+":orgs", 1) })
	}
	readyInOrg := func(l *lane, s *scene) error {
		return framework.Wait(framework.Long, func() error { return l.spares(context.Background(), l.root+":orgs:"+s.org, 1) })
	}
	orgs := func(n int) func(*framework.Truth, *scene) bool {
		return func(truth *framework.Truth, s *scene) bool {
			return (n == 0) == (truth.Users[s.a] == nil) && len(truth.Orgs) == n
		}
	}
	workspaces := func(n int) func(*framework.Truth, *scene) bool {
		return func(truth *framework.Truth, s *scene) bool { return len(truth.Orgs[s.org].Workspaces) == n }
	}
	return []operation{
		{name: "sign-up with a spare", slow: true, setup: ready, call: signUp, done: orgs(1), none: orgs(0)},
		{name: "Org create with a spare", slow: true, setup: steps(asked(signUp), ready), call: createOrg, done: orgs(2), none: orgs(1)},
		{
			name: "Workspace create with a spare", slow: true, setup: steps(asked(signUp), org, readyInOrg), call: createWorkspace,
			done: workspaces(1), none: workspaces(0),
		},
	}
}

// spares returns nil if a workspace has just so many spares, all whole and free.
func (l *lane) spares(ctx context.Context, path string, n int) error {
	found, err := l.sparesIn(ctx, path)
	if err != nil || len(found) != n {
		return fmt.Errorf("%s has %d spares: %w", path, len(found), err)
	}
	for _, s := range found {
		if path == l.root+":orgs" {
			inside, err := l.sparesIn(ctx, path+":"+s.Name)
			if err != nil {
				return err
			}
			s.Whole = len(inside) == 1 && inside[0].Whole && inside[0].Reserved == nil
		}
		if !s.Takeable(s.Hash) {
			return fmt.Errorf("the spare %s is not ready: %+v", s.Name, s)
		}
	}
	return nil
}

func (l *lane) sparesIn(ctx context.Context, path string) (found []tenancy.Spare, err error) {
	var list kcptenancyv1alpha1.WorkspaceList
	err = l.clients.Workspaces(path).GetClient().Get().Resource("workspaces").Param("labelSelector", v1alpha1.SpareLabel).Do(ctx).Into(&list)
	for i := range list.Items {
		found = append(found, tenancy.SpareOf(&list.Items[i]))
	}
	return found, err
}
