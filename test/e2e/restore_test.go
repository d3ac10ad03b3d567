package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/restore"
	"github.com/faroshq/kedge-hub/test/framework"
)

// restores runs kedge-hub restore, and returns what it printed.
func restores(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), program, append([]string{"restore"}, args...)...).CombinedOutput()
	return string(out), err
}

// reportOf reads what a restored hub did before it served.
func reportOf(t *testing.T, h *hub) (r restore.Report) {
	t.Helper()
	raw, err := os.ReadFile(restore.ReportFile(h.dir))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &r))
	return r
}

// enters returns the code of a look into a cluster.
func enters(h *hub, token, cluster string) (int, error) {
	a, err := h.Try(framework.Call{Token: token, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces/default/configmaps?limit=1"})
	return a.Code, err
}

// asBob returns what has to be refused to a person who was removed.
func asBob(s *scene, cluster string) []framework.Call {
	return []framework.Call{
		{As: "bob", Method: http.MethodGet, Path: "/api/orgs/" + s.org, Org: s.org},
		{As: "bob", Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"},
	}
}

// TestRestore_givesNoRightBack loses the disk of a hub under load, and starts another one from the backup and the audit
// files of the lost one. That one is killed while it is in restore mode.
func TestRestore_givesNoRightBack(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	h := startHub(t, t.TempDir(), port, "--personal-orgs=false")
	do := func(c framework.Call) framework.Answer {
		t.Helper()
		return h.Do(t, c, http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent)
	}
	for _, person := range framework.People() {
		do(framework.Call{As: person, Method: http.MethodGet, Path: "/api/users/me"})
	}
	s := &scene{a: "alice", org: h.CreateOrg(t, "alice", "ACME")}
	made := h.CreateWorkspace(t, "alice", s.org, "Work")
	s.ws = made.Text("uuid")
	cluster := made.Text("clusterID")
	about := func(person string) *scene { of := *s; of.b = person; return &of }
	add := func(person, role string) { do(addTo(inOrg, role, false)(about(person))) }
	for _, person := range []string{"bob", "carol", "erin"} {
		add(person, "admin")
	}
	add("dave", "member")
	do(addTo(inWorkspace, "admin", true)(about("bob")))
	do(addTo(inWorkspace, "admin", false)(about("dave")))
	bots := map[string]*scene{"revoked": about(""), "deleted": about(""), "kept": about("")}
	for name, of := range bots {
		of.key = name
		of.bot = do(createBot(of)).Text("uuid")
		a := do(onBot(http.MethodPost, "/tokens", map[string]any{})(of))
		of.token, of.secret = a.Text("id"), a.Text("token")
		framework.Eventually(t, framework.Long, func() error {
			code, err := enters(h, of.secret, cluster)
			return framework.Check(err == nil && code == http.StatusOK, "the bot gets %d: %v", code, err)
		})
	}
	workspaceOf := func(name string) *scene {
		of := *s
		of.key = name
		of.ws = do(createWorkspace(&of)).Text("uuid")
		return &of
	}
	early, late := workspaceOf("deleted-before"), workspaceOf("deleted-after")
	do(inWorkspace(early, http.MethodDelete, "", nil))
	other := &scene{a: "alice", org: h.CreateOrg(t, "alice", "Deleted after")}
	h.Enters(t, "bob", cluster)

	// Frank is added and removed all the time.
	stop, removed := make(chan struct{}), make(chan struct{}, 1)
	var loading sync.WaitGroup
	loading.Go(func() {
		for {
			for _, c := range []framework.Call{addTo(inOrg, "admin", false)(about("frank")), remove(inOrg, "?cascade=true")(about("frank"))} {
				a, err := h.Try(c)
				if err != nil {
					return
				}
				if c.Method == http.MethodDelete && a.Code/100 == 2 {
					select {
					case <-stop:
						removed <- struct{}{}
						return
					default:
					}
				}
			}
		}
	})
	saved := backUp(t, h)

	do(remove(inOrg, "?cascade=true")(about("bob")))
	do(change(inOrg, "member")(about("carol")))
	do(change(inWorkspace, "member")(about("dave")))
	do(onBot(http.MethodDelete, "/tokens/"+bots["revoked"].token, nil)(bots["revoked"]))
	do(onBot(http.MethodDelete, "", nil)(bots["deleted"]))
	do(inWorkspace(late, http.MethodDelete, "", nil))
	do(inOrg(other, http.MethodDelete, "", nil))
	add("grace", "admin")
	workspaceOf("lost")
	close(stop)
	<-removed
	h.Kill()
	loading.Wait()
	audit := filepath.Join(t.TempDir(), "audit")
	require.NoError(t, os.Rename(filepath.Join(h.dir, "audit"), audit))
	require.NoError(t, os.RemoveAll(h.dir))

	// Without the audit files nobody knows that bob was removed.
	blind := filepath.Join(t.TempDir(), "blind")
	out, err := restores(t, saved, "--data-dir", blind)
	require.Error(t, err)
	require.Contains(t, out, "--accept-lost-history")
	refused := launch(t, blind, freePort(t))
	select {
	case <-refused.Ended():
		require.Contains(t, refused.Output.String(), "--accept-lost-history")
	case <-time.After(framework.Long):
		require.Fail(t, "a hub serves that does not know what ended", "%s", refused.Output)
	}

	dir := filepath.Join(t.TempDir(), "restored")
	out, err = restores(t, saved, "--data-dir", dir, "--replay", audit)
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "its audit log ends at event")
	out, err = restores(t, saved, "--data-dir", dir, "--replay", audit)
	require.Error(t, err, "%s", out)

	// Bob tries to get in from the first moment on.
	client, err := framework.NewClient(fmt.Sprintf("https://127.0.0.1:%d", port), filepath.Join(dir, "tls", "ca.crt"))
	require.NoError(t, err)
	served, tries := make(chan struct{}), sync.WaitGroup{}
	tries.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-served:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if a, err := client.TryOnce(asBob(s, cluster)[n%2]); err == nil && a.Code < http.StatusBadRequest {
				t.Errorf("bob gets %d in the restored hub: %s", a.Code, a.Raw)
				return
			}
		}
	})
	flags := []string{"--personal-orgs=false", "--deletion-grace", "1s", "--expired-workspace-grace", "1s"}
	killed := launch(t, dir, port, flags...)
	framework.Eventually(t, framework.Long, func() error {
		_, err := os.Stat(restore.ReportFile(dir))
		return err
	})
	killed.Kill()
	h = startHub(t, dir, port, flags...)
	for _, c := range asBob(s, cluster) {
		h.Do(t, c, http.StatusForbidden, http.StatusNotFound)
	}
	close(served)
	tries.Wait()

	h.Do(t, framework.Call{As: "frank", Method: http.MethodGet, Path: "/api/orgs/" + s.org, Org: s.org}, http.StatusForbidden, http.StatusNotFound)
	roles := func(c framework.Call) map[string]string {
		t.Helper()
		roles := map[string]string{}
		for _, item := range do(c).JSON["items"].([]any) {
			m := item.(map[string]any)
			roles[fmt.Sprint(m["scope"], " ", m["user"])] = fmt.Sprint(m["role"])
		}
		return roles
	}
	require.Equal(t, map[string]string{"org alice": "admin", "org carol": "member", "org erin": "admin", "org dave": "member"}, roles(inOrg(s, http.MethodGet, "/members", nil)))
	inside := roles(inWorkspace(s, http.MethodGet, "/members", nil))
	require.Equal(t, "member", inside["workspace dave"])
	require.NotContains(t, inside, "workspace bob")
	for name, code := range map[string]int{"revoked": http.StatusUnauthorized, "deleted": http.StatusUnauthorized, "kept": http.StatusOK} {
		framework.Eventually(t, framework.Long, func() error {
			got, err := enters(h, bots[name].secret, cluster)
			return framework.Check(err == nil && got == code, "the bot %s gets %d: %v", name, got, err)
		})
	}

	r := reportOf(t, h)
	require.Empty(t, r.Unknown)
	require.Empty(t, r.WithoutAdmin)
	lost := map[string]bool{}
	for _, l := range r.Lost {
		lost[l.What+" "+l.Object] = true
	}
	require.Contains(t, lost, "member grace")
	due := map[string]bool{}
	for _, p := range r.Purges {
		due[p.Kind+" "+p.Org+" "+p.Workspace] = true
	}
	require.Equal(t, map[string]bool{
		"workspace " + s.org + " " + early.ws: true, "workspace " + s.org + " " + late.ws: true, "organization " + other.org + " ": true,
	}, due)
	clean := func() {
		t.Helper()
		framework.Eventually(t, framework.Long, func() error {
			code, out := verifies(t, h.dir)
			return framework.Check(code == 0, "kedge-hub verify ends with %d: %s", code, out)
		})
	}
	clean()
	do(inWorkspace(early, http.MethodPost, "/undelete", nil))
	look := inWorkspace(late, http.MethodGet, "", nil)
	require.Contains(t, string(h.Do(t, look, http.StatusNotFound).Raw), "can be undeleted")
	out, err = restores(t, "--release", "--data-dir", h.dir)
	require.NoError(t, err, "%s", out)
	// Nobody has a Membership in what is purged.
	framework.Eventually(t, framework.Long, func() error {
		a, err := h.Try(look)
		return framework.Check(err == nil && a.Code == http.StatusForbidden, "what is due to be purged is there: %d %v", a.Code, err)
	})
	do(inWorkspace(early, http.MethodGet, "", nil))
	clean()
}
