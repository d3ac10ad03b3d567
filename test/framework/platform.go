package framework

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Platform reads and writes objects in kcp below one root workspace, bypassing every hub.
type Platform struct {
	*kcp.Clients
	Root string
}

// Platform returns the Platform below a root workspace.
func (k *KCP) Platform(t testing.TB, root string) Platform { return Platform{k.Clients(t), root} }

// UsersPath is the path of the workspace that holds the Users.
func (p Platform) UsersPath() string { return p.Root + ":users" }

// OrgsPath is the path of the workspace that holds the Organizations.
func (p Platform) OrgsPath() string { return p.Root + ":orgs" }

// OrgPath is the path of the workspace of an Org.
func (p Platform) OrgPath(uuid string) string { return p.OrgsPath() + ":" + uuid }

// MembershipsOf lists the Memberships in an Org, by name.
func (p Platform) MembershipsOf(t testing.TB, org string) (map[string]v1alpha1.Membership, error) {
	var list v1alpha1.MembershipList
	err := p.Memberships(p.OrgPath(org)).GetClient().Get().Resource("memberships").Do(t.Context()).Into(&list)
	out := map[string]v1alpha1.Membership{}
	for _, m := range list.Items {
		out[m.Name] = m
	}
	return out, err
}

// SparesIn reads the spares in a workspace, by its path or logical cluster.
func SparesIn(ctx context.Context, clients *kcp.Clients, path string) (found []tenancy.Spare, err error) {
	var list kcptenancyv1alpha1.WorkspaceList
	err = clients.Workspaces(path).GetClient().Get().Resource("workspaces").Param("labelSelector", v1alpha1.SpareLabel).Do(ctx).Into(&list)
	for i := range list.Items {
		found = append(found, tenancy.SpareOf(&list.Items[i]))
	}
	return found, err
}

// RowsOf lists the entries of a person's UserMembershipIndex, by "{org}/{workspace}".
func (p Platform) RowsOf(t testing.TB, user string) (map[string]v1alpha1.MembershipIndexEntry, error) {
	index, err := p.Indexes(p.UsersPath()).Get(t.Context(), user, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]v1alpha1.MembershipIndexEntry{}
	for _, e := range index.Spec.Entries {
		out[e.OrgUUID+"/"+e.WorkspaceUUID] = e
	}
	return out, nil
}

// BindingsIn lists the ClusterRoleBindings that the hub keeps in a Workspace, by name.
func (p Platform) BindingsIn(t testing.TB, cluster string) (map[string]rbacv1.ClusterRoleBinding, error) {
	var list rbacv1.ClusterRoleBindingList
	err := p.ClusterRoleBindings(cluster).GetClient().Get().Resource("clusterrolebindings").
		Param("labelSelector", v1alpha1.ManagedByLabel+"="+v1alpha1.ManagedByHub).Do(t.Context()).Into(&list)
	out := map[string]rbacv1.ClusterRoleBinding{}
	for _, b := range list.Items {
		out[b.Name] = b
	}
	return out, err
}

// BindingVersions maps the bindings of one person in a Workspace to a text that changes
// when the binding is replaced or edited. It is not the resource version, because kcp
// annotates bindings a while after they were created.
func (p Platform) BindingVersions(t testing.TB, cluster, user string) map[string]string {
	t.Helper()
	held, err := p.BindingsIn(t, cluster)
	require.NoError(t, err)
	out := map[string]string{}
	for name, b := range held {
		if b.Labels[v1alpha1.UserLabel] == user {
			out[name] = fmt.Sprint(b.UID, b.Subjects, b.RoleRef)
		}
	}
	return out
}

// RolesIn lists the ClusterRoles that are bound to a person in a Workspace.
func (p Platform) RolesIn(t testing.TB, cluster, user string) []string {
	t.Helper()
	held, err := p.BindingsIn(t, cluster)
	require.NoError(t, err)
	return RolesOf(held, user)
}

// RolesOf lists the ClusterRoles that bindings give to a person.
func RolesOf(held map[string]rbacv1.ClusterRoleBinding, user string) []string {
	roles := []string{}
	for _, b := range held {
		if slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Kind == rbacv1.UserKind && s.Name == user }) {
			roles = append(roles, b.RoleRef.Name)
		}
	}
	slices.Sort(roles)
	return roles
}

// Consistent compares the index and the bindings of a person with their Memberships in
// the Org. The argument workspaces has the cluster IDs by UUID.
func (p Platform) Consistent(t testing.TB, org, user string, workspaces map[string]string) error {
	memberships, err := p.MembershipsOf(t, org)
	if err != nil {
		return err
	}
	rows, err := p.RowsOf(t, user)
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
		held, err := p.BindingsIn(t, cluster)
		if err != nil {
			return err
		}
		if roles := RolesOf(held, user); !slices.Equal(roles, bound) {
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

// CreateUsers creates Users that never signed in, and returns their names.
func (p Platform) CreateUsers(t testing.TB, prefix string, n int) []string {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", prefix, i)
		u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: names[i]}}
		u.Spec = v1alpha1.UserSpec{DisplayName: names[i], Issuer: "https://issuer.example.com", Subject: names[i], RBACIdentity: names[i]}
		_, err := p.Users(p.UsersPath()).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return names
}

// OrganizationsBy lists the Organizations that a person created, by UUID.
func (p Platform) OrganizationsBy(t testing.TB, by string) map[string]v1alpha1.Organization {
	t.Helper()
	var list v1alpha1.OrganizationList
	require.NoError(t, p.Organizations(p.OrgsPath()).GetClient().Get().Resource("organizations").Do(t.Context()).Into(&list))
	out := map[string]v1alpha1.Organization{}
	for _, o := range list.Items {
		if o.Annotations[v1alpha1.CreatedByAnnotation] == by {
			out[o.Name] = o
		}
	}
	return out
}

// WorkspacesOf lists the Workspaces of an Org, by UUID.
func (p Platform) WorkspacesOf(t testing.TB, org string) map[string]kcptenancyv1alpha1.Workspace {
	t.Helper()
	var list kcptenancyv1alpha1.WorkspaceList
	require.NoError(t, p.Workspaces(p.OrgPath(org)).GetClient().Get().Resource("workspaces").Do(t.Context()).Into(&list))
	out := map[string]kcptenancyv1alpha1.Workspace{}
	for _, ws := range list.Items {
		out[ws.Name] = ws
	}
	return out
}

// AllUsers lists the Users, by name.
func (p Platform) AllUsers(t testing.TB) map[string]v1alpha1.User {
	t.Helper()
	var list v1alpha1.UserList
	require.NoError(t, p.Users(p.UsersPath()).GetClient().Get().Resource("users").Do(t.Context()).Into(&list))
	out := map[string]v1alpha1.User{}
	for _, u := range list.Items {
		out[u.Name] = u
	}
	return out
}

// Sound audits all objects below the root workspace: each is complete, or removed with
// everything that belonged to it.
func (p Platform) Sound(t testing.TB, personalOrgs bool) error {
	truth, err := ReadTruth(t.Context(), p.Clients, p.Root)
	if err != nil {
		return err
	}
	truth.PersonalOrgs = personalOrgs
	if problems := truth.Problems(); len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	return nil
}

// Settles waits until Sound finds no problem.
func (p Platform) Settles(t testing.TB, personalOrgs bool) {
	t.Helper()
	NowAndThen(t, func() error { return p.Sound(t, personalOrgs) })
}

// SettlesIn is Settles for one Org of a tree that tests share, and for what people have of it. The people are its members, and among
// them is its maker.
func (p Platform) SettlesIn(t testing.TB, org string, people ...string) {
	t.Helper()
	NowAndThen(t, func() error {
		truth, err := ReadTruth(t.Context(), p.Clients, p.Root, people...)
		if err != nil {
			return err
		}
		maps.DeleteFunc(truth.Orgs, func(uuid string, _ *TruthOrg) bool { return uuid != org })
		for _, u := range truth.Users {
			u.Spec.OrgClaims = slices.DeleteFunc(u.Spec.OrgClaims, func(c v1alpha1.Claim) bool { return c.UUID != org })
		}
		for _, index := range truth.Indexes {
			others := func(e v1alpha1.MembershipIndexEntry) bool { return e.OrgUUID != org }
			index.Spec.Entries = slices.DeleteFunc(index.Spec.Entries, others)
		}
		problems := truth.Problems()
		return Check(len(problems) == 0, "%s", strings.Join(problems, "\n"))
	})
}
