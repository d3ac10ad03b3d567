package orgs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api/orgs"
	kcpstore "github.com/faroshq/kedge-hub/pkg/store"
	"github.com/faroshq/kedge-hub/test/doubles/apitest"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// numbered returns another UUID at every call.
func numbered() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
	}
}

func keyed(as, key string) apitest.Call {
	return apitest.Call{
		As: as, Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName": "New"}`, Header: http.Header{"Idempotency-Key": {key}},
	}
}

// The audit log of an Organization is read by its UUID alone, and outlives it: a person who was removed from it must
// not get it back by the key that made it.
func TestCreate_neverRepeatsTheUUIDOfAPurgedOrg(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(h *orgs.Handler) { h.NewUUID = numbered() })
	create := func() any {
		return keyed(apitest.Operator, "k").Do(f.http).Object(t, http.StatusCreated)["uuid"]
	}
	first := create()
	require.Equal(t, first, create(), "a repetition")
	require.Equal(t, 1, f.store.writes)

	f.world.DropOrg(first.(string))
	f.world.PutUser(apitest.Person(apitest.Operator))
	require.NotEqual(t, first, create())
	require.Equal(t, 2, f.store.writes)
}

// The one place of the quota is that of the Organization that the request asks for again.
func TestO5_doesNotCountAKeyThatIsRepeatedBeforeTheCacheHasTheOrg(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(h *orgs.Handler) { h.DefaultOrgQuota = 1 })
	const first = "00000000-0000-4000-8000-000000000001"
	u := apitest.Person(apitest.Operator)
	u.Spec.OrgClaims = []v1alpha1.Claim{{UUID: first}}
	f.world.PutUser(u)
	sum := sha256.Sum256([]byte("k"))
	f.world.Later(func(w *apitest.World) {
		o := apitest.Organization(first, "New", apitest.Operator)
		o.Labels = map[string]string{v1alpha1.IdempotencyKeyLabel: hex.EncodeToString(sum[:20])}
		w.PutOrg(o, "firstcluster")
		w.Join(apitest.Operator, first, "", v1alpha1.RoleAdmin)
	})
	require.Equal(t, first, keyed(apitest.Operator, "k").Do(f.http).Object(t, http.StatusCreated)["uuid"])
	require.Zero(t, f.store.writes)
	keyed(apitest.Operator, "l").Do(f.http).RefusedCause(t, "QuotaExceeded")
}

// Each replica has made up its own UUID, and neither has seen the claim of the other. The hub's clock is behind kcp's,
// so that the request seems to be older than its person.
func TestCreate_makesOneOrgForOneKeyOnTwoReplicas(t *testing.T) {
	t.Parallel()
	at := apitest.Epoch().Add(3 * time.Second)
	kcp, uuids := kcpfake.NewAt(t, func() time.Time { return at }), numbered()
	stored := kcpstore.New(kcp.Clients(), apitest.Tree(t), "users", "orgs")
	replica := func(u *v1alpha1.User) http.Handler {
		world := apitest.NewWorld()
		world.PutUser(u)
		h := &orgs.Handler{Deps: world.Deps(t, stored, "")}
		h.NewUUID, h.FollowTimeout = uuids, time.Millisecond
		return apitest.Router(world, h.Mount)
	}
	for round := range 20 {
		u := apitest.Person(fmt.Sprint("person-", round))
		u.ResourceVersion, u.CreationTimestamp = "", metav1.NewTime(at)
		kcp.Put("users", u)
		require.True(t, kcp.Read("users", u))
		require.True(t, u.CreationTimestamp.After(apitest.Epoch().Time))
		var answers [4]apitest.Answer
		var requests sync.WaitGroup
		for i := range answers {
			call, hub := keyed(u.Name, "k"), replica(u.DeepCopy())
			call.Header.Set("Prefer", "respond-async")
			requests.Go(func() { answers[i] = call.Do(hub) })
		}
		requests.Wait()
		require.True(t, kcp.Read("users", u))
		require.Len(t, u.Spec.OrgClaims, 1)
		for _, a := range answers {
			require.Equal(t, u.Spec.OrgClaims[0].UUID, a.Object(t, http.StatusAccepted)["uuid"])
		}
	}
}
