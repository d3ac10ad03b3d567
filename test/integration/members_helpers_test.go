package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	kcpclients "github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/server"
	"github.com/faroshq/kedge-hub/test/framework"
)

// platform is the truth in kcp below one root workspace, read and written past the
// hubs.
type platform struct {
	*kcpclients.Clients
	root string
}

func newPlatform(t testing.TB, root string) platform { return platform{kcp.Clients(t), root} }

func (p platform) users() string          { return p.root + ":users" }
func (p platform) orgs() string           { return p.root + ":orgs" }
func (p platform) org(uuid string) string { return p.orgs() + ":" + uuid }

// memberships are those in an Org, by name.
func (p platform) memberships(t testing.TB, org string) (map[string]v1alpha1.Membership, error) {
	var list v1alpha1.MembershipList
	err := p.Memberships(p.org(org)).GetClient().Get().Resource("memberships").Do(t.Context()).Into(&list)
	out := map[string]v1alpha1.Membership{}
	for _, m := range list.Items {
		out[m.Name] = m
	}
	return out, err
}

// rows are those of a person's UserMembershipIndex, as "{org}/{workspace}" and the
// role.
func (p platform) rows(t testing.TB, user string) (map[string]v1alpha1.MembershipIndexEntry, error) {
	index, err := p.Indexes(p.users()).Get(t.Context(), user, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]v1alpha1.MembershipIndexEntry{}
	for _, e := range index.Spec.Entries {
		out[e.OrgUUID+"/"+e.WorkspaceUUID] = e
	}
	return out, nil
}

// bindings are the hub's in a Workspace, by name.
func (p platform) bindings(t testing.TB, cluster string) (map[string]rbacv1.ClusterRoleBinding, error) {
	var list rbacv1.ClusterRoleBindingList
	err := p.ClusterRoleBindings(cluster).GetClient().Get().Resource("clusterrolebindings").
		Param("labelSelector", v1alpha1.ManagedByLabel+"="+v1alpha1.ManagedByHub).Do(t.Context()).Into(&list)
	out := map[string]rbacv1.ClusterRoleBinding{}
	for _, b := range list.Items {
		out[b.Name] = b
	}
	return out, err
}

// versions are the bindings of one person in a Workspace, each with what changes
// when it is made anew or says something else. The resource version does not tell:
// kcp annotates bindings by itself, a while after they were made.
func (p platform) versions(t testing.TB, cluster, user string) map[string]string {
	t.Helper()
	held, err := p.bindings(t, cluster)
	require.NoError(t, err)
	out := map[string]string{}
	for name, b := range held {
		if b.Labels[v1alpha1.UserLabel] == user {
			out[name] = fmt.Sprint(b.UID, b.Subjects, b.RoleRef)
		}
	}
	return out
}

// roles are the ClusterRoles that are bound to a person in a Workspace.
func (p platform) roles(t testing.TB, cluster, user string) []string {
	t.Helper()
	held, err := p.bindings(t, cluster)
	require.NoError(t, err)
	return rolesOf(held, user)
}

func rolesOf(held map[string]rbacv1.ClusterRoleBinding, user string) []string {
	roles := []string{}
	for _, b := range held {
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Kind == rbacv1.UserKind && s.Name == user }) {
			roles = append(roles, b.RoleRef.Name)
		}
	}
	slices.Sort(roles)
	return roles
}

// consistent tells whether the index and the bindings of a person are what their
// Memberships in the Org say; workspaces are the cluster IDs by UUID.
func (p platform) consistent(t testing.TB, org, user string, workspaces map[string]string) error {
	memberships, err := p.memberships(t, org)
	if err != nil {
		return err
	}
	rows, err := p.rows(t, user)
	if err != nil {
		return err
	}
	inOrg, has := memberships[user]
	want := map[string]v1alpha1.Role{}
	if has {
		want[org+"/"] = inOrg.Spec.Role
	}
	for ws, cluster := range workspaces {
		var role v1alpha1.Role
		if m, ok := memberships[ws+"."+user]; ok {
			role = m.Spec.Role
			want[org+"/"+ws] = role
		}
		if inOrg.Spec.Role == v1alpha1.RoleAdmin {
			role = v1alpha1.RoleAdmin
		}
		bound := []string{}
		if role != "" {
			bound = append(bound, "kedge:workspace:"+string(role))
		}
		held, err := p.bindings(t, cluster)
		if err != nil {
			return err
		}
		if roles := rolesOf(held, user); !slices.Equal(roles, bound) {
			return fmt.Errorf("%s is bound to %v in %s instead of %v", user, roles, ws, bound)
		}
	}
	got := map[string]v1alpha1.Role{}
	for key, e := range rows {
		if e.OrgUUID == org {
			got[key] = e.Role
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("the index of %s says %v instead of %v", user, got, want)
	}
	return nil
}

// peopled makes Users who never signed in, and returns their names.
func (p platform) peopled(t testing.TB, prefix string, n int) []string {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", prefix, i)
		u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: names[i]}}
		u.Spec = v1alpha1.UserSpec{DisplayName: names[i], Issuer: "https://issuer.example.com", Subject: names[i], RBACIdentity: names[i]}
		_, err := p.Users(p.users()).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return names
}

// withAdmin makes heidi a platform admin.
func withAdmin(o *server.Options) { o.AdminUsers = []string{"heidi"} }

// registering is a call by which heidi says whether somebody may work.
func registering(user, state string) call {
	return call{As: "heidi", Method: http.MethodPatch, Path: "/api/admin/users/" + user, Body: map[string]string{"registration": state}}
}

// present has people sign up.
func present(t testing.TB, hub *framework.Hub, names ...string) {
	t.Helper()
	for _, name := range names {
		hub.Do(t, call{As: name, Method: http.MethodGet, Path: "/api/users/me"}, http.StatusOK)
	}
}

// inOrg is a call about an Org, to what is below it.
func inOrg(as, method, org, below string, body any) call {
	return call{As: as, Method: method, Path: "/api/orgs/" + org + below, Org: org, Body: body}
}

// inWorkspace is a call about a Workspace, to what is below it.
func inWorkspace(as, method, org, ws, below string, body any) call {
	return call{As: as, Method: method, Path: "/api/orgs/" + org + "/workspaces/" + ws + below, Org: org, Workspace: ws, Body: body}
}

// adding is the body that adds somebody.
func adding(user, role string) map[string]any {
	return map[string]any{"userRef": map[string]string{"name": user}, "role": role}
}

func role(r string) map[string]string { return map[string]string{"role": r} }

// listed are the roles that a list of members shows, by name.
func listed(a framework.Answer) map[string]string {
	out := map[string]string{}
	items, _ := a.JSON["items"].([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		out[fmt.Sprint(m["user"])] = fmt.Sprint(m["role"])
	}
	return out
}

// status is a refusal as it was answered.
func status(t testing.TB, a framework.Answer) metav1.Status {
	t.Helper()
	var s metav1.Status
	require.NoError(t, json.Unmarshal(a.Raw, &s))
	require.Equal(t, "Status", s.Kind, "%s", a.Raw)
	require.EqualValues(t, a.Code, s.Code)
	return s
}

// causes are the types of the causes of a refusal.
func causes(t testing.TB, a framework.Answer) []string {
	t.Helper()
	var out []string
	if d := status(t, a).Details; d != nil {
		for _, c := range d.Causes {
			out = append(out, string(c.Type))
		}
	}
	return out
}

// equal is for conditions that are waited for.
func equal(want, got int) error {
	if want != got {
		return fmt.Errorf("%d instead of %d", got, want)
	}
	return nil
}
