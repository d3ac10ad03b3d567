package tenancy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/server"
	rules "github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// guarded creates a ClusterRole, which kcp's admission policy is about. It is sent once: nothing waits.
func guarded(t testing.TB, hub *framework.Hub, as, cluster, name string) {
	t.Helper()
	body := map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name}}
	a, err := hub.TryOnce(call{As: as, Method: http.MethodPost, Path: "/clusters/" + cluster + "/apis/rbac.authorization.k8s.io/v1/clusterroles", Body: body})
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Code, "%s", a.Raw)
}

func created(as, path, org, name, key string) call {
	c := call{As: as, Method: http.MethodPost, Path: path, Org: org, Body: map[string]string{"displayName": name}}
	if key != "" {
		c.Header = http.Header{"Idempotency-Key": {key}}
	}
	return c
}

// tried returns the number of Memberships that kcp was asked to check and not to store.
func tried(t testing.TB, p framework.Platform) (n int) {
	t.Helper()
	client, host := p.Clients.HTTP()
	response, err := client.Get(host + "/metrics")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if strings.HasPrefix(series, "apiserver_request_total{") && strings.Contains(series, `dry_run="All"`) &&
			strings.Contains(series, `resource="memberships"`) && strings.Contains(series, `code="201"`) {
			count, err := strconv.Atoi(value)
			require.NoError(t, err)
			n += count
		}
	}
	return n
}

// People get spares when they sign up and when they create something, and can use them at once.
func TestSpares_areTakenAndWorkAtOnce(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root, withSpares(2, 1), func(o *server.Options) {
		o.PersonalOrgs, o.Billing.DefaultCostCenter, o.Billing.RequireCostCenter = true, "4711", true
	})
	p := kcp.Platform(t, root)
	orgs, children := spareOrgs(t, p, 2, anySpare)
	slices.SortFunc(orgs, rules.Spare.Compare)
	require.GreaterOrEqual(t, tried(t, p), 2, "kcp's admission has seen an object of the hub's API in each")

	began := time.Now()
	hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	var u *v1alpha1.User
	framework.Eventually(t, framework.Long, func() (err error) {
		if u, err = p.Users(p.UsersPath()).Get(t.Context(), "alice", metav1.GetOptions{}); err == nil && u.Status.DefaultWorkspace == "" {
			err = errors.New("she has no default Workspace yet")
		}
		return err
	})
	guarded(t, hub, "alice", u.Spec.DefaultCluster, "first")
	t.Logf("a person works in their default Workspace after %s", time.Since(began).Round(time.Millisecond))
	require.Equal(t, orgs[0].Name, u.Status.PersonalOrg, "the oldest spare")
	require.Equal(t, children[orgs[0].Name].Name, u.Status.DefaultWorkspace)
	require.Equal(t, children[orgs[0].Name].ClusterID, u.Spec.DefaultCluster)

	began = time.Now()
	org := hub.Do(t, created("alice", "/api/orgs", "", "ACME", "one"), http.StatusCreated)
	took := time.Since(began)
	require.Equal(t, orgs[1].Name, org.Text("uuid"))
	at, err := time.Parse(time.RFC3339, org.Text("createdAt"))
	require.NoError(t, err)
	require.False(t, at.Before(began.Truncate(time.Second)), "the time of the request, not that of the spare")
	path := "/api/orgs/" + org.Text("uuid") + "/workspaces"
	began = time.Now()
	ws := hub.Do(t, created("alice", path, org.Text("uuid"), "Web", "two"), http.StatusCreated)
	guarded(t, hub, "alice", ws.Text("clusterID"), "first")
	t.Logf("an Organization takes %s, and a Workspace until a guarded write %s", took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	require.Equal(t, children[orgs[1].Name].Name, ws.Text("uuid"))
	require.Equal(t, "Web", ws.Text("displayName"))
	require.Equal(t, "alice", ws.Text("createdBy"))
	at, err = time.Parse(time.RFC3339, ws.Text("createdAt"))
	require.NoError(t, err)
	require.False(t, at.Before(began.Truncate(time.Second)))

	for _, place := range []struct{ org, ws string }{{u.Status.PersonalOrg, u.Status.DefaultWorkspace}, {org.Text("uuid"), ws.Text("uuid")}} {
		requireCostCenter(t, hub, place.org, place.ws, "4711")
	}

	// The keys find what they created, whether there are spares or not.
	require.Equal(t, org.Text("uuid"), hub.Do(t, created("alice", "/api/orgs", "", "ACME", "one"), http.StatusCreated).Text("uuid"))
	require.Equal(t, ws.Text("uuid"), hub.Do(t, created("alice", path, org.Text("uuid"), "Web", "two"), http.StatusCreated).Text("uuid"))
	another := hub.Do(t, created("alice", path, org.Text("uuid"), "Shop", "three"), http.StatusCreated).Text("uuid")
	require.NotEqual(t, ws.Text("uuid"), another)
	t.Run("billing", func(t *testing.T) { changesBilling(t, hub, p, u, org.Text("uuid"), ws.Text("uuid"), another) })

	// What follows is as with any other: nobody else is in there, and it can be deleted.
	held, err := p.MembershipsOf(t, org.Text("uuid"))
	require.NoError(t, err)
	require.Len(t, held, 3)
	for name, m := range held {
		require.Equal(t, "alice", m.Spec.UserRef.Name, name)
	}
	framework.Eventually(t, framework.Long, func() error {
		inside, err := framework.SparesIn(t.Context(), p.Clients, p.OrgPath(org.Text("uuid")))
		return framework.Check(err == nil && len(inside) == 1 && inside[0].Whole && inside[0].Reserved == nil, "%v %v", inside, err)
	})
	spareOrgs(t, p, 2, func(s rules.Spare) error { return framework.Check(s.Reserved == nil, "%s is reserved", s.Name) })
	require.Equal(t, "2", metric(t, hub, `kedge_spares_taken_total{kind="organization"}`))
	require.Equal(t, "0", metric(t, hub, `kedge_spares_discarded_total{reason="abandoned"}`))
}

// Two people who ask two hubs at once for the only spare: one of them gets it, and each is alone in
// what they got.
func TestSpares_goToOnePersonOfTwoHubs(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hubs := framework.StartHubs(t, kcp, root, 2, withSpares(1, 0), func(o *server.Options) { o.DefaultOrgQuota = 5000 })
	p := kcp.Platform(t, root)
	people := []string{"alice", "bob", "carol", "dave"}
	framework.SignUp(t, hubs[0], people...)
	for _, hub := range hubs {
		for _, name := range people {
			hub.Do(t, call{As: name, Method: http.MethodGet, Path: "/api/orgs"}, http.StatusOK)
		}
	}
	taken := 0
	for round := range rounds(t, 3) {
		spares, _ := spareOrgs(t, p, 1, func(s rules.Spare) error { return framework.Check(s.Reserved == nil, "%s is reserved", s.Name) })
		answers := make([]framework.Answer, len(people))
		var asking sync.WaitGroup
		for i, name := range people {
			asking.Go(func() { answers[i], _ = hubs[i%2].Try(created(name, "/api/orgs", "", fmt.Sprint("Round ", round), "")) })
		}
		asking.Wait()
		owner := map[string]string{}
		for i, a := range answers {
			require.Contains(t, []int{http.StatusCreated, http.StatusAccepted}, a.Code, "%s", a.Raw)
			uuid := a.Text("uuid")
			require.Empty(t, owner[uuid], "two people got it")
			owner[uuid] = people[i]
			framework.Eventually(t, framework.Long, func() error {
				held, err := p.MembershipsOf(t, uuid)
				return framework.Check(err == nil && len(held) == 1 && held[people[i]].Spec.Role == v1alpha1.RoleAdmin, "%v %v", held, err)
			})
		}
		if owner[spares[0].Name] != "" {
			taken++
		}
	}
	t.Logf("a spare was taken in %d rounds", taken)
	require.Positive(t, taken)
}

// What a quota refuses keeps no spare, and a burst gets what there is and the rest as without spares.
func TestSpares_areGivenBackByARefusal(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hubs := framework.StartHubs(t, kcp, root, 2, withSpares(2, 0), func(o *server.Options) { o.DefaultOrgQuota = 3 })
	p := kcp.Platform(t, root)
	framework.SignUp(t, hubs[0], "alice")
	hubs[1].Do(t, call{As: "alice", Method: http.MethodGet, Path: "/api/orgs"}, http.StatusOK)
	spares, _ := spareOrgs(t, p, 2, anySpare)
	var calls []call
	for i := range 8 {
		calls = append(calls, created("alice", "/api/orgs", "", fmt.Sprint("Burst ", i), ""))
	}
	answers, err := framework.AtOnce(hubs, calls)
	require.NoError(t, err)
	uuids, refused := map[string]bool{}, 0
	for _, a := range answers {
		if a.Code == http.StatusForbidden {
			refused++
			continue
		}
		require.Contains(t, []int{http.StatusCreated, http.StatusAccepted}, a.Code, "%s", a.Raw)
		uuids[a.Text("uuid")] = true
	}
	require.Len(t, uuids, 3)
	require.Equal(t, 5, refused)
	now, _ := spareOrgs(t, p, 2, func(s rules.Spare) error { return framework.Check(s.Reserved == nil, "%s is reserved", s.Name) })
	for _, s := range spares {
		kept := s.Name == now[0].Name || s.Name == now[1].Name
		require.NotEqual(t, uuids[s.Name], kept, "each is somebody's, or a spare again")
	}
}
