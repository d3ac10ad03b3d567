package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	bystander := l.people[0]
	l.people = l.people[1:]
	_, err = l.ask(signUp(&scene{a: bystander}))
	require.NoError(t, err)
	hidden := func(ctx context.Context, s *scene) error { return l.hides(ctx, bystander, s.org) }
	choices := []func(int) []point{sample}
	if os.Getenv(pointsVariable) == "all" {
		choices = []func(int) []point{every(1, 0, "after"), every(1, 0, "before")}
	}
	for _, choose := range choices {
		for _, o := range spareOperations() {
			o.always = hidden
			t.Run(o.name, func(t *testing.T) { l.try(t, o, choose) })
		}
		for _, s := range spoilings(l) {
			t.Run(s.name, func(t *testing.T) { l.throwAway(t, s, choose, hidden) })
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
			name: "Workspace create with a spare", slow: true, setup: steps(asked(signUp), org, readyInOrg, ready), call: createWorkspace,
			done: workspaces(1), none: workspaces(0),
		},
	}
}

// spoiling makes a spare one that is thrown away.
type spoiling struct {
	name string
	// in makes the Organization that has the spare; nil for a spare Organization.
	in func(t *testing.T) *scene
	// field is labels or annotations; the spare gets this one.
	field      string
	key, value string
}

// spoilings returns all, or that of the day. What is thrown away because it is not finished after minutes, or is one
// too many, is deleted by the same write.
func spoilings(l *lane) []spoiling {
	abandoned := fmt.Sprintf(`{"user":"nobody","at":%q}`, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	used := func(t *testing.T) *scene {
		return l.scenes(t, operation{setup: steps(asked(signUp), org), slow: true}, 1)[0]
	}
	all := []spoiling{
		{"an outdated spare Org", nil, "labels", v1alpha1.SpareLabel, "outdated"},
		{"an abandoned spare Org", nil, "annotations", v1alpha1.SpareReservedAnnotation, abandoned},
		{"an outdated spare Workspace", used, "labels", v1alpha1.SpareLabel, "outdated"},
		{"an abandoned spare Workspace", used, "annotations", v1alpha1.SpareReservedAnnotation, abandoned},
	}
	if os.Getenv(pointsVariable) == "all" {
		return all
	}
	return []spoiling{all[ofTheDay(len(all))]}
}

// throwAway kills the hub at the writes with which it throws a spare away and makes another one. Nothing is left
// of the first one afterwards, and there are not two others.
func (l *lane) throwAway(t *testing.T, s spoiling, choose func(writes int) []point, hidden func(context.Context, *scene) error) {
	at, path := &scene{}, l.root+":orgs"
	if s.in != nil {
		at = s.in(t)
		path += ":" + at.org
	}
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
		// The writes with which spares elsewhere are made would count, too.
		l.hub.Settle(t, func(ctx context.Context) error { return l.spares(ctx, l.root+":orgs", 1) })
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
			require.NoError(t, hidden(t.Context(), at))
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

// hides returns nil if a person who has no part in it finds nothing of the spares, in whatever state they are: no list of
// theirs has one, and its UUID, path and logical cluster are as unknown as any. org is an Organization with spares.
func (l *lane) hides(ctx context.Context, from, org string) error {
	orgs := l.root + ":orgs"
	found, err := framework.SparesIn(ctx, l.clients, orgs)
	if err != nil {
		return err
	}
	paths := map[string]tenancy.Spare{}
	parents := []string{}
	for _, s := range found {
		paths[orgs+":"+s.Name] = s
		parents = append(parents, orgs+":"+s.Name)
	}
	if org != "" {
		parents = append(parents, orgs+":"+org)
	}
	for _, parent := range parents {
		// kcp refuses to list in a workspace that it makes or removes.
		inside, _ := framework.SparesIn(ctx, l.clients, parent)
		for _, s := range inside {
			paths[parent+":"+s.Name] = s
		}
	}
	get := func(path, org string) (framework.Answer, error) {
		return l.hub.Try(framework.Call{As: from, Method: http.MethodGet, Path: path, Org: org})
	}
	alike := func(spare, unknown, org, noOrg string) error {
		a, err := get(spare, org)
		b, otherErr := get(unknown, noOrg)
		same := a.Code/100 == 4 && a.Code == b.Code && a.Text("message") == b.Text("message")
		if err = errors.Join(err, otherErr); err == nil && !same {
			err = fmt.Errorf("%s is answered %d %s, and %s %d %s", spare, a.Code, a.Raw, unknown, b.Code, b.Raw)
		}
		return err
	}
	const api, of = "/api/v1/namespaces", "/clusters/"
	for path, s := range paths {
		none := uuid.NewString()
		err = errors.Join(err, alike("/api/orgs/"+s.Name, "/api/orgs/"+none, s.Name, none),
			alike(of+path+api, of+strings.TrimSuffix(path, s.Name)+none+api, "", ""))
		if s.ClusterID != "" {
			err = errors.Join(err, alike(of+s.ClusterID+api, of+"1a2b3c4d5e6f7g8h"+api, "", ""))
		}
		for _, list := range []string{"/api/orgs", "/api/users/me"} {
			a, listErr := get(list, "")
			if err = errors.Join(err, listErr); strings.Contains(string(a.Raw), s.Name) {
				err = errors.Join(err, fmt.Errorf("%s has the spare %s: %s", list, s.Name, a.Raw))
			}
		}
	}
	return err
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
