package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/test/framework"
)

// losses are what people and bots have when a backup is made, and lose afterwards.
type losses struct {
	*scene
	cluster string
	bots    map[string]*scene
	// early is soft-deleted before the backup. late, and the Organization other, are afterwards.
	early, late, other *scene

	loading       sync.WaitGroup
	stop, removed chan struct{}
}

func wants(t *testing.T, h *hub, c framework.Call) framework.Answer {
	t.Helper()
	return h.Do(t, c, http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent)
}

// about is the scene of a person.
func (l *losses) about(person string) *scene {
	of := *l.scene
	of.b = person
	return &of
}

func (l *losses) add(t *testing.T, h *hub, person, role string) {
	t.Helper()
	wants(t, h, addTo(inOrg, role, false)(l.about(person)))
}

func (l *losses) workspace(t *testing.T, h *hub, name string) *scene {
	t.Helper()
	of := *l.scene
	of.key = name
	of.ws = wants(t, h, createWorkspace(&of)).Text("uuid")
	return &of
}

// newLosses makes what will be lost.
func newLosses(t *testing.T, h *hub) *losses {
	t.Helper()
	for _, person := range framework.People() {
		wants(t, h, framework.Call{As: person, Method: http.MethodGet, Path: "/api/users/me"})
	}
	l := &losses{scene: &scene{a: "alice", org: h.CreateOrg(t, "alice", "ACME")}, stop: make(chan struct{}), removed: make(chan struct{}, 1)}
	made := h.CreateWorkspace(t, "alice", l.org, "Work")
	l.ws, l.cluster = made.Text("uuid"), made.Text("clusterID")
	for _, person := range []string{"bob", "carol", "erin"} {
		l.add(t, h, person, "admin")
	}
	l.add(t, h, "dave", "member")
	wants(t, h, addTo(inWorkspace, "admin", true)(l.about("bob")))
	wants(t, h, addTo(inWorkspace, "admin", false)(l.about("dave")))
	l.bots = map[string]*scene{"revoked": l.about(""), "deleted": l.about(""), "kept": l.about("")}
	for name, of := range l.bots {
		of.key = name
		of.bot = wants(t, h, createBot(of)).Text("uuid")
		a := wants(t, h, onBot(http.MethodPost, "/tokens", map[string]any{})(of))
		of.token, of.secret = a.Text("id"), a.Text("token")
		l.botGets(t, h, name, http.StatusOK)
	}
	l.early, l.late = l.workspace(t, h, "deleted-before"), l.workspace(t, h, "deleted-after")
	wants(t, h, inWorkspace(l.early, http.MethodDelete, "", nil))
	l.other = &scene{a: "alice", org: h.CreateOrg(t, "alice", "Deleted after")}
	h.Enters(t, "bob", l.cluster)
	return l
}

func (l *losses) botGets(t *testing.T, h *hub, name string, code int) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		got, err := enters(h, l.bots[name].secret, l.cluster)
		return framework.Check(err == nil && got == code, "the bot %s gets %d: %v", name, got, err)
	})
}

// load adds and removes frank all the time, until lose.
func (l *losses) load(h *hub) {
	l.loading.Go(func() {
		for {
			for _, c := range []framework.Call{addTo(inOrg, "admin", false)(l.about("frank")), remove(inOrg, "?cascade=true")(l.about("frank"))} {
				a, err := h.Try(c)
				if err != nil {
					return
				}
				if c.Method == http.MethodDelete && a.Code/100 == 2 {
					select {
					case <-l.stop:
						l.removed <- struct{}{}
						return
					default:
					}
				}
			}
		}
	})
}

// lose takes away, after the backup.
func (l *losses) lose(t *testing.T, h *hub) {
	t.Helper()
	wants(t, h, remove(inOrg, "?cascade=true")(l.about("bob")))
	wants(t, h, change(inOrg, "member")(l.about("carol")))
	wants(t, h, change(inWorkspace, "member")(l.about("dave")))
	wants(t, h, onBot(http.MethodDelete, "/tokens/"+l.bots["revoked"].token, nil)(l.bots["revoked"]))
	wants(t, h, onBot(http.MethodDelete, "", nil)(l.bots["deleted"]))
	wants(t, h, inWorkspace(l.late, http.MethodDelete, "", nil))
	wants(t, h, inOrg(l.other, http.MethodDelete, "", nil))
	l.add(t, h, "grace", "admin")
	l.workspace(t, h, "lost")
	close(l.stop)
	<-l.removed
}

// asBob is what has to be refused to a person who was removed.
func (l *losses) asBob() []framework.Call { return asBob(l.scene, l.cluster) }

// stayLost requires that nothing that was taken is there again.
func (l *losses) stayLost(t *testing.T, h *hub) {
	t.Helper()
	for _, c := range append(l.asBob(), framework.Call{As: "frank", Method: http.MethodGet, Path: "/api/orgs/" + l.org, Org: l.org}) {
		h.Do(t, c, http.StatusForbidden, http.StatusNotFound)
	}
	roles := func(c framework.Call) map[string]string {
		t.Helper()
		roles := map[string]string{}
		for _, item := range wants(t, h, c).JSON["items"].([]any) {
			m := item.(map[string]any)
			roles[fmt.Sprint(m["scope"], " ", m["user"])] = fmt.Sprint(m["role"])
		}
		return roles
	}
	require.Equal(t, map[string]string{"org alice": "admin", "org carol": "member", "org erin": "admin", "org dave": "member"},
		roles(inOrg(l.scene, http.MethodGet, "/members", nil)))
	inside := roles(inWorkspace(l.scene, http.MethodGet, "/members", nil))
	require.Equal(t, "member", inside["workspace dave"])
	require.NotContains(t, inside, "workspace bob")
	for name, code := range map[string]int{"revoked": http.StatusUnauthorized, "deleted": http.StatusUnauthorized, "kept": http.StatusOK} {
		l.botGets(t, h, name, code)
	}
}

// reported requires that a report says what is lost, and what is due.
func (l *losses) reported(t *testing.T, r restore.Report) {
	t.Helper()
	require.Empty(t, r.Unknown)
	require.Empty(t, r.WithoutAdmin)
	require.Empty(t, r.GivenUp())
	lost := map[string]bool{}
	for _, of := range r.Lost {
		lost[of.What+" "+of.Object] = true
	}
	require.Contains(t, lost, "member grace")
	due := map[string]bool{}
	for _, p := range r.Purges {
		due[p.Kind+" "+p.Org+" "+p.Workspace] = true
	}
	require.Equal(t, map[string]bool{
		"workspace " + l.org + " " + l.early.ws: true, "workspace " + l.org + " " + l.late.ws: true, "organization " + l.other.org + " ": true,
	}, due)
}

// released undeletes what is due and held, calls release, and requires that the rest is purged.
func (l *losses) released(t *testing.T, h *hub, release func()) {
	t.Helper()
	wants(t, h, inWorkspace(l.early, http.MethodPost, "/undelete", nil))
	look := inWorkspace(l.late, http.MethodGet, "", nil)
	require.Contains(t, string(h.Do(t, look, http.StatusNotFound).Raw), "can be undeleted")
	release()
	// Nobody has a Membership in what is purged.
	framework.Eventually(t, framework.Long, func() error {
		a, err := h.Try(look)
		return framework.Check(err == nil && a.Code == http.StatusForbidden, "what is due to be purged is there: %d %v", a.Code, err)
	})
	wants(t, h, inWorkspace(l.early, http.MethodGet, "", nil))
}

// knocks has bob try to get in from now on, and returns a func that ends it. refused is called with what he gets.
func (l *losses) knocks(t *testing.T, client *framework.Client, refused func(framework.Answer)) (end func()) {
	t.Helper()
	ended, tries := make(chan struct{}), sync.WaitGroup{}
	tries.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
			}
			a, err := client.TryOnce(l.asBob()[n%2])
			if err == nil && a.Code < http.StatusBadRequest {
				t.Errorf("bob gets %d in the restored hub: %s", a.Code, a.Raw)
				return
			}
			if err == nil {
				refused(a)
			}
		}
	})
	return func() { close(ended); tries.Wait() }
}
