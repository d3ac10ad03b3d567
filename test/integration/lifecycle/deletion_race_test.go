package lifecycle

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/test/framework"
)

// contested is an object with an undelete that races the purge.
type contested struct {
	what           string
	user, org, ws  string
	undelete, used call
	// there reads from kcp whether the object still exists unchanged.
	there func() bool
	kept  bool
}

// O-13: an undelete at the end of the grace period either succeeds or is refused, and the
// answer says which. No object is undeleted in part, and no object is purged after a
// successful undelete.
func TestO13_AnUndeleteThatRacesThePurgeIsWholeOrTooLate(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hubs := framework.StartHubs(t, kcp, root, 2, framework.WithAdmin)
	hub, p := hubs[0], newPlatform(t, root)
	people := []string{"bob", "carol", "dave", "erin"}
	framework.SignUp(t, hub, append([]string{"alice", "heidi"}, people...)...)
	var mu sync.Mutex
	var all []*contested
	add := func(c *contested) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, c)
	}
	org := hub.CreateOrg(t, "alice", "kept")
	users := p.AllUsers(t)
	for _, name := range people {
		hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding(name, "member")), http.StatusCreated)
		add(&contested{
			what: "the person " + name, user: name, undelete: call{As: "heidi", Method: http.MethodPost, Path: "/api/users/" + name + "/undelete"},
			used:  framework.InOrg(name, http.MethodGet, org, "", nil),
			there: func() bool { return p.AllUsers(t)[name].UID == users[name].UID },
		})
	}
	var making sync.WaitGroup
	for i := range 4 {
		making.Go(func() {
			name := fmt.Sprint("contested ", i)
			ws, err := hub.Try(framework.InOrg("alice", http.MethodPost, org, "/workspaces", map[string]string{"displayName": name}))
			if err != nil || ws.Code != http.StatusCreated {
				t.Errorf("a Workspace: %v %s", err, ws.Raw)
				return
			}
			uuid := ws.Text("uuid")
			add(&contested{
				what: "the Workspace " + uuid, org: org, ws: uuid, undelete: framework.InWorkspace("alice", http.MethodPost, org, uuid, "/undelete", nil),
				used:  call{As: "alice", Method: http.MethodGet, Path: "/clusters/" + ws.Text("clusterID") + "/api/v1/namespaces"},
				there: func() bool { return p.WorkspacesOf(t, org)[uuid].Name != "" },
			})
		})
		making.Go(func() {
			made, err := hub.Try(call{As: "alice", Method: http.MethodPost, Path: "/api/orgs", Body: map[string]string{"displayName": fmt.Sprint("contested ", i)}})
			if err != nil || made.Code != http.StatusCreated {
				t.Errorf("an Org: %v %s", err, made.Raw)
				return
			}
			uuid := made.Text("uuid")
			ws, err := hub.Try(framework.InOrg("alice", http.MethodPost, uuid, "/workspaces", map[string]string{"displayName": "in it"}))
			if err != nil || ws.Code != http.StatusCreated {
				t.Errorf("a Workspace: %v %s", err, ws.Raw)
				return
			}
			add(&contested{
				what: "the Org " + uuid, org: uuid, undelete: framework.InOrg("alice", http.MethodPost, uuid, "/undelete", nil),
				used:  call{As: "alice", Method: http.MethodGet, Path: "/clusters/" + ws.Text("clusterID") + "/api/v1/namespaces"},
				there: func() bool { _, ok := p.OrganizationsBy(t, "alice")[uuid]; return ok },
			})
		})
	}
	making.Wait()
	require.Len(t, all, 12)
	for _, c := range all {
		remove := c.undelete
		remove.Method, remove.Path = http.MethodDelete, remove.Path[:len(remove.Path)-len("/undelete")]
		hub.Do(t, remove, http.StatusOK, http.StatusAccepted)
	}
	// Setting the request times takes a while and must be done before the grace period
	// ends. A first pass measures it.
	endAt := func(end time.Time) (took time.Duration) {
		began := time.Now()
		for _, c := range all {
			p.age(t, c.user, c.org, c.ws, end.Add(-defaultGrace))
		}
		return time.Since(began)
	}
	took := endAt(time.Now().Add(time.Hour))
	end := time.Now().Add(2*time.Second + 10*took).Truncate(time.Second).Add(time.Second)
	endAt(end)
	t.Logf("the graces end in %s", time.Until(end).Round(time.Millisecond))
	var racing sync.WaitGroup
	for i, c := range all {
		// The requests are spread around the end of the grace period.
		at := end.Add(time.Duration(i%4-2) * 20 * time.Millisecond)
		racing.Go(func() {
			err := framework.Wait(framework.Long, func() error {
				if time.Now().Before(at) {
					return fmt.Errorf("it is not yet %s", at)
				}
				return nil
			})
			a, failed := hubs[i%2].Try(c.undelete)
			switch {
			case err != nil || failed != nil:
				t.Errorf("%s: %v, %v", c.what, err, failed)
			case a.Code == http.StatusOK:
				c.kept = true
			case a.Code != http.StatusNotFound && a.Code != http.StatusForbidden:
				t.Errorf("%s: %d %s", c.what, a.Code, a.Raw)
			}
		})
	}
	racing.Wait()
	kept := 0
	for _, c := range all {
		if c.kept {
			kept++
		}
		framework.NowAndThen(t, func() error {
			if there := c.there(); there != c.kept {
				return fmt.Errorf("%s: acknowledged to be back: %t, and there: %t", c.what, c.kept, there)
			}
			if !c.kept {
				return nil
			}
			for _, hub := range hubs {
				a, err := hub.Try(c.used)
				if err != nil || a.Code != http.StatusOK {
					return fmt.Errorf("%s is back and cannot be used: %d %s %w", c.what, a.Code, a.Raw, err)
				}
			}
			return nil
		})
	}
	t.Logf("of %d undeletes around the end of the grace %d came in time", len(all), kept)
	p.Settles(t, false)
	for _, c := range all {
		require.Equal(t, c.kept, c.there(), "%s, when all is done", c.what)
	}
	truth, err := framework.ReadTruth(t.Context(), p.Clients, root)
	require.NoError(t, err)
	for uuid, o := range truth.Orgs {
		require.Nil(t, o.Organization.Status.DeletionRequestedAt, uuid)
	}
	for name, u := range truth.Users {
		require.Equal(t, (*metav1.Time)(nil), u.Status.DeletionRequestedAt, name)
	}
}
