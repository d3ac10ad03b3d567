package streams

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// cutScene is an Organization of alice with one Workspace, in which the user of an ending has open
// streams, and a Workspace of another person, in which the user has others.
type cutScene struct {
	hubs                        []*framework.Hub
	p                           framework.Platform
	user                        string
	org, ws, cluster, elsewhere string
}

// alice sends a request as alice to the first hub.
func (s *cutScene) alice(t testing.TB, c call, codes ...int) {
	t.Helper()
	c.As = "alice"
	s.hubs[0].Do(t, c, codes...)
}

func (s *cutScene) inOrg(method, below string, body any) call {
	return framework.InOrg(s.user, method, s.org, below, body)
}

func (s *cutScene) inWorkspace(method, below string, body any) call {
	return framework.InWorkspace(s.user, method, s.org, s.ws, below, body)
}

func (s *cutScene) join(t testing.TB, role string, more ...string) {
	t.Helper()
	body := framework.Adding(s.user, role)
	if slices.Contains(more, "sudo") {
		body["sudo"] = true
	}
	s.alice(t, s.inWorkspace(http.MethodPost, "/members", body), http.StatusCreated)
}

func (s *cutScene) joinOrg(t testing.TB, role string) {
	t.Helper()
	s.alice(t, s.inOrg(http.MethodPost, "/members", framework.Adding(s.user, role)), http.StatusCreated)
}

func (s *cutScene) defaultAccess(t testing.TB, access string) {
	t.Helper()
	s.alice(t, s.inOrg(http.MethodPatch, "", map[string]string{"defaultAccess": access}), http.StatusOK)
}

// ending is one way in which a right ends or is reduced.
type ending struct {
	name       string
	begin, end func(t testing.TB, s *cutScene)
	// left are the ClusterRoles that the person has afterwards.
	left []string
	// users are the person in the run with one hub and the one in that with two, or empty for bob;
	// everywhere means that all rights of the user end.
	users      [2]string
	everywhere bool
	// elevated means that sudo ends.
	elevated bool
	// frozen means that the Workspace is deactivated.
	frozen bool
}

// person is the user of the ending in the run with these hubs.
func (e ending) person(hubs []*framework.Hub) string { return cmp.Or(e.users[len(hubs)-1], "bob") }

// endings are the ways in which a right ends or is reduced.
var endings = []ending{
	{
		name:  "removed from the Workspace",
		begin: func(t testing.TB, s *cutScene) { s.join(t, "member") },
		end: func(t testing.TB, s *cutScene) {
			s.alice(t, s.inWorkspace(http.MethodDelete, "/members/bob", nil), http.StatusNoContent)
		},
	},
	{
		name:  "demoted in the Workspace",
		begin: func(t testing.TB, s *cutScene) { s.join(t, "admin") },
		end: func(t testing.TB, s *cutScene) {
			s.alice(t, s.inWorkspace(http.MethodPatch, "/members/bob", framework.WithRole("member")), http.StatusOK)
		},
		left: []string{tenancy.ClusterRoleMember},
	},
	{
		name:  "left the Workspace",
		begin: func(t testing.TB, s *cutScene) { s.join(t, "admin") },
		end: func(t testing.TB, s *cutScene) {
			s.hubs[0].Do(t, s.inWorkspace(http.MethodDelete, "/memberships/me", nil), http.StatusNoContent)
		},
	},
	{
		name:  "removed from the Org with all in it",
		begin: func(t testing.TB, s *cutScene) { s.joinOrg(t, "member"); s.join(t, "member") },
		end: func(t testing.TB, s *cutScene) {
			s.alice(t, s.inOrg(http.MethodDelete, "/members/bob?cascade=true", nil), http.StatusNoContent)
		},
	},
	{
		name:  "left the Org as its admin",
		begin: func(t testing.TB, s *cutScene) { s.joinOrg(t, "admin") },
		end: func(t testing.TB, s *cutScene) {
			s.hubs[0].Do(t, s.inOrg(http.MethodDelete, "/memberships/me", nil), http.StatusNoContent)
		},
	},
	{
		name:  "demoted in the Org",
		begin: func(t testing.TB, s *cutScene) { s.joinOrg(t, "admin") },
		end: func(t testing.TB, s *cutScene) {
			s.alice(t, s.inOrg(http.MethodPatch, "/members/bob", framework.WithRole("member")), http.StatusOK)
		},
	},
	{
		name:  "demoted in the Org, and a member in the Workspace",
		begin: func(t testing.TB, s *cutScene) { s.joinOrg(t, "admin"); s.join(t, "member") },
		end: func(t testing.TB, s *cutScene) {
			s.alice(t, s.inOrg(http.MethodPatch, "/members/bob", framework.WithRole("member")), http.StatusOK)
		},
		left: []string{tenancy.ClusterRoleMember},
	},
	{
		name:  "the Org shows its Workspaces to its members no more",
		begin: func(t testing.TB, s *cutScene) { s.joinOrg(t, "member"); s.defaultAccess(t, "view") },
		end:   func(t testing.TB, s *cutScene) { s.defaultAccess(t, "none") },
	},
	{
		name: "removed from the Workspace of an Org that shows it",
		begin: func(t testing.TB, s *cutScene) {
			s.joinOrg(t, "member")
			s.defaultAccess(t, "view")
			s.join(t, "member")
		},
		end: func(t testing.TB, s *cutScene) {
			s.alice(t, s.inWorkspace(http.MethodDelete, "/members/bob", nil), http.StatusNoContent)
		},
		left: []string{tenancy.ClusterRoleViewer},
	},
	{
		name:  "sudo was taken",
		begin: func(t testing.TB, s *cutScene) { s.join(t, "member", "sudo") },
		end: func(t testing.TB, s *cutScene) {
			s.alice(t, s.inWorkspace(http.MethodPatch, "/members/bob", `{"sudo":false}`), http.StatusOK)
		},
		left: []string{tenancy.ClusterRoleMember}, elevated: true,
	},
	{
		name:   "the Workspace was deleted",
		begin:  func(t testing.TB, s *cutScene) { s.join(t, "admin") },
		end:    func(t testing.TB, s *cutScene) { s.alice(t, s.inWorkspace(http.MethodDelete, "", nil), http.StatusOK) },
		frozen: true,
	},
	{
		name:   "the Org was deleted",
		begin:  func(t testing.TB, s *cutScene) { s.joinOrg(t, "admin") },
		end:    func(t testing.TB, s *cutScene) { s.alice(t, s.inOrg(http.MethodDelete, "", nil), http.StatusOK) },
		frozen: true,
	},
	{
		name: "the person was deleted", users: [2]string{"carol", "erin"}, everywhere: true,
		begin: func(t testing.TB, s *cutScene) { s.join(t, "admin") },
		end: func(t testing.TB, s *cutScene) {
			s.hubs[0].Do(t, call{As: s.user, Method: http.MethodDelete, Path: "/api/users/me"}, http.StatusAccepted)
		},
	},
	{
		name: "the person was rejected", users: [2]string{"dave", "frank"}, everywhere: true,
		begin: func(t testing.TB, s *cutScene) { s.join(t, "admin") },
		end: func(t testing.TB, s *cutScene) {
			s.hubs[0].Do(t, framework.Registering(s.user, "Rejected"), http.StatusOK)
		},
	},
}

// When a right ends, the bindings are removed, the next request is refused and every stream that
// depends on it is cut, on every replica. No event after the end is delivered. Streams of others,
// and of the person elsewhere, stay open. A second hub starts when one hub has cut all.
func TestRevocation_cutsStreamsOnEveryReplica(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	p := kcp.Platform(t, root)
	options := []func(*server.Options){framework.WithAdmin, func(o *server.Options) { o.DefaultOrgQuota = 100 }}
	hubs := framework.StartHubs(t, kcp, root, 1, options...)
	framework.SignUp(t, hubs[0], "alice", "bob", "carol", "dave", "erin", "frank", "heidi")
	t.Run("hubs: 1", func(t *testing.T) { endsAll(t, hubs, p) })
	hubs = append(hubs, framework.StartHub(t, kcp, root, options...))
	t.Run("hubs: 2", func(t *testing.T) { endsAll(t, hubs, p) })
}

// endsAll ends rights in each way.
func endsAll(t *testing.T, hubs []*framework.Hub, p framework.Platform) {
	t.Helper()
	org := hubs[0].CreateOrg(t, "heidi", "Elsewhere")
	elsewhere := hubs[0].CreateWorkspace(t, "heidi", org, "elsewhere")
	people := map[string]bool{}
	for _, e := range endings {
		people[e.person(hubs)] = true
	}
	for user := range people {
		body := framework.Adding(user, "member")
		add := framework.InWorkspace("heidi", http.MethodPost, org, elsewhere.Text("uuid"), "/members", body)
		hubs[0].Do(t, add, http.StatusCreated)
	}
	var cut atomic.Int64
	before := make([]float64, len(hubs))
	for i, hub := range hubs {
		before[i] = metric(t, hub, "kedge_proxy_revocation_seconds_count")
	}
	t.Run("when", func(t *testing.T) {
		for _, e := range endings {
			t.Run(e.name, func(t *testing.T) {
				t.Parallel()
				s := &cutScene{hubs: hubs, p: p, user: e.person(hubs), elsewhere: elsewhere.Text("clusterID")}
				s.org = hubs[0].CreateOrg(t, "alice", "ACME")
				made := hubs[0].CreateWorkspace(t, "alice", s.org, "dev")
				s.ws, s.cluster = made.Text("uuid"), made.Text("clusterID")
				e.begin(t, s)
				cut.Add(int64(s.endsStreams(t, e)))
			})
		}
	})
	for i, hub := range hubs {
		framework.Eventually(t, framework.Long, func() error {
			count := metric(t, hub, "kedge_proxy_revocation_seconds_count") - before[i]
			return framework.Check(count >= float64(cut.Load()), "%v of %d cuts are counted", count, cut.Load())
		})
		count := metric(t, hub, "kedge_proxy_revocation_seconds_count")
		sum := metric(t, hub, "kedge_proxy_revocation_seconds_sum")
		t.Logf("%s: %v streams were cut, %.1f ms after the hub learned of it", hub.URL, count, 1000*sum/count)
	}
}

// endsStreams opens streams, ends the right and checks the streams. It returns the number of
// streams that each hub must have cut; kcp itself may end streams of a deactivated cluster.
func (s *cutScene) endsStreams(t *testing.T, e ending) (cut int) {
	t.Helper()
	var header http.Header
	if e.elevated {
		header = framework.Impersonating(s.user, tenancy.SudoGroup(s.ws))
	}
	here, there := newSource(t, s.cluster), newSource(t, s.elsewhere)
	var theirs, others, elsewhere []*stream
	for i, hub := range s.hubs {
		// The right must be effective in kcp and known to this hub.
		get := call{As: s.user, Method: http.MethodGet, Path: "/clusters/" + s.cluster + configMaps + "?limit=1", Header: header}
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(get)
			return framework.Check(err == nil && a.Code == http.StatusOK, "%v %s", err, a.Raw)
		})
		for _, kind := range streamKinds {
			theirs = append(theirs, open(t, hub, kind, s.user, s.cluster, configMaps, header.Clone()))
		}
		others = append(others, open(t, hub, "h2", "alice", s.cluster, configMaps, nil))
		if e.elevated {
			// Streams opened without sudo stay open.
			others = append(others, open(t, hub, "h2", s.user, s.cluster, configMaps, nil))
		}
		elsewhere = append(elsewhere, open(t, hub, streamKinds[i], s.user, s.elsewhere, configMaps, nil))
	}
	for _, o := range slices.Concat(theirs, others) {
		here.follows(t, o)
	}
	for _, o := range elsewhere {
		there.follows(t, o)
	}

	began := time.Now()
	e.end(t, s)
	over := time.Now()
	next := s.next(e, header)
	if next.Method == http.MethodGet {
		s.hubs[0].Do(t, next, http.StatusForbidden)
	}
	first := time.Since(over)
	bound := func() error {
		roles := s.p.RolesIn(t, s.cluster, s.user)
		return framework.Check(len(roles) == len(e.left) && (len(roles) == 0 || roles[0] == e.left[0]), "bound to %v", roles)
	}
	switch {
	case e.frozen:
		// The bindings stay for an undelete; kcp refuses every request.
		framework.Eventually(t, framework.Long, func() error {
			_, err := s.p.BindingsIn(t, s.cluster)
			return framework.Check(err != nil && strings.Contains(err.Error(), "inactive"), "not frozen in kcp: %v", err)
		})
	default:
		require.NoError(t, bound(), "the bindings went before the answer")
	}
	for _, hub := range s.hubs {
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(next)
			return framework.Check(err == nil && a.Code == http.StatusForbidden, "%v %d %s", err, a.Code, a.Raw)
		})
	}
	everywhere := time.Since(over)
	if e.frozen {
		theirs, others = append(theirs, others...), nil
	}
	if e.everywhere {
		theirs, elsewhere = append(theirs, elsewhere...), nil
	}
	slowest := time.Duration(-1 << 62)
	for _, o := range theirs {
		select {
		case <-o.ended:
			slowest = max(slowest, o.at.Sub(over))
		case <-time.After(framework.Long):
			require.Fail(t, "still open", o.name)
		}
	}
	t.Logf("ended in %s; the last of %d streams closed %s behind the answer, the next request refused %s behind it, and everywhere by %s",
		over.Sub(began).Round(time.Millisecond), len(theirs), slowest.Round(100*time.Microsecond), first.Round(100*time.Microsecond), everywhere.Round(100*time.Microsecond))

	// Streams of others continue, which proves that there were events to deliver.
	for _, o := range others {
		here.follows(t, o)
	}
	for _, o := range elsewhere {
		there.follows(t, o)
	}
	for _, from := range []*source{here, there} {
		if !e.frozen || from == there {
			// The end of the person's streams did not wait for streams of others.
			from.goesOn(t, over)
		}
		from.stop()
		<-from.done
		for _, o := range theirs {
			if o.cluster != from.cluster {
				continue
			}
			text := o.text()
			after, all := from.first(s.cutBy(o, over))
			for i := after; i < all; i++ {
				require.NotContains(t, text, from.event(i), "%s delivered what happened behind the answer", o.name)
			}
		}
	}
	if e.frozen {
		return 0
	}
	return len(theirs) / len(s.hubs)
}

// cutBy is the time after which a stream must deliver nothing: the time of the answer at the hub
// that gave it. Another hub receives the change and the events from kcp in any order; there it is
// the time of the cut, which takes at most a second. The limit of ten is for slow machines.
func (s *cutScene) cutBy(o *stream, over time.Time) time.Time {
	if o.hub == s.hubs[0] {
		return over
	}
	if latest := over.Add(10 * time.Second); o.at.After(latest) {
		return latest
	}
	return o.at
}

// next is a request that succeeded before and must be refused now. If a lower role is left, it is a
// write, which kcp itself refuses.
func (s *cutScene) next(e ending, header http.Header) call {
	c := call{As: s.user, Method: http.MethodGet, Path: "/clusters/" + s.cluster + configMaps + "?limit=1", Header: header}
	if len(e.left) == 0 || e.elevated {
		return c
	}
	c.Method, c.Path = http.MethodPost, "/clusters/"+s.cluster+"/api/v1/namespaces/default/secrets?dryRun=All"
	c.Body = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`
	if e.left[0] == tenancy.ClusterRoleMember {
		c.Path = "/clusters/" + s.cluster + "/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All"
		c.Body = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"x"}}`
	}
	return c
}
