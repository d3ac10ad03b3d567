package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
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
	choices := []func(int) []point{sample}
	if os.Getenv(pointsVariable) == "all" {
		choices = []func(int) []point{every(1, 0, "after"), every(1, 0, "before")}
	}
	for _, choose := range choices {
		for _, o := range spareOperations() {
			t.Run(o.name, func(t *testing.T) { l.try(t, o, choose) })
		}
		for _, s := range spoilings(l) {
			t.Run(s.name, func(t *testing.T) { l.throwAway(t, s, choose) })
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

// spoiling makes a spare one that is thrown away.
type spoiling struct {
	name string
	// in returns the path of the workspace that has the spare.
	in func(t *testing.T) string
	// field is labels or annotations; the spare gets this one.
	field      string
	key, value string
}

// spoilings returns all, or that of the day. What is thrown away because it is not finished after minutes, or is one
// too many, is deleted by the same write.
func spoilings(l *lane) []spoiling {
	abandoned := fmt.Sprintf(`{"user":"nobody","at":%q}`, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	orgs := func(*testing.T) string { return l.root + ":orgs" }
	used := func(t *testing.T) string {
		setup := operation{setup: steps(asked(signUp), org), slow: true}
		return l.root + ":orgs:" + l.scenes(t, setup, 1)[0].org
	}
	all := []spoiling{
		{"an outdated spare Org", orgs, "labels", v1alpha1.SpareLabel, "outdated"},
		{"an abandoned spare Org", orgs, "annotations", v1alpha1.SpareReservedAnnotation, abandoned},
		{"an outdated spare Workspace", used, "labels", v1alpha1.SpareLabel, "outdated"},
		{"an abandoned spare Workspace", used, "annotations", v1alpha1.SpareReservedAnnotation, abandoned},
	}
	if os.Getenv(pointsVariable) == "all" {
		return all
	}
	return all[day()%len(all):][:1]
}

// throwAway kills the hub at the writes with which it throws a spare away and makes another one. Nothing is left
// of the first one afterwards, and there are not two others.
func (l *lane) throwAway(t *testing.T, s spoiling, choose func(writes int) []point) {
	path := s.in(t)
	round := func(p point) (writes []string, killed bool) {
		require.NoError(t, framework.Wait(framework.Long, func() error { return l.spares(t.Context(), path, 1) }), "%s", l.hub.Log())
		found, err := framework.SparesIn(t.Context(), l.clients, path)
		require.NoError(t, err)
		replaced := func(ctx context.Context) error {
			now, err := framework.SparesIn(ctx, l.clients, path)
			if err == nil && (len(now) != 1 || now[0].Name == found[0].Name) {
				err = fmt.Errorf("%s has %v", path, now)
			}
			return errors.Join(err, l.spares(ctx, path, 1))
		}
		l.hub.Settle(t, func(context.Context) error { return nil })
		l.hub.Arm(t, p.n, p.when)
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{s.field: map[string]string{s.key: s.value}}})
		require.NoError(t, err)
		_, err = l.clients.Workspaces(path).Patch(t.Context(), found[0].Name, types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
		killed = l.hub.Settle(t, replaced)
		writes = l.hub.Writes()
		l.hub.Disarm(t)
		if killed {
			l.hub.Restart(t)
		}
		require.NoError(t, framework.Wait(framework.Long, func() error { return replaced(t.Context()) }), "killed %s write %d of %v: %s",
			p.when, p.n, writes, l.hub.Log())
		return writes, killed
	}
	writes, _ := round(point{0, "never"})
	require.NotEmpty(t, writes)
	points, kills := choose(len(writes)), 0
	for _, p := range points {
		if _, killed := round(p); killed {
			kills++
		}
	}
	require.NoError(t, framework.Wait(healed, func() error { return l.sound(t.Context()) }))
	t.Logf("%s: %d writes (%s); %d rounds, killed in %d: another one is there each time, and nothing else", s.name, len(writes),
		strings.Join(writes, ", "), len(points), kills)
}

// spares returns nil if a workspace has just so many spares, all whole and free.
func (l *lane) spares(ctx context.Context, path string, n int) error {
	found, err := framework.SparesIn(ctx, l.clients, path)
	if err != nil || len(found) != n {
		return fmt.Errorf("%s has %d spares: %w", path, len(found), err)
	}
	for _, s := range found {
		if path == l.root+":orgs" {
			inside, err := framework.SparesIn(ctx, l.clients, path+":"+s.Name)
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
