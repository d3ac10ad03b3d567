package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// signsIn makes a session of the portal for a person with a static token, and returns its cookie and its name.
func signsIn(t *testing.T, h *hub, person string) (cookie, name string) {
	t.Helper()
	form := strings.NewReader(url.Values{"token": {framework.Token(person)}}.Encode())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/auth/token-login", form)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", h.URL)
	client := &http.Client{Transport: h.HTTP.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusSeeOther, answer.StatusCode)
	for _, c := range answer.Cookies() {
		if c.Value != "" {
			cookie = c.Name + "=" + c.Value
		}
	}
	// The list is that of the cache, and a login does not wait for it.
	framework.Eventually(t, framework.Long, func() error {
		items := h.Do(t, framework.Call{As: person, Method: http.MethodGet, Path: "/api/users/me/sessions"}, http.StatusOK).JSON["items"].([]any)
		if len(items) == 1 {
			name = fmt.Sprint(items[0].(map[string]any)["id"])
		}
		return framework.Check(len(items) == 1, "%d sessions", len(items))
	})
	return cookie, name
}

// TestRestore_endsEachKindOfRight compares what the hub and kcp itself say after a restore with what they said before the
// disk was lost.
func TestRestore_endsEachKindOfRight(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	flags := []string{"--personal-orgs=false", "--admin-user", "heidi", "--ci-issuer", "https://127.0.0.1:1"}
	h := startHub(t, t.TempDir(), port, flags...)
	do := func(c framework.Call) framework.Answer {
		t.Helper()
		return h.Do(t, c, http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent)
	}
	me := func(person string) framework.Call {
		return framework.Call{As: person, Method: http.MethodGet, Path: "/api/users/me"}
	}
	for _, person := range framework.People() {
		do(me(person))
	}
	s := &scene{a: "alice", org: h.CreateOrg(t, "alice", "ACME")}
	made := h.CreateWorkspace(t, "alice", s.org, "Work")
	s.ws, s.key = made.Text("uuid"), "bot"
	cluster := made.Text("clusterID")
	about := func(person string) *scene { of := *s; of.b = person; return &of }
	for _, person := range []string{"bob", "carol", "dave", "erin", "frank", "grace"} {
		do(addTo(inOrg, "member", false)(about(person)))
	}
	do(addTo(inWorkspace, "admin", true)(about("bob")))
	for _, person := range []string{"erin", "frank"} {
		do(addTo(inWorkspace, "member", false)(about(person)))
	}
	s.bot = do(createBot(s)).Text("uuid")
	trust := do(onBot(http.MethodPost, "/trust", map[string]any{"issuer": "https://127.0.0.1:1", "claims": map[string]string{"sub": "job"}})(s)).Text("id")
	invited := do(inOrg(s, http.MethodPost, "/invitations", map[string]string{"role": "member"})).Text("id")
	cookie, session := signsIn(t, h, "bob")
	gone := &scene{a: "alice", b: "bob", org: h.CreateOrg(t, "alice", "Deleted before")}
	do(addTo(inOrg, "admin", false)(gone))
	do(inOrg(gone, http.MethodDelete, "", nil))
	h.Enters(t, "frank", cluster)
	saved := backUp(t, h)

	do(framework.Call{As: "bob", Method: http.MethodDelete, Path: "/api/users/me/sessions/" + session})
	do(framework.Registering("frank", "Rejected"))
	do(framework.Registering("erin", "Pending"))
	do(framework.Call{As: "grace", Method: http.MethodDelete, Path: "/api/users/grace"})
	do(inWorkspace(s, http.MethodPatch, "/members/bob", map[string]any{"sudo": false}))
	do(inOrg(s, http.MethodPatch, "/members/dave", map[string]any{"expiresAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}))
	do(inOrg(s, http.MethodPatch, "/members/carol", map[string]any{"expiresAt": time.Now().Add(63 * time.Second).UTC().Format(time.RFC3339)}))
	do(onBot(http.MethodDelete, "/trust/"+trust, nil)(s))
	do(inOrg(s, http.MethodDelete, "/invitations/"+invited, nil))
	do(inOrg(gone, http.MethodPost, "/undelete", nil))
	framework.Eventually(t, framework.Long, func() error {
		a, err := h.Try(remove(inOrg, "")(gone))
		return framework.Check(err == nil && a.Code/100 == 2, "bob is not removed: %d %v", a.Code, err)
	})

	// rights is what people and bots have, by the answers of the hub and of kcp.
	rights := func(h *hub) (map[string]string, error) {
		got := map[string]string{}
		ask := func(what string, c framework.Call, text func(framework.Answer) any) error {
			a, err := h.Try(c)
			if err == nil {
				got[what] = fmt.Sprint(a.Code, " ", text(a))
			}
			return err
		}
		nothing := func(framework.Answer) any { return nil }
		byCookie := framework.Call{Method: http.MethodGet, Path: "/api/users/me", Header: http.Header{"Cookie": {cookie}}}
		if err := ask("bob by cookie", byCookie, nothing); err != nil {
			return nil, err
		}
		kcp := &framework.KCP{Kubeconfig: filepath.Join(h.dir, "kcp", "admin.kubeconfig")}
		for _, person := range framework.People() {
			inTheOrg := framework.Call{As: person, Method: http.MethodGet, Path: "/api/orgs/" + s.org, Org: s.org}
			inDeleted := framework.Call{As: person, Method: http.MethodGet, Path: "/api/orgs/" + gone.org, Org: gone.org}
			inCluster := framework.Call{As: person, Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"}
			for what, c := range map[string]framework.Call{
				" at all": me(person), " in the org": inTheOrg, " in the deleted one": inDeleted, " in the cluster": inCluster,
			} {
				if err := ask(person+what, c, nothing); err != nil {
					return nil, err
				}
			}
			for _, path := range []string{"/api/v1/namespaces", "/apis/rbac.authorization.k8s.io/v1/clusterroles"} {
				got[person+" in kcp "+path] = fmt.Sprint(kcp.Straight(t, person, cluster, path))
			}
		}
		bindings, err := kcp.Platform(t, "root:kedge").BindingsIn(t, cluster)
		if err != nil {
			return nil, err
		}
		got["bindings"] = strings.Join(slices.Sorted(maps.Keys(bindings)), " ")
		fields := func(names ...string) func(framework.Answer) any {
			return func(a framework.Answer) any {
				var rows []string
				items, _ := a.JSON["items"].([]any)
				for _, item := range items {
					row := ""
					for _, name := range names {
						row += fmt.Sprint(item.(map[string]any)[name], " ")
					}
					rows = append(rows, row)
				}
				slices.Sort(rows)
				return strings.Join(rows, "; ")
			}
		}
		for what, c := range map[string]framework.Call{
			"members": inOrg(s, http.MethodGet, "/members", nil), "members of the workspace": inWorkspace(s, http.MethodGet, "/members", nil),
		} {
			if err := ask(what, c, fields("user", "scope", "role", "sudo", "expiresAt")); err != nil {
				return nil, err
			}
		}
		if err := ask("invitations", inOrg(s, http.MethodGet, "/invitations", nil), fields("id", "state")); err != nil {
			return nil, err
		}
		return got, ask("trust", onBot(http.MethodGet, "/trust", nil)(s), fields("id"))
	}
	var want map[string]string
	framework.Eventually(t, framework.Long, func() (err error) {
		if want, err = rights(h); err != nil {
			return err
		}
		return framework.Check(strings.HasPrefix(want["carol in the org"], "403") && want["carol in kcp /api/v1/namespaces"] == "403" && want["erin in kcp /api/v1/namespaces"] == "403",
			"not everything has ended: %v", want)
	})
	require.Contains(t, want["bob by cookie"], "401")
	require.Contains(t, want["trust"], "200")
	h.Kill()
	// The records database is what is left of the lost hub.
	lost := filepath.Join(t.TempDir(), "lost")
	require.NoError(t, os.Rename(filepath.Join(h.dir, "records"), lost))
	require.NoError(t, os.RemoveAll(h.dir))

	dir := filepath.Join(t.TempDir(), "restored")
	out, err := restores(t, saved, "--data-dir", dir, "--replay-database", filepath.Join(lost, "records.db"))
	require.NoError(t, err, "%s", out)
	h = startHub(t, dir, port, flags...)
	got, err := rights(h)
	require.NoError(t, err)
	r := reportOf(t, h)
	require.Empty(t, r.Impossible)
	require.Empty(t, r.Unknown)
	require.True(t, strings.HasPrefix(got["bob by cookie"], "401"), got["bob by cookie"])
	do(inOrg(gone, http.MethodPost, "/undelete", nil))
	h.Do(t, framework.Call{As: "bob", Method: http.MethodGet, Path: "/api/orgs/" + gone.org, Org: gone.org}, http.StatusForbidden, http.StatusNotFound)
	// What kcp caches follows.
	framework.Eventually(t, framework.Long, func() error {
		if got, err = rights(h); err != nil {
			return err
		}
		for what, is := range want {
			if got[what] != is {
				return fmt.Errorf("%s: %s, and before the disk was lost: %s", what, got[what], is)
			}
		}
		return nil
	})
	framework.Eventually(t, framework.Long, func() error {
		code, out := verifies(t, h.dir)
		return framework.Check(code == 0, "kedge-hub verify ends with %d: %s", code, out)
	})
}
