package lifecycle

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/test/framework"
)

// deletable is an Org and a Workspace with members in every role.
type deletable struct {
	hubs             []*framework.Hub
	p                platform
	org, ws, cluster string
	// own is the personal Org of alice; carol is an admin of it, too.
	own string
}

// newDeletable makes alice and carol admins of the Org, bob a member of the Org and of
// the Workspace, and dave an admin of the Workspace only.
func newDeletable(t *testing.T) deletable {
	t.Helper()
	root := framework.NewRoot()
	s := deletable{hubs: framework.StartHubs(t, kcp, root, 2, personal, framework.WithAdmin), p: newPlatform(t, root)}
	hub := s.hubs[0]
	framework.SignUp(t, hub, "alice", "bob", "carol", "dave", "heidi")
	s.org = hub.CreateOrg(t, "alice", "ACME")
	ws := hub.CreateWorkspace(t, "alice", s.org, "dev")
	s.ws, s.cluster = ws.Text("uuid"), ws.Text("clusterID")
	s.own, _, _ = arrived(t, hub, "alice")
	for _, c := range []call{
		framework.InOrg("alice", http.MethodPost, s.org, "/members", framework.Adding("carol", "admin")),
		framework.InOrg("alice", http.MethodPost, s.org, "/members", framework.Adding("bob", "member")),
		framework.InWorkspace("alice", http.MethodPost, s.org, s.ws, "/members", framework.Adding("bob", "member")),
		framework.InWorkspace("alice", http.MethodPost, s.org, s.ws, "/members", framework.Adding("dave", "admin")),
		framework.InOrg("alice", http.MethodPost, s.own, "/members", framework.Adding("carol", "admin")),
	} {
		hub.Do(t, c, http.StatusCreated)
	}
	for _, hub := range s.hubs {
		framework.Eventually(t, framework.Long, func() error { return s.shown(hub, true, true) })
	}
	for _, name := range []string{"alice", "bob", "carol", "dave", "heidi"} {
		arrived(t, hub, name)
	}
	s.p.Settles(t, true)
	return s
}

func (s deletable) shown(hub *framework.Hub, orgLives, wsLives bool) error {
	for _, as := range []string{"alice", "bob"} {
		if err := shownAs(hub, as, s.org, s.ws, s.cluster, orgLives, wsLives); err != nil {
			return err
		}
	}
	return nil
}

// O-8, O-13: what is deleted is hidden everywhere and comes back whole. The second part begins with what the first one
// has undeleted.
func TestO13_WhatIsDeletedIsHiddenEverywhereAndComesBackWhole(t *testing.T) {
	t.Parallel()
	s := newDeletable(t)
	t.Run("O-13: an Org and a Workspace", s.comeBack)
	t.Run("O-8: a person", s.personComesBack)
}

// comeBack is O-13: a deleted object is hidden at once from everybody, on every hub and on every
// route. An undelete before the end of the grace period restores all rights. Only those
// with the right to delete can undelete.
func (s deletable) comeBack(t *testing.T) {
	hub, other := s.hubs[0], s.hubs[1]
	_, errOut, err := hub.Kubectl(t, "bob", s.cluster, "create", "configmap", "kept")
	require.NoError(t, err, errOut)
	rights := map[string]map[string]string{}
	for _, name := range []string{"alice", "bob", "carol", "dave"} {
		rights[name] = s.p.BindingVersions(t, s.cluster, name)
		require.NotEmpty(t, rights[name])
	}
	workspace := func(as, method, below string) call { return framework.InWorkspace(as, method, s.org, s.ws, below, nil) }
	org := func(as, method, below string) call { return framework.InOrg(as, method, s.org, below, nil) }
	for _, c := range []struct {
		kind, name string
		call       func(as, method, below string) call
		orgLives   bool
		// may lists the people with the right to delete and undelete the object.
		may, mayNot []string
	}{
		{"Workspace", s.ws, workspace, true, []string{"dave", "carol", "alice"}, []string{"bob", "heidi", "erin"}},
		{"Organization", s.org, org, false, []string{"carol", "alice"}, []string{"bob", "dave", "heidi", "erin"}},
	} {
		for i, as := range c.may {
			back := c.may[(i+1)%len(c.may)]
			for _, no := range c.mayNot {
				hub.Do(t, c.call(no, http.MethodDelete, ""), http.StatusForbidden)
			}
			began := time.Now()
			deleted := hub.Do(t, c.call(as, http.MethodDelete, ""), http.StatusOK)
			graceOf(t, deleted.JSON, defaultGrace)
			require.Equal(t, "Terminating", deleted.Text("phase"))
			// The hub that answered the DELETE hides the object at once; the other hub
			// follows.
			require.NoError(t, s.shown(hub, c.orgLives, false))
			framework.Eventually(t, framework.Long, func() error { return s.shown(other, c.orgLives, false) })
			t.Logf("%s deleted by %s, and hidden on two hubs after %s", c.kind, as, time.Since(began).Round(time.Millisecond))
			kcp.Refuses(t, "bob", s.cluster)
			hub.Do(t, c.call(as, http.MethodDelete, ""), http.StatusNotFound)
			listed := pending(t, other)
			require.Len(t, listed, 1)
			graceOf(t, listed[c.kind+"/"+c.name], defaultGrace)
			require.Equal(t, false, listed[c.kind+"/"+c.name]["purging"])
			hub.Do(t, call{As: as, Method: http.MethodGet, Path: "/api/admin/deletions"}, http.StatusForbidden)

			if i == len(c.may)-1 {
				// An undelete succeeds one minute before the grace period ends.
				s.p.age(t, "", s.org, map[bool]string{true: s.ws}[c.orgLives], time.Now().Add(time.Minute-defaultGrace))
			}
			for _, no := range c.mayNot {
				other.Do(t, c.call(no, http.MethodPost, "/undelete"), http.StatusForbidden)
			}
			restored := other.Do(t, c.call(back, http.MethodPost, "/undelete"), http.StatusOK)
			require.Equal(t, "Ready", restored.Text("phase"), "%s", restored.Raw)
			require.NotContains(t, restored.JSON, "purgeAt")
			other.Do(t, c.call(back, http.MethodGet, ""), http.StatusOK)
			for _, hub := range s.hubs {
				framework.Eventually(t, framework.Long, func() error { return s.shown(hub, true, true) })
			}
			for name, before := range rights {
				require.NoError(t, unlike(before, s.p.BindingVersions(t, s.cluster, name)), "%s has what they had", name)
			}
			out, errOut, err := other.Kubectl(t, "bob", s.cluster, "get", "configmap", "kept", "-o", "name")
			require.NoError(t, err, errOut)
			require.Equal(t, "configmap/kept\n", out)
			require.Empty(t, pending(t, hub))
		}
	}
	// Only the owner can delete a personal Organization. Its other admins cannot.
	require.Equal(t, "admin", hub.Do(t, framework.InOrg("carol", http.MethodGet, s.own, "", nil), http.StatusOK).Text("role"))
	hub.Do(t, framework.InOrg("carol", http.MethodDelete, s.own, "", nil), http.StatusForbidden)
	hub.Do(t, framework.InOrg("alice", http.MethodDelete, s.own, "", nil), http.StatusOK)
	hub.Do(t, framework.InOrg("carol", http.MethodPost, s.own, "/undelete", nil), http.StatusForbidden)
	hub.Do(t, framework.InOrg("alice", http.MethodPost, s.own, "/undelete", nil), http.StatusOK)

	// A Workspace that was deleted by a request of its own stays deleted when its Org is
	// undeleted.
	hub.Do(t, workspace("alice", http.MethodDelete, ""), http.StatusOK)
	hub.Do(t, org("alice", http.MethodDelete, ""), http.StatusOK)
	require.Len(t, pending(t, hub), 2)
	hub.Do(t, org("alice", http.MethodPost, "/undelete"), http.StatusOK)
	require.NoError(t, s.shown(hub, true, false))
	kcp.Refuses(t, "bob", s.cluster)
	hub.Do(t, workspace("alice", http.MethodPost, "/undelete"), http.StatusOK)
	hub.Do(t, workspace("alice", http.MethodGet, ""), http.StatusOK)
	framework.Eventually(t, framework.Long, func() error { return s.shown(hub, true, true) })
	s.p.Settles(t, true)
}

// personComesBack is O-8: a soft-deleted User can access only the own account. An undelete restores all
// Memberships and rights.
func (s deletable) personComesBack(t *testing.T) {
	hub, other := s.hubs[0], s.hubs[1]
	own, _, home := arrived(t, hub, "bob")
	clusters := []string{s.cluster, home}
	before := map[string]map[string]string{}
	for _, cluster := range clusters {
		before[cluster] = s.p.BindingVersions(t, cluster, "bob")
		require.NotEmpty(t, before[cluster])
	}
	active := func(want bool) error {
		a, err := hub.Try(framework.InOrg("alice", http.MethodGet, s.org, "/members", nil))
		if err != nil {
			return err
		}
		for _, item := range a.JSON["items"].([]any) {
			if m := item.(map[string]any); m["user"] == "bob" {
				if m["active"] == want {
					return nil
				}
				return fmt.Errorf("%v", m)
			}
		}
		return fmt.Errorf("bob is not listed: %s", a.Raw)
	}
	for _, c := range []struct{ by, path, backBy, back string }{
		{"bob", "/api/users/me", "bob", "/api/users/me/undelete"},
		{"heidi", "/api/users/bob", "bob", "/api/users/bob/undelete"},
		{"bob", "/api/users/bob", "heidi", "/api/users/bob/undelete"},
	} {
		others := watchAs(t, hub, "alice", s.cluster)
		theirs := []<-chan struct{}{watchAs(t, hub, "bob", s.cluster), watchAs(t, other, "bob", home)}
		for _, no := range []string{"alice", "carol"} {
			hub.Do(t, call{As: no, Method: http.MethodDelete, Path: "/api/users/bob"}, http.StatusForbidden)
		}
		began := time.Now()
		deleted := hub.Do(t, call{As: c.by, Method: http.MethodDelete, Path: c.path}, http.StatusAccepted)
		graceOf(t, deleted.JSON, defaultGrace)
		for _, watch := range theirs {
			select {
			case <-watch:
			case <-time.After(framework.Long):
				require.Fail(t, "the watch is still open")
			}
		}
		t.Logf("%s deleted bob, whose watches on two hubs were closed after %s", c.by, time.Since(began).Round(time.Millisecond))
		for _, h := range s.hubs {
			framework.Eventually(t, framework.Long, func() error {
				a, err := h.Try(call{As: "bob", Method: http.MethodGet, Path: "/api/orgs"})
				if err == nil {
					err = framework.Equal(http.StatusForbidden, a.Code)
				}
				return err
			})
			for _, refused := range []call{
				{As: "bob", Method: http.MethodGet, Path: "/api/orgs"},
				{As: "bob", Method: http.MethodGet, Path: "/api/users/me/memberships"},
				{As: "bob", Method: http.MethodPatch, Path: "/api/users/me", Body: `{"displayName":"Bob"}`},
				{As: "bob", Method: http.MethodDelete, Path: "/api/users/me"},
				{As: "bob", Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName":"Bob's"}`},
				framework.InOrg("bob", http.MethodGet, own, "", nil),
				framework.InWorkspace("bob", http.MethodGet, s.org, s.ws, "/kubeconfig", nil),
				{As: "bob", Method: http.MethodPost, Path: "/api/credentials", Body: credentialAt(h, s.cluster)},
				{As: "bob", Method: http.MethodGet, Path: "/clusters/" + home + "/api/v1/namespaces"},
			} {
				require.Contains(t, h.Do(t, refused, http.StatusForbidden).Text("message"), "deleted", "%s %s", refused.Method, refused.Path)
			}
			graceOf(t, h.Do(t, whoIs("bob"), http.StatusOK).JSON, defaultGrace)
		}
		// The Memberships stay listed but grant no rights, in kcp either.
		require.NotContains(t, namesIn(hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: "/api/users?q=bob"}, http.StatusOK), "name"), "bob")
		require.NoError(t, active(false))
		for _, cluster := range clusters {
			require.Empty(t, s.p.RolesIn(t, cluster, "bob"))
			kcp.Refuses(t, "bob", cluster)
		}
		graceOf(t, pending(t, hub)["User/bob"], defaultGrace)
		select {
		case <-others:
			require.Fail(t, "what others have open was closed")
		default:
		}
		hub.Do(t, call{As: "alice", Method: http.MethodPost, Path: "/api/users/bob/undelete"}, http.StatusForbidden)

		// An undelete succeeds one minute before the grace period ends.
		s.p.age(t, "bob", "", "", time.Now().Add(time.Minute-defaultGrace))
		restored := other.Do(t, call{As: c.backBy, Method: http.MethodPost, Path: c.back}, http.StatusOK)
		require.NotContains(t, restored.JSON, "purgeAt")
		for _, cluster := range clusters {
			held := s.p.BindingVersions(t, cluster, "bob")
			require.Len(t, held, len(before[cluster]), "the rights are back before the answer")
			for name := range before[cluster] {
				require.Contains(t, held, name)
			}
			other.Enters(t, "bob", cluster)
			_, errOut, err := other.Kubectl(t, "bob", cluster, "get", "configmaps")
			require.NoError(t, err, errOut)
		}
		framework.Eventually(t, framework.Long, func() error { return shownAs(hub, "bob", s.org, s.ws, s.cluster, true, true) })
		require.NoError(t, active(true))
		me := other.Do(t, whoIs("bob"), http.StatusOK)
		require.Empty(t, me.Text("deletionRequestedAt"))
		require.Equal(t, own, me.Text("personalOrg"))
		require.Contains(t, namesIn(hub.Do(t, call{As: "alice", Method: http.MethodGet, Path: "/api/users?q=bob"}, http.StatusOK), "name"), "bob")
		require.Empty(t, pending(t, hub))
		s.p.Settles(t, true)
	}
	require.Equal(t, v1alpha1.RegistrationApproved, s.p.AllUsers(t)["bob"].Spec.Registration)
}
