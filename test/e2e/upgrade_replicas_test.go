package e2e

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// TestUpgrade_runsReplicasOfTwoVersions runs the version before beside today's, in front of one external kcp, as during a
// rolling upgrade: first with the older one as leader, then with the newer one.
func TestUpgrade_runsReplicasOfTwoVersions(t *testing.T) {
	t.Parallel()
	before := versionBefore(t)
	today, err := framework.Bin("kedge-hub")
	require.NoError(t, err)
	k, err := framework.StartKCP(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(k.Kill)
	start := func(program string) *hub {
		return startProgram(t, program, t.TempDir(), freePort(t),
			"--kcp-kubeconfig", k.Kubeconfig, "--policy-enforcement-window", "0s", "--personal-orgs=false")
	}
	older := start(before)
	older.leads(t)
	newer := start(today)
	r := &replicas{kcp: k, people: framework.People()[1:9]}
	for _, person := range framework.People() {
		older.Do(t, framework.Call{As: person, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	}
	r.org = older.CreateOrg(t, "alice", "ACME")
	r.agree(t, older, newer)

	// What only the newer version knows stays when the older one writes the same object, and counts once the newer leads.
	mapped := newer.CreateOrg(t, "alice", "Mapped")
	group := newer.Do(t, framework.InOrg("alice", http.MethodPost, mapped, "/groups", map[string]string{"group": "dev", "role": "member"}), http.StatusCreated)
	framework.Eventually(t, framework.Long, func() error {
		a, err := older.Try(framework.InOrg("alice", http.MethodPatch, mapped, "", map[string]string{"displayName": "Renamed"}))
		return framework.Check(err == nil && a.Code == http.StatusOK, "%d %s: %v", a.Code, a.Raw, err)
	})

	require.NoError(t, older.Stop(), "%s", older.Output)
	newer.leads(t)
	older = start(before)
	r.agree(t, older, newer)
	a := newer.Do(t, framework.InOrg("alice", http.MethodGet, mapped, "/groups", nil), http.StatusOK)
	require.Contains(t, string(a.Raw), group.Text("id"))
	for _, h := range []*hub{newer, older} {
		framework.Eventually(t, framework.Long, func() error {
			a, err := h.Try(framework.InOrg("wendy", http.MethodGet, mapped, "", nil))
			return framework.Check(err == nil && a.Text("displayName") == "Renamed", "the group does not let wendy in: %d %v", a.Code, err)
		})
	}
	for _, h := range []*hub{older, newer} {
		framework.Eventually(t, framework.Long, func() error {
			code, out := verifiesWith(t, h.program, "--kcp-kubeconfig", k.Kubeconfig, "--personal-orgs=false")
			return framework.Check(code == 0 || h == older && policiesAlone(out), "kedge-hub verify ends with %d: %s", code, out)
		})
		require.NoError(t, h.Stop(), "%s", h.Output)
	}
}

// policiesAlone reports whether verify names admission policies and nothing else. The newer version leads and has
// written its own, which the older one does not know.
func policiesAlone(out string) bool {
	differs := regexp.MustCompile(`(?m)^[a-z]+ .* in root:.*$`).FindAllString(out, -1)
	others := slices.DeleteFunc(slices.Clone(differs), func(line string) bool { return strings.HasPrefix(line, "policy ") })
	return len(others) == 0 && strings.Contains(out, fmt.Sprintf(", %d differences", len(differs)))
}

// leads waits until a hub is the leader.
func (h *hub) leads(t *testing.T) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		a, err := (&framework.Client{URL: h.metrics, HTTP: http.DefaultClient}).Try(framework.Call{Method: http.MethodGet})
		return framework.Check(err == nil && strings.Contains(string(a.Raw), "\nkedge_leader 1\n"), "it does not lead: %v", err)
	})
}

// replicas is an Organization of alice that two hubs serve.
type replicas struct {
	kcp *framework.KCP
	org string
	// people have not been in the Organization yet.
	people []string
}

// agree has each of two hubs make and end rights, and requires that the other one follows.
func (r *replicas) agree(t *testing.T, one, two *hub) {
	t.Helper()
	r.follows(t, one, two)
	r.follows(t, two, one)
}

// follows makes a Workspace, a member and a bot at the hub at. They work at the other one, and end there when they end.
func (r *replicas) follows(t *testing.T, at, other *hub) {
	t.Helper()
	made := at.CreateWorkspace(t, "alice", r.org, "Work")
	cluster := made.Text("clusterID")
	s := &scene{a: "alice", b: r.people[0], org: r.org, ws: made.Text("uuid"), key: cluster}
	r.people = r.people[1:]
	framework.Eventually(t, framework.Long, func() error {
		return ready(other, inWorkspace(s, http.MethodGet, "", nil))
	})
	at.Do(t, addTo(inOrg, "admin", false)(s), http.StatusCreated)
	other.Enters(t, s.b, cluster)
	s.bot = at.Do(t, createBot(s), http.StatusCreated).Text("uuid")
	issued := at.Do(t, onBot(http.MethodPost, "/tokens", map[string]any{})(s), http.StatusCreated)
	s.token, s.secret = issued.Text("id"), issued.Text("token")
	framework.Eventually(t, framework.Long, func() error {
		code, err := enters(other, s.secret, cluster)
		return framework.Check(err == nil && code == http.StatusOK, "the bot gets %d: %v", code, err)
	})

	ended := map[string]<-chan time.Time{}
	for who, token := range map[string]string{s.b: framework.Token(s.b), "the bot": s.secret} {
		ended[who] = other.watchEnds(t, token, cluster)
	}
	ends := map[string]framework.Call{
		s.b: remove(inOrg, "")(s), "the bot": onBot(http.MethodDelete, "/tokens/"+s.token, nil)(s),
	}
	for who, c := range ends {
		at.Do(t, c, http.StatusNoContent)
		answered := time.Now()
		select {
		case end := <-ended[who]:
			t.Logf("the watch of %s ends %s after the answer of the other version", who, end.Sub(answered).Round(time.Millisecond))
		case <-time.After(framework.Long):
			require.Fail(t, "a watch goes on", "of %s", who)
		}
	}
	for _, h := range []*hub{at, other} {
		h.Do(t, framework.InOrg(s.b, http.MethodGet, r.org, "", nil), http.StatusForbidden, http.StatusNotFound)
		for token, want := range map[string]int{framework.Token(s.b): http.StatusForbidden, s.secret: http.StatusUnauthorized} {
			code, err := enters(h, token, cluster)
			require.NoError(t, err)
			require.Equal(t, want, code)
		}
	}
	r.kcp.Refuses(t, s.b, cluster)
}

// watchEnds opens a watch and returns when it has ended.
func (h *hub) watchEnds(t *testing.T, token, cluster string) <-chan time.Time {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"/clusters/"+cluster+"/api/v1/configmaps?watch=true", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	watch, err := h.HTTP.Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, watch.StatusCode, fmt.Sprint(watch.Header))
	ended := make(chan time.Time, 1)
	go func() {
		_, _ = io.Copy(io.Discard, watch.Body)
		_ = watch.Body.Close()
		ended <- time.Now()
	}()
	return ended
}
