package lifecycle

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// firstRequests is the number of requests that a new person sends at once.
const firstRequests = 24

// whoIs returns the request for the caller's own account.
func whoIs(name string) call { return call{As: name, Method: http.MethodGet, Path: "/api/users/me"} }

// arrived waits until sign-up has created all objects of a person, and returns their
// names.
func arrived(t testing.TB, hub *framework.Hub, name string) (org, ws, cluster string) {
	t.Helper()
	framework.Eventually(t, framework.Long, func() error {
		me, err := hub.Try(whoIs(name))
		if org, ws = me.Text("personalOrg"), me.Text("defaultWorkspace"); err == nil && ws == "" {
			err = fmt.Errorf("no default workspace yet: %s", me.Raw)
		}
		return err
	})
	return org, ws, hub.Do(t, framework.InWorkspace(name, http.MethodGet, org, ws, "", nil), http.StatusOK).Text("clusterID")
}

// O-11: any number of concurrent first requests of any kind creates one User with one Org
// and one Workspace.
func TestO11_ManyFirstRequestsAtOnceMakeOneOfEverything(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hubs := framework.StartHubs(t, kcp, root, 2, personal)
	p := newPlatform(t, root)
	people := []string{"alice", "bob", "carol"}
	began := time.Now()
	var calls []call
	for i := range firstRequests {
		for _, name := range people {
			calls = append(calls, []call{
				whoIs(name),
				{As: name, Method: http.MethodGet, Path: "/api/orgs"},
				{As: name, Method: http.MethodGet, Path: "/api/users/me/memberships"},
				{As: name, Method: http.MethodGet, Path: "/api/users?q=" + name},
			}[i%4])
		}
	}
	answers, err := framework.AtOnce(hubs, calls)
	require.NoError(t, err)
	for i, a := range answers {
		require.Equal(t, http.StatusOK, a.Code, "%s as %s: %s", calls[i].Path, calls[i].As, a.Raw)
	}
	for i, name := range people {
		org, ws, cluster := arrived(t, hubs[i%2], name)
		framework.Eventually(t, framework.Long, func() error {
			_, errOut, err := hubs[(i+1)%2].Kubectl(t, name, cluster, "get", "namespace", "default")
			if err != nil {
				err = errors.New(errOut)
			}
			return err
		})
		t.Logf("%s works %s after the first of %d requests at once", name, time.Since(began).Round(time.Millisecond), len(calls))

		u, err := p.Users(p.UsersPath()).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, tenancy.PersonalOrgUUID(string(u.UID)), org)
		require.Equal(t, org, u.Status.PersonalOrg)
		require.Equal(t, ws, u.Status.DefaultWorkspace)
		require.Equal(t, cluster, u.Spec.DefaultCluster, "the landing hint")
		made := p.OrganizationsBy(t, name)
		require.Len(t, made, 1)
		require.Equal(t, name+"'s personal", made[org].Spec.DisplayName)
		require.True(t, made[org].Spec.Personal)
		require.Equal(t, tenancy.DefaultWorkspaceUUID(string(made[org].UID)), ws)
		require.Len(t, p.WorkspacesOf(t, org), 1)
		held, err := p.MembershipsOf(t, org)
		require.NoError(t, err)
		require.Len(t, held, 2)
		require.Equal(t, v1alpha1.RoleAdmin, held[name].Spec.Role)
		require.Equal(t, v1alpha1.RoleAdmin, held[ws+"."+name].Spec.Role)
	}
	require.Len(t, p.AllUsers(t), len(people))
	p.Settles(t, true)
}

// The flags --personal-org-role and --personal-orgs.
func TestSignUp_makesWhatTheOperatorSays(t *testing.T) {
	t.Parallel()
	t.Run("a member of their own Org is no admin of it", func(t *testing.T) {
		t.Parallel()
		root := framework.NewRoot()
		hub := framework.StartHub(t, kcp, root, personal, func(o *server.Options) { o.PersonalOrgRole = v1alpha1.RoleMember })
		org, _, cluster := arrived(t, hub, "alice")
		require.Equal(t, "member", hub.Do(t, framework.InOrg("alice", http.MethodGet, org, "", nil), http.StatusOK).Text("role"))
		framework.SignUp(t, hub, "bob")
		hub.Do(t, framework.InOrg("alice", http.MethodPost, org, "/members", framework.Adding("bob", "member")), http.StatusForbidden)
		held, err := newPlatform(t, root).MembershipsOf(t, org)
		require.NoError(t, err)
		require.Equal(t, v1alpha1.RoleMember, held["alice"].Spec.Role)
		hub.Enters(t, "alice", cluster)
		_, errOut, err := hub.Kubectl(t, "alice", cluster, "create", "configmap", "hello")
		require.NoError(t, err, errOut)
	})
	t.Run("without personal Orgs there is the person and no more", func(t *testing.T) {
		t.Parallel()
		root := framework.NewRoot()
		hub := framework.StartHub(t, kcp, root)
		p := newPlatform(t, root)
		framework.SignUp(t, hub, "alice")
		framework.Eventually(t, framework.Long, func() error {
			if u := p.AllUsers(t)["alice"]; u.Status.Phase != v1alpha1.PhaseReady {
				return fmt.Errorf("%v", u.Status)
			}
			return p.Sound(t, false)
		})
		me := hub.Do(t, whoIs("alice"), http.StatusOK)
		require.Empty(t, me.Text("personalOrg"))
		require.Empty(t, me.Text("defaultWorkspace"))
		require.Empty(t, p.OrganizationsBy(t, "alice"))
		require.Empty(t, p.AllUsers(t)["alice"].Spec.DefaultCluster)
		hub.CreateOrg(t, "alice", "ACME")
	})
}

// With --registration=approval, every request of a pending User is refused with a
// message, and the User has no Workspace. An approval takes effect on every hub within
// moments.
func TestApproval_isEffectiveWithinAMoment(t *testing.T) {
	t.Parallel()
	root := framework.NewRoot()
	hubs := framework.StartHubs(t, kcp, root, 2, personal, framework.WithAdmin, func(o *server.Options) { o.Registration = "approval" })
	p := newPlatform(t, root)
	// The first platform admin is named by a flag and needs no approval.
	_, _, elsewhere := arrived(t, hubs[0], "heidi")

	calls := make([]call, firstRequests)
	for i := range calls {
		calls[i] = whoIs("bob")
	}
	answers, err := framework.AtOnce(hubs, calls)
	require.NoError(t, err)
	for _, a := range answers {
		require.Equal(t, http.StatusOK, a.Code, "%s", a.Raw)
		require.Equal(t, "Pending", a.Text("registration"))
	}
	refused := []call{
		{As: "bob", Method: http.MethodGet, Path: "/api/orgs"},
		{As: "bob", Method: http.MethodGet, Path: "/api/users/me/memberships"},
		{As: "bob", Method: http.MethodGet, Path: "/api/users?q=alice"},
		{As: "bob", Method: http.MethodPost, Path: "/api/orgs", Body: `{"displayName":"Bob's"}`},
		{As: "bob", Method: http.MethodDelete, Path: "/api/users/me"},
		{As: "bob", Method: http.MethodPost, Path: "/api/credentials", Body: credentialAt(hubs[0], elsewhere)},
		{As: "bob", Method: http.MethodGet, Path: "/clusters/" + elsewhere + "/api/v1/namespaces"},
		{As: "bob", Method: http.MethodPatch, Path: "/api/admin/users/bob", Body: `{"registration":"Approved"}`},
	}
	for _, hub := range hubs {
		for _, c := range refused {
			require.Contains(t, hub.Do(t, c, http.StatusForbidden).Text("message"), "approval", "%s %s", c.Method, c.Path)
		}
	}
	// A pending User gets an Org, but other people can neither find nor invite this User.
	var org string
	framework.Eventually(t, framework.Long, func() error {
		if org = p.AllUsers(t)["bob"].Status.PersonalOrg; org == "" {
			return errors.New("no Org yet")
		}
		if o := p.OrganizationsBy(t, "bob")[org]; o.Status.Phase != v1alpha1.PhaseReady {
			return fmt.Errorf("%v", o.Status)
		}
		return nil
	})
	require.Empty(t, hubs[0].Do(t, whoIs("bob"), http.StatusOK).Text("personalOrg"), "a pending User cannot read it")
	require.Empty(t, p.WorkspacesOf(t, org))
	require.Empty(t, p.AllUsers(t)["bob"].Spec.DefaultCluster)
	found := hubs[0].Do(t, call{As: "heidi", Method: http.MethodGet, Path: "/api/users?q=bob"}, http.StatusOK)
	require.NotContains(t, string(found.Raw), `"bob"`)
	waiting := hubs[0].Do(t, call{As: "heidi", Method: http.MethodGet, Path: "/api/admin/users?registration=Pending"}, http.StatusOK)
	require.Contains(t, string(waiting.Raw), `"bob"`)

	began := time.Now()
	hubs[1].Do(t, framework.Registering("bob", "Approved"), http.StatusOK)
	answered := time.Since(began)
	// On the hub that answered, the approval takes effect at once.
	hubs[1].Do(t, refused[0], http.StatusOK)
	framework.Eventually(t, framework.Long, func() error {
		a, err := hubs[0].Try(refused[0])
		if err == nil {
			err = framework.Equal(http.StatusOK, a.Code)
		}
		return err
	})
	t.Logf("approved in %s, and so on the other hub after %s", answered.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	own, ws, cluster := arrived(t, hubs[0], "bob")
	require.Equal(t, org, own)
	require.Contains(t, p.WorkspacesOf(t, org), ws)
	framework.Eventually(t, framework.Long, func() error {
		_, errOut, err := hubs[0].Kubectl(t, "bob", cluster, "get", "namespaces")
		if err != nil {
			err = errors.New(errOut)
		}
		return err
	})
	t.Logf("kubectl works %s after the approval", time.Since(began).Round(time.Millisecond))
	p.Settles(t, true)
}
