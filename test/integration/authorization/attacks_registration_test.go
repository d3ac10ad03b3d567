package authorization

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// Three hubs of one platform run with the registration modes open, approval and closed.
func TestRegistration_saysWhoComesIn(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hub := func(registration string) *framework.Hub {
		return framework.StartHub(t, kcp, root, func(o *server.Options) {
			o.Registration, o.PersonalOrgs, o.AdminUsers = registration, true, []string{"heidi"}
		})
	}
	open, approval, closed := hub("open"), hub("approval"), hub("closed")
	me := func(as string) call { return call{As: as, Method: http.MethodGet, Path: "/api/users/me"} }
	orgs := func(as string) call { return call{As: as, Method: http.MethodGet, Path: "/api/orgs"} }
	settled := func(h *framework.Hub, as, field string) (last framework.Answer) {
		framework.Eventually(t, framework.Long, func() error {
			if last = h.Do(t, me(as), http.StatusOK); last.Text(field) == "" {
				return fmt.Errorf("no %s yet: %s", field, last.Raw)
			}
			return nil
		})
		return last
	}
	for _, name := range []string{"heidi", "alice"} {
		settled(open, name, "defaultWorkspace")
	}

	t.Run("closed: nobody new, and nothing of them is made", func(t *testing.T) {
		t.Parallel()
		for _, c := range []call{me("carol"), orgs("carol"), {As: "carol", Method: http.MethodPost, Path: "/api/users/me/undelete"}, {As: "carol", Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName":"Carol's"}`}} {
			a := closed.Do(t, c, http.StatusForbidden)
			require.Contains(t, a.Text("message"), "takes nobody new")
		}
		users, errOut, err := kcp.Kubectl(t, "", root+":users", "get", "users.tenancy.kedge.faros.sh", "-o", "name")
		require.NoError(t, err, errOut)
		require.Contains(t, users, "/alice\n")
		require.NotContains(t, users, "carol")
		closed.Do(t, orgs("alice"), http.StatusOK)
	})
	t.Run("a platform admin comes in, waiting or new, and nobody with them", func(t *testing.T) {
		t.Parallel()
		root := framework.NewRoot()
		waits := framework.StartHub(t, kcp, root, func(o *server.Options) { o.Registration = "approval" })
		for _, name := range []string{"dave", "grace", "erin", "frank"} {
			require.Equal(t, "Pending", waits.Do(t, me(name), http.StatusOK).Text("registration"))
		}
		waits.Stop(t)
		for _, c := range []struct{ registration, waiting, newcomer, other string }{
			{"approval", "dave", "heidi", "grace"}, {"closed", "erin", "wendy", "frank"},
		} {
			// The operator names the platform admins only after one of them has signed up.
			h := framework.StartHub(t, kcp, root, func(o *server.Options) {
				o.Registration, o.AdminUsers = c.registration, []string{c.waiting, c.newcomer}
			})
			registers := func(name, registration string) call {
				body := map[string]string{"registration": registration}
				return call{As: c.newcomer, Method: http.MethodPatch, Path: "/api/admin/users/" + name, Body: body}
			}
			for _, name := range []string{c.waiting, c.newcomer} {
				h.Do(t, call{As: name, Method: http.MethodGet, Path: "/api/admin/users"}, http.StatusOK)
				require.Equal(t, "Approved", h.Do(t, me(name), http.StatusOK).Text("registration"))
			}
			require.Equal(t, "Pending", h.Do(t, me(c.other), http.StatusOK).Text("registration"))
			h.Do(t, orgs(c.other), http.StatusForbidden)
			h.Do(t, registers(c.other, "Approved"), http.StatusOK)
			h.Do(t, orgs(c.other), http.StatusOK)
			h.Do(t, registers(c.waiting, "Rejected"), http.StatusOK)
			h.Do(t, orgs(c.waiting), http.StatusForbidden)
			h.Stop(t)
		}
	})
	t.Run("approval: an Org and no more, until a platform admin says so", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, "Pending", approval.Do(t, me("bob"), http.StatusOK).Text("registration"))
		org := ""
		framework.Eventually(t, framework.Long, func() error {
			uuid, errOut, err := kcp.Kubectl(t, "", root+":users", "get", "users.tenancy.kedge.faros.sh", "bob", "-o", "jsonpath={.status.personalOrg}")
			if org = uuid; err == nil && org == "" {
				err = errors.New("no personal organization yet")
			}
			if err != nil {
				err = fmt.Errorf("%w %s", err, errOut)
			}
			return err
		})
		pending := approval.Do(t, me("bob"), http.StatusOK)
		require.Empty(t, pending.Text("personalOrg"), "they cannot read it yet")
		require.Equal(t, "Progressing", pending.Text("phase"))
		approve := func(as, registration string, code int) {
			approval.Do(t, call{As: as, Method: http.MethodPatch, Path: "/api/admin/users/bob", Body: map[string]string{"registration": registration}}, code)
		}
		for _, h := range []*framework.Hub{open, approval, closed} {
			for _, c := range []call{
				orgs("bob"), {As: "bob", Method: http.MethodPatch, Path: "/api/users/me", Body: `{"displayName":"Bob"}`},
				{As: "bob", Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName":"Bob's"}`},
				{As: "bob", Method: http.MethodPost, Path: "/api/orgs/" + org + "/workspaces", Org: org, Body: `{"displayName":"Bob's"}`},
			} {
				require.Contains(t, h.Do(t, c, http.StatusForbidden).Text("message"), "approval", "%s %s", c.Method, c.Path)
			}
		}
		approve("bob", "Approved", http.StatusForbidden)
		approve("alice", "Approved", http.StatusForbidden)
		require.Empty(t, approval.Do(t, me("bob"), http.StatusOK).Text("defaultWorkspace"))

		approve("heidi", "Approved", http.StatusOK)
		ws := settled(approval, "bob", "defaultWorkspace").Text("defaultWorkspace")
		cluster := approval.Do(t, call{As: "bob", Method: http.MethodGet, Path: "/api/orgs/" + org + "/workspaces/" + ws, Org: org, Workspace: ws}, http.StatusOK).Text("clusterID")
		namespaces := call{As: "bob", Method: http.MethodGet, Path: "/clusters/" + cluster + "/api/v1/namespaces"}
		framework.Eventually(t, framework.Long, func() error {
			a, err := approval.Try(namespaces)
			if err == nil && a.Code != http.StatusOK {
				err = fmt.Errorf("%d %s", a.Code, a.Raw)
			}
			return err
		})
		// A platform admin can reject an approved user. Then kcp refuses the user, too.
		require.Equal(t, http.StatusOK, kcp.Straight(t, "bob", cluster, "/api/v1/namespaces"))
		approve("heidi", "Rejected", http.StatusOK)
		require.Contains(t, approval.Do(t, namespaces, http.StatusForbidden).Text("message"), "rejected")
		framework.Eventually(t, framework.Long, func() error {
			if code := kcp.Straight(t, "bob", cluster, "/api/v1/namespaces"); code != http.StatusForbidden {
				return fmt.Errorf("kcp still says %d", code)
			}
			return nil
		})
	})
}
