package rights

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// elevation is a Workspace, seen by two hubs, in which dave, a member, asks for rights, and bob and erin are admins.
type elevation struct {
	hubs             []*framework.Hub
	p                platform
	org, ws, cluster string
}

func newElevation(t *testing.T, hubs []*framework.Hub) *elevation {
	t.Helper()
	e := &elevation{hubs: hubs, p: newPlatform(t, hubs[0].Options.RootWorkspace)}
	framework.SignUp(t, e.hubs[0], "alice", "bob", "dave", "erin")
	e.org = e.hubs[0].CreateOrg(t, "alice", "ACME")
	made := e.hubs[0].CreateWorkspace(t, "alice", e.org, "prod")
	e.ws, e.cluster = made.Text("uuid"), made.Text("clusterID")
	for user, role := range map[string]string{"bob": "admin", "erin": "admin", "dave": "member"} {
		e.hubs[0].Do(t, e.call("alice", http.MethodPost, "/members", framework.Adding(user, role)), http.StatusCreated)
	}
	e.hubs[0].Enters(t, "dave", e.cluster)
	return e
}

func (e *elevation) call(as, method, below string, body any) call {
	return framework.InWorkspace(as, method, e.org, e.ws, below, body)
}

// asks has dave ask for rights, and returns the ID of the request.
func (e *elevation) asks(t testing.TB, kind, lasts, reason string) string {
	t.Helper()
	body := map[string]string{"kind": kind, "for": lasts, "reason": reason}
	return e.hubs[0].Do(t, e.call("dave", http.MethodPost, "/requests", body), http.StatusCreated).Text("id")
}

// decides has somebody decide about a request of dave at the second hub, when that knows of it.
func (e *elevation) decides(t testing.TB, as, id, what string, code int) (a framework.Answer) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() (err error) {
		a, err = e.hubs[1].Try(e.call(as, http.MethodPost, "/requests/"+id+"/"+what, map[string]string{"note": "the incident"}))
		return framework.Check(err == nil && a.Code == code, "%s %s: %v %d %s", as, what, err, a.Code, a.Raw)
	})
	return a
}

// states are those of the requests, by ID, as bob sees them at the second hub.
func (e *elevation) states(t testing.TB) map[string]string {
	t.Helper()
	states := map[string]string{}
	items, _ := e.hubs[1].Do(t, e.call("bob", http.MethodGet, "/requests", nil), http.StatusOK).JSON["items"].([]any)
	for _, item := range items {
		r, _ := item.(map[string]any)
		states[fmt.Sprint(r["id"])] = fmt.Sprint(r["state"])
	}
	return states
}

// makes has dave create a ClusterRole with kubectl as what he was approved for.
func (e *elevation) makes(t testing.TB, hub *framework.Hub, name string, sudo bool) (errOut string, err error) {
	args := []string{"create", "clusterrole", name, "--verb=get", "--resource=secrets"}
	if sudo {
		args = append([]string{"--as", "dave", "--as-group", tenancy.SudoGroup(e.ws)}, args...)
	}
	_, errOut, err = hub.Kubectl(t, "dave", e.cluster, args...)
	return errOut, err
}

// events are those of both hubs.
func (e *elevation) events(t testing.TB) (all []audit.Event) {
	for _, hub := range e.hubs {
		file := hub.Options.AuditLogFile
		if _, err := os.Stat(file); err == nil {
			all = append(all, framework.AuditEvents(t, file)...)
		}
	}
	return all
}

func TestElevation_worksWithKubectlUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	e := newElevation(t, framework.StartHubs(t, kcp, framework.NewRoot(), 2, func(o *server.Options) {
		o.AuditLogFile = filepath.Join(t.TempDir(), "audit.jsonl")
	}))
	for _, hub := range e.hubs {
		errOut, err := e.makes(t, hub, "early", true)
		require.True(t, forbidden(t, errOut, err), "before the approval")
	}
	id := e.asks(t, "sudo", "1h", "the disk is full")
	for _, hub := range e.hubs {
		errOut, err := e.makes(t, hub, "asked", true)
		require.True(t, forbidden(t, errOut, err), "a request gives nothing")
	}
	e.decides(t, "bob", id, "approve", http.StatusOK)
	for i, hub := range e.hubs {
		framework.Eventually(t, framework.Long, func() error {
			errOut, err := e.makes(t, hub, fmt.Sprint("made-", i), true)
			return framework.Check(err == nil, "%v %s", err, errOut)
		})
		errOut, err := e.makes(t, hub, "plain", false)
		require.True(t, forbidden(t, errOut, err), "sudo is asked for in each request")
	}

	e.decides(t, "erin", id, "revoke", http.StatusOK)
	errOut, err := e.makes(t, e.hubs[1], "late", true)
	require.True(t, forbidden(t, errOut, err), "at the hub that answered")
	framework.Eventually(t, framework.Long, func() error {
		_, err := e.makes(t, e.hubs[0], "late-there", true)
		return framework.Check(err != nil, "sudo works at the other hub")
	})
	require.Equal(t, []string{tenancy.ClusterRoleMember}, e.p.RolesIn(t, e.cluster, "dave"), "kcp has no more")

	// The log says who asked why, who approved, and which requests used it.
	var asked, approved, revoked, used int
	for _, event := range e.events(t) {
		facts := event.Facts
		if event.Stage != audit.StageOutcome || facts == nil || facts.Request != id {
			continue
		}
		switch event.Action {
		case "POST /api/orgs/{org}/workspaces/{ws}/requests":
			asked++
			require.Equal(t, "dave", event.Actor.User)
			require.Equal(t, "the disk is full", facts.Reason)
		case "POST /api/orgs/{org}/workspaces/{ws}/requests/{request}/approve":
			approved++
			require.Equal(t, "bob dave the incident", event.Actor.User+" "+event.Object+" "+facts.Reason)
		case "POST /api/orgs/{org}/workspaces/{ws}/requests/{request}/revoke":
			revoked++
			require.Equal(t, "erin dave", event.Actor.User+" "+event.Object)
			require.NotNil(t, facts.Receipt)
		case "kubernetes create":
			if event.Code == http.StatusCreated {
				used++
				require.True(t, facts.Elevated)
				require.Equal(t, "dave", event.Actor.User)
			}
		}
	}
	require.Equal(t, []int{1, 1, 1, len(e.hubs)}, []int{asked, approved, revoked, used})
}

func TestElevation_isRefusedFromThoseWhoMayNotDecide(t *testing.T) {
	t.Parallel()
	e := newElevation(t, kcp.Shared(t, 2))
	id := e.asks(t, "admin", "1h", "a migration")
	e.decides(t, "dave", id, "approve", http.StatusForbidden)
	// erin's approval is on its way when she is no admin any more.
	e.hubs[0].Do(t, e.call("alice", http.MethodPatch, "/members/erin", framework.WithRole("member")), http.StatusOK)
	a, err := e.hubs[1].Try(e.call("erin", http.MethodPost, "/requests/"+id+"/approve", map[string]string{}))
	require.NoError(t, err)
	require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, a.Code, "%s", a.Raw)
	held, err := e.p.MembershipsOf(t, e.org)
	require.NoError(t, err)
	require.Empty(t, held[tenancy.MembershipName("dave", e.ws)].Spec.Extra)

	// dave withdraws it, and it cannot be approved then. The control is a request that is approved.
	e.decides(t, "dave", id, "withdraw", http.StatusOK)
	e.decides(t, "bob", id, "approve", http.StatusConflict)
	again := e.asks(t, "admin", "1h", "a migration")
	e.decides(t, "bob", again, "approve", http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		errOut, err := e.makes(t, e.hubs[0], "made", false)
		return framework.Check(err == nil, "%v %s", err, errOut)
	})
	require.Equal(t, map[string]string{id: "Withdrawn", again: "Approved"}, e.states(t))

	// What he has for a while he cannot give himself by hand: it would outlive a revocation.
	end := time.Now().Add(30 * time.Minute).UTC().Format(time.RFC3339)
	for _, more := range []string{`"role":"admin"`, `"role":"admin","sudo":true`, `"role":"member","sudo":true`} {
		own := e.call("dave", http.MethodPatch, "/members/dave", fmt.Sprintf(`{%s,"expiresAt":%q}`, more, end))
		require.Equal(t, []string{tenancy.CauseOwnRight}, framework.CausesOf(t, e.hubs[0].Do(t, own, http.StatusForbidden)), more)
	}
	e.decides(t, "bob", again, "revoke", http.StatusOK)
	require.Equal(t, []string{tenancy.ClusterRoleMember}, e.p.RolesIn(t, e.cluster, "dave"))
}

func TestElevation_endsByItself(t *testing.T) {
	t.Parallel()
	e := newElevation(t, kcp.Shared(t, 2))
	id := e.asks(t, "admin", "1m", "a look")
	a := e.decides(t, "bob", id, "approve", http.StatusOK)
	ends, err := time.Parse(time.RFC3339, a.Text("endsAt"))
	require.NoError(t, err)
	framework.Eventually(t, framework.Long, func() error {
		errOut, err := e.makes(t, e.hubs[0], "made", false)
		return framework.Check(err == nil, "%v %s", err, errOut)
	})
	<-time.After(time.Until(ends))
	for _, hub := range e.hubs {
		errOut, err := e.makes(t, hub, "late", false)
		require.True(t, forbidden(t, errOut, err), "after %s", ends)
	}
	framework.Eventually(t, framework.Long, func() error {
		held, err := e.p.MembershipsOf(t, e.org)
		if err != nil {
			return err
		}
		m := held[tenancy.MembershipName("dave", e.ws)]
		return framework.Check(len(m.Spec.Extra) == 0 && m.Spec.Role == v1alpha1.RoleMember, "%v", m.Spec)
	})
	framework.Eventually(t, framework.Long, func() error {
		states := e.states(t)
		return framework.Check(states[id] == "Ended", "%v", states)
	})
}
