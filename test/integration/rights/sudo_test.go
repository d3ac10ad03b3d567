package rights

import (
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/framework"
)

// sudoScene is two Workspaces in an Org of alice. In both, carol is a member with
// sudo, dave a member, and bob an admin. Grace is an admin of the Org.
type sudoScene struct {
	hub         *framework.Hub
	p           platform
	org         string
	ws, cluster [2]string
}

func newSudoScene(t *testing.T, hub *framework.Hub) *sudoScene {
	t.Helper()
	s := &sudoScene{hub: hub, p: newPlatform(t, hub.Options.RootWorkspace)}
	s.org = s.hub.CreateOrg(t, "alice", "ACME")
	framework.SignUp(t, s.hub, "bob", "carol", "dave", "erin", "grace")
	s.hub.Do(t, framework.InOrg("alice", http.MethodPost, s.org, "/members", framework.Adding("grace", "admin")), http.StatusCreated)
	for i, name := range []string{"dev", "prod"} {
		made := s.hub.CreateWorkspace(t, "alice", s.org, name)
		s.ws[i], s.cluster[i] = made.Text("uuid"), made.Text("clusterID")
		sudo := framework.Adding("carol", "member")
		sudo["sudo"] = true
		for _, body := range []map[string]any{sudo, framework.Adding("dave", "member"), framework.Adding("bob", "admin")} {
			s.hub.Do(t, framework.InWorkspace("alice", http.MethodPost, s.org, s.ws[i], "/members", body), http.StatusCreated)
		}
	}
	return s
}

func (s *sudoScene) group(i int) string { return tenancy.SudoGroup(s.ws[i]) }

// write returns the creation of a ClusterRole: admins may create one, members may not.
// The dry run makes the request repeatable.
func (s *sudoScene) write(as string, i int, header http.Header) call {
	return call{
		As: as, Method: http.MethodPost, Header: header,
		Path: "/clusters/" + s.cluster[i] + "/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All",
		Body: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"made"},"rules":[]}`,
	}
}

// audited returns the events of elevated requests as "user stage action workspace".
func (s *sudoScene) audited(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, e := range framework.AuditEvents(t, s.hub.Options.AuditLogFile) {
		if e.Facts != nil && e.Facts.Elevated {
			found = append(found, e.Actor.User+" "+string(e.Stage)+" "+e.Action+" "+e.Workspace)
		}
	}
	return found
}

// Sudo elevates one kubectl request to the admin's role.
func TestSudo_elevatesOneRequestOnly(t *testing.T) {
	t.Parallel()
	s := newSudoScene(t, kcp.Shared(t, 1)[0])
	carol := func(args ...string) (string, error) {
		_, errOut, err := s.hub.Kubectl(t, "carol", s.cluster[0], args...)
		return errOut, err
	}
	elevated := func(args ...string) (string, error) {
		return carol(append([]string{"--as", "carol", "--as-group", s.group(0)}, args...)...)
	}
	for _, name := range []string{"first", "second"} {
		errOut, err := carol("create", "clusterrole", name, "--verb=get", "--resource=secrets")
		require.True(t, forbidden(t, errOut, err), "not elevated")
		errOut, err = elevated("create", "clusterrole", name, "--verb=get", "--resource=secrets")
		require.NoError(t, err, errOut)
	}
	errOut, err := carol("delete", "clusterrole", "first")
	require.True(t, forbidden(t, errOut, err), "it does not stand")
	errOut, err = carol("--as", "carol", "--as-group", s.group(0), "--as-group", "system:authenticated", "delete", "clusterrole", "first")
	require.NoError(t, err, errOut)

	// Sudo gives the rights of a Workspace admin, not of cluster-admin.
	for _, args := range [][]string{
		{"annotate", "logicalclusters.core.kcp.io", "cluster", "by=carol"},
		{"delete", "logicalclusters.core.kcp.io", "cluster", "--wait=false"},
		{"create", "clusterrole", "everything", "--verb=*", "--resource=*.*"},
		{"create", "clusterrole", "other", "--verb=impersonate", "--resource=users"},
		{"get", "--raw", "/metrics"},
	} {
		errOut, err := elevated(args...)
		require.Error(t, err, args)
		require.Regexp(t, "(?i)forbidden|NotFound", errOut, args)
	}
	_, errOut, err = s.hub.Kubectl(t, "carol", s.cluster[0], "get", "clusterroles", "-o", "name")
	require.NoError(t, err, errOut)

	// Without impersonation, carol still has a member's rights only.
	require.Equal(t, []string{tenancy.ClusterRoleMember, "kedge:workspace:sudo:user:carol"}, s.p.RolesIn(t, s.cluster[0], "carol"))
	require.False(t, hasInKCP(t, "carol", s.cluster[0], "create", "rbac.authorization.k8s.io", "clusterroles"))
}

// The audit log has an entry for every elevated request, and for no other request.
func TestSudo_isInTheAuditLog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	s := newSudoScene(t, framework.StartHub(t, kcp, framework.NewRoot(), func(o *server.Options) { o.AuditLogFile = file }))
	rightful := framework.Impersonating("carol", s.group(0))
	for range 3 {
		s.hub.Do(t, s.write("carol", 0, rightful), http.StatusCreated)
		s.hub.Do(t, s.write("carol", 0, nil), http.StatusForbidden)
		s.hub.Do(t, s.write("carol", 0, framework.Impersonating("alice", s.group(0))), http.StatusForbidden)
		s.hub.Do(t, s.write("dave", 0, rightful), http.StatusForbidden)
	}
	get := call{As: "carol", Method: http.MethodGet, Path: "/clusters/" + s.cluster[0] + "/api/v1/namespaces", Header: rightful}
	s.hub.Do(t, get, http.StatusOK)
	var want []string
	for _, verb := range []string{"create", "create", "create", "list"} {
		want = append(want, "carol intent kubernetes "+verb+" "+s.ws[0], "carol outcome kubernetes "+verb+" "+s.ws[0])
	}
	// The outcome follows the last byte of a list.
	framework.Eventually(t, framework.Long, func() error {
		got := s.audited(t)
		return framework.Check(slices.Equal(want, got), "%v, wanted %v", got, want)
	})
	raw := framework.AuditText(t, s.hub.Options.AuditLogFile)
	require.NotContains(t, string(raw), framework.Token("carol"))
}

// The hub refuses every other form of impersonation. The permitted form is the positive
// control of each. The unit tests of the proxy cover more forms.
func TestSudo_isRefusedInEveryOtherForm(t *testing.T) {
	t.Parallel()
	s := newSudoScene(t, kcp.Shared(t, 1)[0])
	group, other := s.group(0), s.group(1)
	rightful := framework.Impersonating("carol", group)
	with := func(name string, values ...string) http.Header {
		h := framework.Impersonating("carol", group)
		h[name] = values
		return h
	}
	for _, tc := range []struct {
		name   string
		header http.Header
	}{
		{"another person", framework.Impersonating("alice", group)},
		{"kcp's admin", framework.Impersonating("kcp-admin", group)},
		{"a bot", framework.Impersonating("system:serviceaccount:default:default", group)},
		{"nobody", framework.Impersonating("", group)},
		{"the user in upper case", framework.Impersonating("CAROL", group)},
		{"two users", with("Impersonate-User", "carol", "alice")},
		{"the group alone", http.Header{"Impersonate-Group": {group}}},
		{"the user alone", http.Header{"Impersonate-User": {"carol"}}},
		{"a group above", framework.Impersonating("carol", "system:masters")},
		{"a group above, too", framework.Impersonating("carol", group, "system:masters")},
		{"kcp's own group, too", framework.Impersonating("carol", group, "system:kcp:admin")},
		{"everybody's group alone", framework.Impersonating("carol", "system:authenticated")},
		{"a group of her own, too", framework.Impersonating("carol", group, "dev")},
		{"the other Workspace's group", framework.Impersonating("carol", other)},
		{"the other Workspace's group, too", framework.Impersonating("carol", group, other)},
		{"the group in upper case", framework.Impersonating("carol", strings.ToUpper(group))},
		{"the group with a blank", framework.Impersonating("carol", group+" ,system:masters")},
		{"a uid", with("Impersonate-Uid", "uid-carol")},
		{"an extra", with("Impersonate-Extra-Scopes", "all")},
		{"kcp's scopes", with("Impersonate-Extra-Authentication.kcp.io%2fscopes", "cluster:root")},
		{"kcp's warrant", with("Impersonate-Extra-Authorization.kcp.io%2fwarrant", `{"user":"kcp-admin","groups":["system:masters"]}`)},
		{"another user in lower case, too", with("impersonate-user", "alice")},
		{"a group above in lower case, too", with("impersonate-group", "system:masters")},
		{"underscores", with("Impersonate_User", "alice")},
	} {
		a := s.hub.Do(t, s.write("carol", 0, tc.header), http.StatusForbidden)
		require.Contains(t, framework.StatusOf(t, a).Message, "nobody can be impersonated here but yourself", "%s: not by the hub", tc.name)
		s.hub.Do(t, s.write("carol", 0, rightful), http.StatusCreated)
	}
	// Header names are case-insensitive, so this is the permitted form.
	s.hub.Do(t, s.write("carol", 0, http.Header{"impersonate-user": {"carol"}, "IMPERSONATE-GROUP": {group}}), http.StatusCreated)

	// Sudo is independent of the role: admins without sudo are refused, too. No refusal
	// reveals the group.
	for _, who := range []string{"alice", "bob", "dave", "grace", "erin"} {
		a := s.hub.Do(t, s.write(who, 0, framework.Impersonating(who, group)), http.StatusForbidden)
		require.NotContains(t, string(a.Raw), group)
		s.hub.Do(t, s.write(who, 0, rightful), http.StatusForbidden)
	}
	// Each Workspace accepts its own group only.
	s.hub.Do(t, s.write("carol", 1, rightful), http.StatusForbidden)
	s.hub.Do(t, s.write("carol", 1, framework.Impersonating("carol", other)), http.StatusCreated)
	theirs := s.hub.CreateOrg(t, "erin", "Erin's")
	foreign := s.hub.CreateWorkspace(t, "erin", theirs, "foreign")
	c := s.write("carol", 0, rightful)
	c.Path = strings.Replace(c.Path, s.cluster[0], foreign.Text("clusterID"), 1)
	s.hub.Do(t, c, http.StatusForbidden)

	for _, args := range [][]string{
		{"--as", "alice"}, {"--as", "carol"}, {"--as", "alice", "--as-group", group}, {"--as", "carol", "--as-group", "system:masters"},
		{"--as", "carol", "--as-group", group, "--as-group", "system:masters"}, {"--as", "carol", "--as-group", group, "--as-uid", "1"},
		{"--as", "carol", "--as-group", other}, {"--as", "system:admin"},
	} {
		_, errOut, err := s.hub.Kubectl(t, "carol", s.cluster[0], append(args, "get", "--raw", "/api/v1/namespaces")...)
		require.True(t, forbidden(t, errOut, err), args)
		_, errOut, err = s.hub.Kubectl(t, "carol", s.cluster[0], "--as", "carol", "--as-group", group, "get", "--raw", "/api/v1/namespaces")
		require.NoError(t, err, errOut)
	}
}

// Sudo elevates requests to clusters only. No form of it elevates a REST request.
func TestSudo_elevatesNothingOverREST(t *testing.T) {
	t.Parallel()
	s := newSudoScene(t, kcp.Shared(t, 1)[0])
	for _, header := range []http.Header{framework.Impersonating("carol", s.group(0)), framework.Impersonating("alice"), framework.Impersonating("carol", "system:masters")} {
		for _, c := range []call{
			framework.InWorkspace("carol", http.MethodPatch, s.org, s.ws[0], "", `{"displayName":"Carol's"}`),
			framework.InWorkspace("carol", http.MethodPatch, s.org, s.ws[0], "/members/carol", framework.WithRole("admin")),
			framework.InWorkspace("carol", http.MethodPost, s.org, s.ws[0], "/members", framework.Adding("erin", "member")),
			framework.InOrg("carol", http.MethodPost, s.org, "/members", framework.Adding("carol", "admin")),
		} {
			c.Header = header.Clone()
			s.hub.Do(t, c, http.StatusForbidden)
		}
		me := call{As: "carol", Method: http.MethodGet, Path: "/api/users/me", Header: header.Clone()}
		if a := s.hub.Do(t, me, http.StatusOK, http.StatusForbidden); a.Code == http.StatusOK {
			require.Equal(t, "carol", a.Text("name"))
		}
	}
	// The positive control: an admin may patch the Workspace.
	s.hub.Do(t, framework.InWorkspace("bob", http.MethodPatch, s.org, s.ws[0], "", `{"displayName":"Dev"}`), http.StatusOK)
}

// The revocation of sudo deletes the user's role and bindings. The sudo of other users
// stays.
func TestSudo_isGoneWhenItIsTaken(t *testing.T) {
	t.Parallel()
	s := newSudoScene(t, kcp.Shared(t, 1)[0])
	sudo := func(who string, on bool) {
		t.Helper()
		s.hub.Do(t, framework.InWorkspace("alice", http.MethodPatch, s.org, s.ws[0], "/members/"+who, map[string]bool{"sudo": on}), http.StatusOK)
	}
	held := func() []string {
		t.Helper()
		out, errOut, err := kcp.Kubectl(t, "", s.cluster[0], "get", "clusterroles,clusterrolebindings", "-o", "jsonpath={.items[*].metadata.name}")
		require.NoError(t, err, errOut)
		var found []string
		for _, name := range strings.Fields(out) {
			if strings.HasPrefix(name, "kedge:workspace:sudo") {
				found = append(found, name)
			}
		}
		return found
	}
	carols, daves, shared := "kedge:workspace:sudo:user:carol", "kedge:workspace:sudo:user:dave", "kedge:workspace:sudo"
	require.ElementsMatch(t, []string{carols, carols, shared}, held(), "a role and two bindings")
	sudo("dave", true)
	require.ElementsMatch(t, []string{carols, carols, daves, daves, shared}, held())
	before := s.p.BindingVersions(t, s.cluster[0], "dave")
	framework.Eventually(t, framework.Long, func() error {
		a, err := s.hub.Try(s.write("dave", 0, framework.Impersonating("dave", s.group(0))))
		return framework.Check(err == nil && a.Code == http.StatusCreated, "%v %s", err, a.Raw)
	})
	sudo("carol", false)
	require.ElementsMatch(t, []string{daves, daves, shared}, held())
	require.Equal(t, before, s.p.BindingVersions(t, s.cluster[0], "dave"))
	s.hub.Do(t, s.write("carol", 0, framework.Impersonating("carol", s.group(0))), http.StatusForbidden)
	s.hub.Do(t, s.write("dave", 0, framework.Impersonating("dave", s.group(0))), http.StatusCreated)
	s.hub.Do(t, s.write("carol", 1, framework.Impersonating("carol", s.group(1))), http.StatusCreated)
	s.hub.Do(t, framework.InWorkspace("alice", http.MethodDelete, s.org, s.ws[0], "/members/dave", nil), http.StatusNoContent)
	framework.Eventually(t, framework.Long, func() error {
		// The removal of a member does not wait for the deletion of the shared binding.
		return framework.Check(len(held()) == 0, "still %v", held())
	})
}

// RBAC in kcp enforces the same rules on requests that do not pass through the hub.
func TestSudo_isForOneselfOnlyInKCP(t *testing.T) {
	t.Parallel()
	s := newSudoScene(t, kcp.Shared(t, 1)[0])
	config, err := clientcmd.BuildConfigFromFlags("", kcp.Kubeconfig)
	require.NoError(t, err)
	base, _, _ := strings.Cut(config.Host, "/clusters/")
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(config))
	require.NoError(t, err)
	straight := func(as string, i int, header http.Header) int {
		t.Helper()
		c := s.write(as, i, header)
		request, err := http.NewRequestWithContext(t.Context(), c.Method, base+c.Path, strings.NewReader(c.Body.(string)))
		require.NoError(t, err)
		request.Header = header.Clone()
		request.Header.Set("Authorization", "Bearer "+framework.Token(as))
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		return response.StatusCode
	}
	rightful := framework.Impersonating("carol", s.group(0))
	framework.Eventually(t, framework.Long, func() error { return framework.Equal(http.StatusCreated, straight("carol", 0, rightful)) })
	for _, header := range []http.Header{
		framework.Impersonating("alice"), framework.Impersonating("alice", s.group(0)), framework.Impersonating("carol", "system:masters"),
		framework.Impersonating("carol", s.group(0), "system:masters"), framework.Impersonating("carol", s.group(0), "system:kcp:admin"), framework.Impersonating("carol", s.group(1)),
	} {
		require.Equal(t, http.StatusForbidden, straight("carol", 0, header), "%v", header)
	}
	for _, who := range []string{"alice", "bob", "dave", "grace"} {
		require.Equal(t, http.StatusForbidden, straight(who, 0, framework.Impersonating(who, s.group(0))), who)
		require.Equal(t, http.StatusForbidden, straight(who, 0, rightful), who)
	}
	require.Equal(t, http.StatusForbidden, straight("carol", 1, rightful))
}
