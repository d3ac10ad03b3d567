package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	// healed is the time after a restart during which an incomplete state can be seen.
	healed = time.Minute
	// batch is the number of scenes that are created at once.
	batch = 4
	// shards is the number of hubs that share the kill points of a slow operation.
	shards = 3
)

// pointsVariable is the environment variable that selects the kill points: "all", or a number
// that selects one of each operation, so that a run can be repeated. By default the number is the day's, so
// that all are tried over time.
const pointsVariable = "KEDGE_TEST_CRASH"

// lane is a hub with its own tree, on which operations are tried in sequence.
type lane struct {
	hub      *framework.CrashHub
	clients  *kcp.Clients
	root     string
	personal bool
	people   []string
}

// scene is what an operation changes: objects and people that no other scene has.
type scene struct {
	a, b, key string
	// bot is a UUID of a bot, token the ID of its token, and secret that token itself.
	bot, token, secret string
	// invitation and request are IDs, and link is the secret of the invitation.
	invitation, link, request string
	// export is the path of an APIExport, and entry the UUID of its CatalogEntry.
	export, entry string
	// org and ws are UUIDs; alone is an Organization whose only member is a.
	org, ws, alone string
}

// operation is one request, or what the hub does by itself, and its expected result.
type operation struct {
	name  string
	setup func(l *lane, s *scene) error
	call  func(s *scene) framework.Call
	// begin makes the hub do something without a request, in place of call, and intent finds it in the audit
	// log. The hub has to do it whatever happens.
	begin  func(ctx context.Context, l *lane, s *scene) error
	intent func(s *scene, e audit.Event) bool
	// done and none report whether it happened completely, or not at all.
	done, none func(truth *framework.Truth, s *scene) bool
	// always, if not nil, is an error of what must not be at any time, such as right after a kill.
	always func(ctx context.Context, s *scene) error
	// already are the accepted status codes of a repetition after it happened, beside 2xx.
	already []int
	// final means that the request must not be repeated after it happened.
	final bool
	// slow means that kcp takes long. kcp checks an object that it removes after a fifth of
	// the object's age, so the scene is created just before its turn.
	slow bool
}

// point is the write at which the hub is killed.
type point struct {
	n    int
	when string
}

// result is the result of a round.
type result struct {
	point
	killed, acknowledged, whole bool
	after                       time.Duration
}

func TestKill_atEveryWriteLeavesNothingHalfMade(t *testing.T) {
	t.Parallel()
	k, err := framework.StartKCP(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(k.Kill)
	for name, g := range groups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLane(t, k, g.flags...)
			for _, o := range g.operations {
				t.Run(o.name, func(t *testing.T) { l.try(t, o, g.points) })
			}
			t.Run("index of nobody", l.orphan)
			if name == "deletions" {
				t.Run("withdrawn", l.withdrawn)
			}
		})
	}
}

// group is a set of operations that are tried on one hub.
type group struct {
	flags      []string
	operations []operation
	points     func(writes int) []point
}

// groups returns few groups for a sample, because each needs a hub, and many otherwise,
// because they run in parallel.
func groups() map[string]group {
	const short, shared = "--deletion-grace=2s", "--personal-orgs=false"
	all := map[string]group{
		"creates":   {[]string{shared}, creates(), sample},
		"members":   {[]string{shared}, membersOperations(), sample},
		"deletions": {[]string{shared}, deletions(), sample},
		"cascades":  {[]string{shared, short}, cascades(), sample},
		"people":    {[]string{short}, peopleOperations(), sample},
		"bots":      {[]string{shared}, botOperations(), sample},
		"catalog":   {[]string{shared}, catalogOperations(), sample},
		"sharing":   {[]string{shared}, sharingOperations(), sample},
	}
	if os.Getenv(pointsVariable) != "all" {
		// The hub of the bots serves one operation of the catalog, and one of invitations and requests, too.
		catalog, sharing := catalogOperations(), sharingOperations()
		bots := all["bots"]
		bots.operations = append(bots.operations, catalog[ofTheDay(len(catalog))], sharing[ofTheDay(len(sharing))])
		all["bots"] = bots
		delete(all, "catalog")
		delete(all, "sharing")
		return all
	}
	split := map[string]group{}
	for _, g := range all {
		for _, o := range g.operations {
			n := 1
			if o.slow {
				n = shards
			}
			for shard := range n {
				for _, when := range []string{"before", "after"} {
					split[fmt.Sprintf("%s %s %d", o.name, when, shard)] = group{g.flags, []operation{o}, every(n, shard, when)}
				}
			}
		}
	}
	return split
}

func newLane(t *testing.T, k *framework.KCP, flags ...string) *lane {
	l := &lane{clients: k.Clients(t), root: framework.NewRoot(), personal: !slices.Contains(flags, "--personal-orgs=false")}
	for i := range 2000 {
		l.people = append(l.people, fmt.Sprintf("p%04d", i))
	}
	l.hub = framework.StartCrashHub(t, k, l.root, l.people, flags...)
	return l
}

// try kills the hub at the writes of the operation in turn, each time with a new scene.
func (l *lane) try(t *testing.T, o operation, choose func(writes int) []point) {
	dry := l.scenes(t, o, 1)
	l.hub.Arm(t, 0, "never")
	acknowledged, refusal := l.start(t.Context(), o, dry[0], "dry-run")
	require.True(t, acknowledged, "%v", refusal)
	l.hub.Settle(t, func(ctx context.Context) error { return l.whole(ctx, o, dry[0]) })
	writes := l.hub.Writes()
	require.NotEmpty(t, writes)
	var results []result
	points := choose(len(writes))
	size := batch
	if o.slow {
		size = 1
	}
	for at := range slices.Chunk(points, size) {
		scenes := l.scenes(t, o, len(at))
		for i, p := range at {
			r, err := l.round(t, o, scenes[i], p)
			if err != nil {
				t.Errorf("%s, killed %s write %d: %v", o.name, p.when, p.n, err)
				continue
			}
			results = append(results, r)
		}
	}
	if !t.Failed() {
		require.NoError(t, framework.Wait(healed, func() error { return l.sound(t.Context()) }))
	}
	report(t, o.name, writes, len(points), results)
}

// every selects every n-th point, so that the shards together try all.
func every(of, shard int, when string) func(writes int) []point {
	return func(writes int) (points []point) {
		for n := shard; n < writes; n += of {
			points = append(points, point{n + 1, when})
		}
		return points
	}
}

// sample selects the point of the day.
func sample(writes int) []point {
	turn := day()
	p := point{1 + rand.New(rand.NewPCG(1, uint64(writes))).Perm(writes)[turn%writes], "after"}
	// Before a write is the same as after the previous one, except for parallel writes. Every third round through all
	// writes is before them, so that each write has both.
	if turn/writes%3 == 0 {
		p.when = "before"
	}
	return []point{p}
}

// ofTheDay selects one of n operations. It does not follow from the remainder of the day, by which sample selects: of an
// operation with an even number of writes, that would select the same half of them for ever.
func ofTheDay(n int) int { return rand.New(rand.NewPCG(2, uint64(day()))).IntN(n) }

func day() int {
	if n, err := strconv.Atoi(os.Getenv(pointsVariable)); err == nil {
		return n
	}
	return int(time.Now().Unix() / (24 * 60 * 60))
}

// scenes creates scenes for the operation and waits until the hub has reconciled them.
func (l *lane) scenes(t *testing.T, o operation, n int) []*scene {
	made := make([]*scene, n)
	var making errgroup.Group
	for i := range made {
		made[i] = &scene{a: l.people[0], b: l.people[1], key: "key-of-" + l.people[0]}
		l.people = l.people[2:]
		making.Go(func() error { return o.setup(l, made[i]) })
	}
	require.NoError(t, making.Wait())
	l.hub.Settle(t, func(ctx context.Context) error {
		for _, s := range made {
			if _, err := l.look(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
	return made
}

// round kills the hub once and checks the state that is left.
func (l *lane) round(t *testing.T, o operation, s *scene, p point) (r result, err error) {
	r.point = p
	l.hub.Settle(t, func(context.Context) error { return nil })
	l.hub.Arm(t, p.n, p.when)
	id := "round-of-" + s.a
	acknowledged, failure := l.start(t.Context(), o, s, id)
	r.acknowledged = acknowledged
	r.killed = l.hub.Settle(t, func(ctx context.Context) error { return l.whole(ctx, o, s) })
	last := l.hub.Writes()
	l.hub.Disarm(t)
	if r.killed {
		l.hub.Restart(t)
	} else if !r.acknowledged {
		return r, fmt.Errorf("the hub was not killed, and %w", failure)
	}
	began := time.Now()
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nacknowledged: %t\nwrites: %s\n%s", err, r.acknowledged, strings.Join(last, ", "), l.hub.Log())
		}
	}()
	if o.always != nil {
		if err := o.always(t.Context(), s); err != nil {
			return r, err
		}
	}
	limit := healed
	if o.slow {
		// Part of it is the time of kcp.
		limit = framework.Long
	}
	if err := framework.Wait(limit, func() error {
		truth, err := l.look(t.Context(), s)
		if err != nil {
			return err
		}
		if r.whole = o.done(truth, s); !r.whole && (r.acknowledged || !o.none(truth, s)) {
			return fmt.Errorf("what was asked for is neither done nor not")
		}
		return nil
	}); err != nil {
		return r, err
	}
	r.after = time.Since(began)
	if r.whole && !l.hub.Intended(t, func(e audit.Event) bool {
		return o.intent == nil && e.ClientRequest == id || o.intent != nil && o.intent(s, e)
	}) {
		return r, fmt.Errorf("it was done without an intent in the audit log")
	}
	if r.acknowledged || r.whole && o.final {
		return r, nil
	}
	// A client without an answer repeats the request.
	if err := framework.Wait(healed, func() error {
		again, err := l.hub.Try(o.call(s))
		if err == nil && again.Code/100 != 2 && (!r.whole || !slices.Contains(o.already, again.Code)) {
			err = fmt.Errorf("the repetition was answered %d %s", again.Code, again.Raw)
		}
		return err
	}); err != nil {
		return r, err
	}
	return r, framework.Wait(limit, func() error { return l.whole(t.Context(), o, s) })
}

// look reads the state of the scene and fails if it is incomplete.
func (l *lane) look(ctx context.Context, s *scene) (*framework.Truth, error) {
	truth, err := framework.ReadTruth(ctx, l.clients, l.root, s.a, s.b)
	if err != nil {
		return nil, err
	}
	truth.PersonalOrgs = l.personal
	if problems := truth.Problems(); len(problems) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	return truth, nil
}

func (l *lane) whole(ctx context.Context, o operation, s *scene) error {
	truth, err := l.look(ctx, s)
	if err == nil && !o.done(truth, s) {
		err = fmt.Errorf("it is not done")
	}
	return err
}

// orphan creates the state after a kill between the last two writes of a person's cascade.
func (l *lane) orphan(t *testing.T) {
	l.hub.Kill()
	index := &v1alpha1.UserMembershipIndex{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}}
	_, err := l.clients.Indexes(l.root+":users").Create(t.Context(), index, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Error(t, l.sound(t.Context()), "the control: it is noticed")
	l.hub.Restart(t)
	require.NoError(t, framework.Wait(healed, func() error { return l.sound(t.Context()) }))
}

// sound checks the consistency of the whole tree.
func (l *lane) sound(ctx context.Context) error {
	truth, err := framework.ReadTruth(ctx, l.clients, l.root)
	if err != nil {
		return err
	}
	truth.PersonalOrgs = l.personal
	if problems := truth.Problems(); len(problems) > 0 {
		return fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	return nil
}

func report(t *testing.T, name string, writes []string, rounds int, results []result) {
	killed, acknowledged, whole, nothing := 0, 0, 0, 0
	when := map[string]int{}
	var longest time.Duration
	for _, r := range results {
		if !r.killed {
			continue
		}
		killed++
		when[r.when]++
		longest = max(longest, r.after)
		switch {
		case r.acknowledged:
			acknowledged++
		case r.whole:
			whole++
		default:
			nothing++
		}
	}
	t.Logf("%s: %d writes; %d rounds (%s=%d), killed in %d (%d before the write, %d after it): %d had been answered and all of it was there; of %d that had not, %d were whole, %d had left nothing; half-made: %d; sound at most %s after the hub was back",
		name, len(writes), rounds, pointsVariable, day(), killed, when["before"], when["after"], acknowledged, whole+nothing, whole, nothing, rounds-len(results), longest.Round(time.Millisecond))
	t.Logf("%s writes: %s", name, strings.Join(writes, ", "))
}
