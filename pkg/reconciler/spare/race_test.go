package spare

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

const (
	// raceRounds is the number of rounds of a race. KEDGE_TEST_ROUNDS sets another number.
	raceRounds = 8
	racers     = 6
	racedFor   = 3
)

// race is two hubs whose people want spares that the leader throws away meanwhile.
type race struct {
	*kcptest.KCP
	hubs [2]api.Deps
	// seen are the spares that all caches show while a round lasts.
	seen []tenancy.Spare
	// people are the cached Users, each with a quota of one Organization.
	people []*v1alpha1.User
	made   int
	mu     sync.Mutex
}

func newRace(t *testing.T) *race {
	r := &race{KCP: kcptest.New(t)}
	for i := range r.hubs {
		stored := store.New(r.Clients(), r.Tree, kcptest.Users, kcptest.Orgs)
		r.hubs[i] = apitest.NewWorld().Deps(t, stored, "")
		r.hubs[i].Spares = store.NewSpares(stored, func(string) []tenancy.Spare { return r.seen }, "new", r.Clock.Now)
		r.hubs[i].NewUUID = r.uuid
		r.hubs[i].DefaultOrgQuota = 1
	}
	return r
}

func (r *race) uuid() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", r.made)
}

// reset makes new spares and takes all claims away.
func (r *race) reset(t *testing.T) (names []string) {
	for range racedFor {
		ws := &kcptenancyv1alpha1.Workspace{}
		ws.Name, ws.Labels = r.uuid(), map[string]string{v1alpha1.SpareLabel: "new"}
		r.Put(kcptest.Orgs, ws)
		names = append(names, ws.Name)
	}
	r.people = nil
	for i := range racers {
		u := apitest.Person(fmt.Sprintf("p%d", i))
		u.ResourceVersion, u.CreationTimestamp = "", metav1.NewTime(r.Clock.Now())
		r.Put(kcptest.Users, u)
		require.True(t, r.Read(kcptest.Users, u))
		r.people = append(r.people, u)
	}
	r.look(names)
	return names
}

// look has the caches see what kcp has.
func (r *race) look(names []string) {
	r.seen = nil
	for _, name := range names {
		if s, ok := r.spare(name); ok {
			r.seen = append(r.seen, s)
		}
	}
}

func (r *race) spare(name string) (tenancy.Spare, bool) {
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name = name
	if !r.Read(kcptest.Orgs, ws) {
		return tenancy.Spare{}, false
	}
	s := tenancy.SpareOf(ws)
	s.KCPReady, s.Whole = true, true
	return s, true
}

// create is what the handler does for POST /api/orgs.
func (r *race) create(ctx context.Context, hub *api.Deps, u *v1alpha1.User, key string) error {
	none := func() []tenancy.KeyedObject { return nil }
	claim := tenancy.NewClaim(hub.NewUUID(), "Raced for", u.Name, key, metav1.NewTime(r.Clock.Now()))
	taking := hub.Taking(u, claim, nil, none)
	taking.Reserve(nil, func(s api.Spares) tenancy.ReservedSpare { return s.ForOrg(ctx, u.Name) })
	defer taking.End(ctx)
	request := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	_, err := hub.Store.ChangeUser(ctx, u, nil, func(_ context.Context, u *v1alpha1.User) error {
		return taking.In(request, u.Spec.OrgClaims, nil, func(c v1alpha1.Claim) error {
			claims, err := tenancy.ClaimOrg(u, nil, hub.DefaultOrgQuota, c)
			if err == nil && claims != nil {
				u.Spec.OrgClaims = claims
			}
			return err
		})
	})
	return err
}

// leader returns a pass of the leader that keeps so many spares. With a clock that is late it takes what it sees to be
// reserved for one that is abandoned, and sees what kcp has.
func (r *race) leader(keep int, late time.Duration) func(context.Context) error {
	w := &writer{Deps: reconciler.Deps{Clusters: bootstrap.Clusters{Orgs: kcptest.Orgs, Users: kcptest.Users}}, stored: r.Stored}
	pass := New(Config{
		Clock: clocktesting.NewFakePassiveClock(r.Clock.Now().Add(late)), Hash: "new", Organizations: keep,
		OrgsCluster: kcptest.Orgs, Cache: raced{r, late > 0}, KCP: w,
		Full: func() bool { return true }, Discarded: func(string) {},
	})
	return func(ctx context.Context) error {
		_, err := pass(ctx, controller.Key{Cluster: kcptest.Orgs})
		return err
	}
}

// raced is the cache of the leader.
type raced struct {
	*race
	live bool
}

func (r raced) SparesIn(string) (found []tenancy.Spare) {
	if !r.live {
		return r.seen
	}
	for _, s := range r.seen {
		if now, ok := r.spare(s.Name); ok {
			found = append(found, now)
		}
	}
	return found
}

func (raced) OrgByCluster(string) (tenancy.Org, bool)      { return tenancy.Org{}, false }
func (raced) Workspaces(string) (none []tenancy.Workspace) { return none }

// owners returns who has claimed what.
func (r *race) owners(t *testing.T) map[string]string {
	owners := map[string]string{}
	for _, held := range r.people {
		u := held.DeepCopy()
		require.True(t, r.Read(kcptest.Users, u))
		require.LessOrEqual(t, len(u.Spec.OrgClaims), 1, "the quota")
		for _, c := range u.Spec.OrgClaims {
			require.Empty(t, owners[c.UUID], "%s is %s's, too", c.UUID, u.Name)
			owners[c.UUID] = u.Name
		}
	}
	return owners
}

// lost breaks the connection at some writes of a round, before or after kcp has carried them out.
func (r *race) lost() {
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(1, 2))
	some := func(in kcpfake.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if in.Mutating() && chance.IntN(8) == 0 {
			return errors.New("the connection breaks")
		}
		return nil
	}
	r.FailBefore(some)
	r.FailAfter(some)
}

// After a race of requests on two hubs, of which quotas refuse half, and of a leader that throws spares away, each
// spare has one owner or none, and none is reserved for a request that was refused.
func TestSpares_haveOneOwnerOrNoneAfterARaceOfTwoHubs(t *testing.T) {
	t.Parallel()
	rounds := raceRounds
	if given := os.Getenv("KEDGE_TEST_ROUNDS"); given != "" {
		n, err := strconv.Atoi(given)
		require.NoError(t, err)
		rounds = n
	}
	for name, test := range map[string]struct {
		keep int
		late time.Duration
		lost bool
	}{
		"answers arrive":                        {keep: racedFor},
		"the leader throws one away":            {keep: racedFor - 1},
		"answers get lost":                      {keep: racedFor - 1, lost: true},
		"the leader takes them to be abandoned": {keep: racedFor, late: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRace(t)
			taken := 0
			for range rounds {
				taken += r.round(t, test.keep, test.late, test.lost)
			}
			t.Logf("%d rounds: %d of %d spares were taken", rounds, taken, rounds*racedFor)
			require.Positive(t, taken)
		})
	}
}

func (r *race) round(t *testing.T, keep int, late time.Duration, lost bool) (taken int) {
	t.Helper()
	names := r.reset(t)
	if lost {
		r.lost()
	}
	answers := make([][2]error, racers)
	var racing sync.WaitGroup
	for i, u := range r.people {
		key := ""
		if i%2 == 0 {
			key = "the same request"
		}
		for n := range r.hubs {
			racing.Go(func() { answers[i][n] = r.create(t.Context(), &r.hubs[n], u, key) })
		}
	}
	throwing := r.leader(keep, late)
	// Another writer may be faster: the leader then looks again.
	racing.Go(func() { _ = throwing(t.Context()) })
	racing.Wait()
	r.FailBefore(nil)
	r.FailAfter(nil)

	owners := r.owners(t)
	for i, u := range r.people {
		if lost {
			break
		}
		refused := 0
		for _, err := range answers[i] {
			if err != nil {
				require.True(t, errs.Is(err, errs.Forbidden), "%v", err)
				refused++
			}
		}
		require.Equal(t, i%2, refused, "%s asked two hubs, with a key or without one", u.Name)
	}
	for _, name := range names {
		s, there := r.spare(name)
		owner, owned := owners[name]
		switch {
		case owned && !there:
			// The claim came after the leader had looked for it. What is claimed is made as without a spare.
			require.Positive(t, late, "%s is %s's and was thrown away", name, owner)
		case owned:
			require.NotNil(t, s.Reserved)
			require.Equal(t, owner, s.Reserved.User)
			taken++
		case there && !lost:
			require.Nil(t, s.Reserved, "nobody has claimed %s", name)
		}
	}
	// A minute later nothing is left of requests that did not go on, and everybody has what they were given.
	r.look(names)
	require.NoError(t, r.leader(0, time.Hour)(t.Context()))
	for _, name := range names {
		_, there := r.spare(name)
		require.False(t, there && owners[name] == "", name)
		require.False(t, !there && owners[name] != "" && late == 0, name)
		ws := &kcptenancyv1alpha1.Workspace{}
		ws.Name = name
		r.Remove(kcptest.Orgs, ws)
	}
	return taken
}
