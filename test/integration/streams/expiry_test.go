package streams

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// shifted is a clock with a constant offset.
type shifted struct {
	clock.RealClock
	by time.Duration
}

func (c shifted) Now() time.Time { return c.RealClock.Now().Add(c.by) }

func (c shifted) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// late is how long after its end a right may be seen at most.
const late = time.Second

// The clocks of the two hubs differ by twenty minutes, and both are wrong. Two Memberships of a
// Workspace end at the same time: bob has nothing else there, and carol is still a viewer by the
// default access of the Organization.
func TestExpiry_endsRightsInTheirSecondOnEveryHub(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	var hubs []*framework.Hub
	for _, by := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		hubs = append(hubs, framework.StartHub(t, kcp, root, func(o *server.Options) {
			o.Clock, o.AuditLogFile = shifted{by: by}, filepath.Join(t.TempDir(), "audit.log")
		}))
	}
	p := kcp.Platform(t, root)
	framework.SignUp(t, hubs[0], "alice", "bob", "carol")
	org := hubs[0].CreateOrg(t, "alice", "ACME")
	made := hubs[0].CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	hubs[0].Do(t, framework.InOrg("alice", http.MethodPatch, org, "", `{"defaultAccess":"view"}`), http.StatusOK)
	hubs[0].Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("carol", "member")), http.StatusCreated)
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	for user, role := range map[string]string{"bob": "member", "carol": "admin"} {
		body := framework.Adding(user, role)
		body["expiresAt"] = tomorrow
		added := hubs[0].Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", body), http.StatusCreated)
		require.Equal(t, tomorrow, added.Text("expiresAt"))
	}

	var streams []*stream
	for _, hub := range hubs {
		for _, user := range []string{"bob", "carol"} {
			framework.Eventually(t, framework.Long, func() error {
				a, err := hub.Try(call{As: user, Method: http.MethodGet, Path: "/clusters/" + cluster + configMaps + "?limit=1"})
				return framework.Check(err == nil && a.Code == http.StatusOK, "%v %s", err, a.Raw)
			})
			for _, kind := range streamKinds {
				streams = append(streams, open(t, hub, kind, user, cluster, configMaps, nil))
			}
		}
	}
	others := open(t, hubs[0], "h2", "alice", cluster, configMaps, nil)
	source := newSource(t, cluster)
	for _, s := range append(slices.Clone(streams), others) {
		source.follows(t, s)
	}
	// The platform may give an end that is less than a minute ahead.
	end := time.Now().Add(10 * time.Second).Truncate(time.Second)
	for _, user := range []string{"bob", "carol"} {
		patch := fmt.Sprintf(`{"spec":{"expiresAt":%q}}`, end.UTC().Format(time.RFC3339))
		_, err := p.Memberships(p.OrgPath(org)).Patch(t.Context(), tenancy.MembershipName(user, ws), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	ends := make(chan error, len(hubs))
	for _, hub := range hubs {
		go func() { ends <- refusedFrom(hub, cluster, end) }()
	}
	for range hubs {
		require.NoError(t, <-ends)
	}
	for _, s := range streams {
		framework.Eventually(t, framework.Long, func() error { return framework.Check(!s.isOpen(), "%s is open", s.name) })
		require.False(t, s.at.Before(end), "%s ended %s early", s.name, end.Sub(s.at))
		if !strings.Contains(s.name, "kubectl") {
			require.WithinDuration(t, end, s.at, late, s.name)
		}
	}
	source.follows(t, others)

	framework.Eventually(t, framework.Long, func() error {
		held, err := p.MembershipsOf(t, org)
		if err != nil {
			return err
		}
		_, bob := held[tenancy.MembershipName("bob", ws)]
		_, carol := held[tenancy.MembershipName("carol", ws)]
		rows, err := p.RowsOf(t, "bob")
		return framework.Check(err == nil && !bob && !carol && len(rows) == 0, "%v: %v %v", err, held, rows)
	})
	require.Empty(t, p.RolesIn(t, cluster, "bob"))
	require.Equal(t, []string{tenancy.ClusterRoleViewer}, p.RolesIn(t, cluster, "carol"))
	for _, hub := range hubs {
		framework.Eventually(t, framework.Long, func() error {
			a, err := hub.Try(call{As: "carol", Method: http.MethodGet, Path: "/clusters/" + cluster + configMaps + "?limit=1"})
			return framework.Check(err == nil && a.Code == http.StatusOK, "%v %s", err, a.Raw)
		})
		hub.Do(t, call{As: "carol", Method: http.MethodPost, Path: "/clusters/" + cluster + configMaps, Body: `{"metadata":{"name":"late"}}`}, http.StatusForbidden)
		hub.Do(t, framework.InWorkspace("bob", http.MethodGet, org, ws, "", nil), http.StatusForbidden)
		require.Positive(t, metric(t, hub, "kedge_memberships_expired_total"))
	}
	expired := map[string]bool{}
	for _, hub := range hubs {
		for _, e := range framework.AuditEvents(t, hub.Options.AuditLogFile) {
			if e.Action == "expire" && e.Org == org && e.Workspace == ws {
				expired[e.Object] = true
			}
		}
	}
	require.Equal(t, map[string]bool{"bob": true, "carol": true}, expired)
	// They can be added again.
	hubs[1].Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "member")), http.StatusCreated)
}

// refusedFrom asks a hub as bob, and writes as carol, until both are refused. It fails if a request was
// refused before the end, or accepted that began a second after it.
func refusedFrom(hub *framework.Hub, cluster string, end time.Time) error {
	read := call{As: "bob", Method: http.MethodGet, Path: "/clusters/" + cluster + configMaps + "?limit=1"}
	write := call{As: "carol", Method: http.MethodDelete, Path: "/clusters/" + cluster + "/api/v1/namespaces/default/secrets/none"}
	for done := map[string]bool{}; len(done) < 2; {
		for _, c := range []call{read, write} {
			began := time.Now()
			a, err := hub.Try(c)
			if err != nil {
				// The end cuts off an answer that has begun.
				if time.Now().Before(end) || began.After(end.Add(late)) {
					return err
				}
				continue
			}
			passed := a.Code == http.StatusOK || a.Code == http.StatusNotFound
			switch {
			case passed && began.After(end.Add(late)):
				return fmt.Errorf("%s at %s: %s was accepted %s after the end", c.As, hub.URL, c.Method, began.Sub(end))
			case !passed && time.Now().Before(end):
				return fmt.Errorf("%s at %s: %s was refused %s before the end: %s", c.As, hub.URL, c.Method, time.Until(end), a.Raw)
			case !passed:
				done[c.As] = true
			}
		}
	}
	return nil
}

// A part of a Membership ends by itself: bob is a viewer by hand, and admin with sudo for some seconds.
func TestExpiry_endsAPartAndKeepsWhatWasGivenByHand(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := framework.StartHub(t, kcp, root, func(o *server.Options) { o.AuditLogFile = filepath.Join(t.TempDir(), "audit.log") })
	p := kcp.Platform(t, root)
	framework.SignUp(t, hub, "alice", "bob")
	org := hub.CreateOrg(t, "alice", "ACME")
	made := hub.CreateWorkspace(t, "alice", org, "dev")
	ws, cluster := made.Text("uuid"), made.Text("clusterID")
	hub.Do(t, framework.InWorkspace("alice", http.MethodPost, org, ws, "/members", framework.Adding("bob", "viewer")), http.StatusCreated)
	name := tenancy.MembershipName("bob", ws)
	end := time.Now().Add(40 * time.Second).Truncate(time.Second)
	give := func(patch string) {
		_, err := p.Memberships(p.OrgPath(org)).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	at := end.UTC().Format(time.RFC3339)
	give(fmt.Sprintf(`{"spec":{"extra":[{"source":"request:1","role":"admin","expiresAt":%q},{"source":"request:2","sudo":true,"expiresAt":%q}]}}`, at, at))
	write := call{As: "bob", Method: http.MethodDelete, Path: "/clusters/" + cluster + "/api/v1/namespaces/default/secrets/none"}
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(write)
		return framework.Check(err == nil && a.Code == http.StatusNotFound, "%v %s", err, a.Raw)
	})
	member := framework.InWorkspace("alice", http.MethodGet, org, ws, "/members/bob", nil)
	shown := hub.Do(t, member, http.StatusOK)
	require.Equal(t, "admin", shown.Text("role"))
	require.Equal(t, at, shown.Text("expiresAt"))
	elevated := open(t, hub, "h2", "bob", cluster, "/api/v1/namespaces/default/secrets", nil)
	require.True(t, elevated.isOpen())

	framework.Eventually(t, framework.Long, func() error { return framework.Check(!elevated.isOpen(), "the stream is open") })
	require.False(t, elevated.at.Before(end), "it ended %s early", end.Sub(elevated.at))
	require.WithinDuration(t, end, elevated.at, late)
	framework.Eventually(t, framework.Long, func() error {
		held, err := p.MembershipsOf(t, org)
		if err != nil {
			return err
		}
		m, ok := held[name]
		return framework.Check(ok && len(m.Spec.Extra) == 0 && m.Spec.Role == "viewer", "%v", m)
	})
	require.Equal(t, []string{tenancy.ClusterRoleViewer}, p.RolesIn(t, cluster, "bob"))
	framework.Eventually(t, framework.Long, func() error {
		a, err := hub.Try(call{As: "bob", Method: http.MethodGet, Path: "/clusters/" + cluster + configMaps + "?limit=1"})
		return framework.Check(err == nil && a.Code == http.StatusOK, "%v %s", err, a.Raw)
	})
	hub.Do(t, write, http.StatusForbidden)
	require.Equal(t, "viewer", hub.Do(t, member, http.StatusOK).Text("role"))
	require.True(t, slices.ContainsFunc(framework.AuditEvents(t, hub.Options.AuditLogFile), func(e audit.Event) bool {
		return e.Action == "expire" && e.Workspace == ws && e.Object == "bob" && e.Facts != nil && e.Facts.Sources != nil
	}))
}
