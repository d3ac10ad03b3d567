// Package kcptest is the platform of the tests of reconcilers: a kcpfake, the repositories over it, and
// views that are never behind. Only tests import it.
package kcptest

import (
	"errors"
	"slices"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

// The logical clusters of Users and of Organizations.
const (
	Users = "users"
	Orgs  = "orgs"
)

// KCP is a kcp with the repositories over it. Its methods are those of views.Views.
type KCP struct {
	*kcpfake.Server
	Stored objects.Objects
	Caches objects.Caches
	Roles  kcpfake.Cache[*rbacv1.Role]
	Spaces kcpfake.Cache[*corev1.Namespace]
	Clock  *clocktesting.FakePassiveClock
	Tree   tenancy.Tree
}

// New returns an empty KCP.
func New(t testing.TB) *KCP {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	s := kcpfake.NewAt(t, clock.Now)
	tree, err := tenancy.NewTree("root:kedge")
	require.NoError(t, err)
	caches := objects.Caches{
		Users: cache[*v1alpha1.User](s), Organizations: cache[*v1alpha1.Organization](s), Memberships: cache[*v1alpha1.Membership](s),
		Indexes: cache[*v1alpha1.UserMembershipIndex](s), Bots: cache[*v1alpha1.Bot](s), Sessions: cache[*v1alpha1.Session](s), Invitations: cache[*v1alpha1.Invitation](s), AccessRequests: cache[*v1alpha1.AccessRequest](s),
		CatalogEntries: cache[*v1alpha1.CatalogEntry](s), Workspaces: cache[*kcptenancyv1alpha1.Workspace](s),
		Bindings: cache[*kcpapisv1alpha2.APIBinding](s), ServiceAccounts: cache[*corev1.ServiceAccount](s), BotSecrets: cache[*corev1.Secret](s),
		ClusterRoles: cache[*rbacv1.ClusterRole](s), ClusterRoleBindings: cache[*rbacv1.ClusterRoleBinding](s), RoleBindings: cache[*rbacv1.RoleBinding](s),
	}
	return &KCP{
		Server: s, Stored: objects.New(s.Clients(), caches, tree), Caches: caches, Clock: clock, Tree: tree,
		Roles: cache[*rbacv1.Role](s), Spaces: cache[*corev1.Namespace](s),
	}
}

func cache[T kcp.Object](s *kcpfake.Server) kcpfake.Cache[T] { return kcpfake.Cache[T]{Server: s} }

// Behind is a cache that has nothing yet.
type Behind[T any] struct{}

// Get finds nothing.
func (Behind[T]) Get(string, string) (o T, ok bool) { return o, false }

// InCluster returns nothing.
func (Behind[T]) InCluster(string) []T { return nil }

// Converge runs passes until one writes nothing, or fails otherwise than by a conflict. It returns the time after which the last
// pass wants to be repeated.
func (k *KCP) Converge(t testing.TB, pass func() (controller.Result, error)) (time.Duration, error) {
	t.Helper()
	for range 50 {
		before := len(k.Writes())
		result, err := pass()
		if errors.Is(err, controller.ErrRetry) {
			continue
		}
		if err != nil || len(k.Writes()) == before {
			return result.RequeueAfter, err
		}
	}
	require.Fail(t, "it never comes to an end", "%v", k.Did())
	return 0, nil
}

// Change edits an object as another client does.
func Change[T kcp.Object](t testing.TB, k *KCP, cluster string, o T, edit func(T)) {
	t.Helper()
	require.True(t, k.Read(cluster, o))
	edit(o)
	o.SetGeneration(o.GetGeneration() + 1)
	k.Put(cluster, o)
	k.Read(cluster, o)
}

// Delete marks an object as deleted, as kcp does while it has finalizers.
func (k *KCP) Delete(t testing.TB, cluster string, o kcp.Object) {
	t.Helper()
	require.True(t, k.Read(cluster, o))
	now := metav1.NewTime(k.Clock.Now())
	o.SetDeletionTimestamp(&now)
	k.Put(cluster, o)
}

// ByName finds a User.
func (k *KCP) ByName(user string) (*v1alpha1.User, bool) { return k.Caches.Users.Get(Users, user) }

// Org returns an Organization and where its workspace is.
func (k *KCP) Org(uuid string) (tenancy.Org, bool) {
	o, ok := k.Caches.Organizations.Get(Orgs, uuid)
	if !ok {
		return tenancy.Org{}, false
	}
	org := tenancy.Org{Organization: o}
	if ws, ok := k.Caches.Workspaces.Get(Orgs, uuid); ok {
		org.ClusterID = ws.Spec.Cluster
	}
	return org, true
}

// OrgByCluster returns the Organization whose workspace is in the cluster.
func (k *KCP) OrgByCluster(cluster string) (tenancy.Org, bool) {
	for _, ws := range k.Caches.Workspaces.InCluster(Orgs) {
		if ws.Spec.Cluster == cluster {
			return k.Org(ws.Name)
		}
	}
	return tenancy.Org{}, false
}

// Workspaces returns the child Workspaces of an Organization.
func (k *KCP) Workspaces(org string) (all []tenancy.Workspace) {
	o, _ := k.Org(org)
	for _, ws := range k.Caches.Workspaces.InCluster(o.ClusterID) {
		all = append(all, tenancy.WorkspaceOf(org, ws))
	}
	return all
}

// Workspace returns a child Workspace of an Organization.
func (k *KCP) Workspace(org, workspace string) (tenancy.Workspace, bool) {
	o, _ := k.Org(org)
	ws, ok := k.Caches.Workspaces.Get(o.ClusterID, workspace)
	if !ok {
		return tenancy.Workspace{}, false
	}
	return tenancy.WorkspaceOf(org, ws), true
}

// MembershipsIn returns the living Memberships of an Organization.
func (k *KCP) MembershipsIn(orgCluster string) []*v1alpha1.Membership {
	return tenancy.Living(k.Caches.Memberships.InCluster(orgCluster), k.Clock.Now())
}

// MembershipsOf returns the living Memberships of a User.
func (k *KCP) MembershipsOf(user string) []*v1alpha1.Membership {
	return slices.DeleteFunc(k.MembershipsIn("*"), func(m *v1alpha1.Membership) bool { return m.Spec.UserRef.Name != user })
}

// WithGroup returns the Users with a group.
func (k *KCP) WithGroup(hash v1alpha1.GroupHash) []*v1alpha1.User {
	return slices.DeleteFunc(k.Caches.Users.InCluster(Users), func(u *v1alpha1.User) bool {
		return u.Spec.Groups == nil || !slices.Contains(u.Spec.Groups.Hashes, hash)
	})
}

// MembershipsOver returns the Memberships that grant rights in a Workspace of an Organization.
func (k *KCP) MembershipsOver(orgCluster, workspace string) (over []*v1alpha1.Membership) {
	for _, m := range k.Caches.Memberships.InCluster(orgCluster) {
		if of := tenancy.WorkspaceUUID(m); of == "" || of == workspace {
			over = append(over, m)
		}
	}
	return over
}

// Membership finds a Membership in an Organization by name.
func (k *KCP) Membership(orgCluster, name string) (*v1alpha1.Membership, bool) {
	return k.Caches.Memberships.Get(orgCluster, name)
}

// PutOrg adds a Ready Organization with its workspace in the cluster.
func (k *KCP) PutOrg(o *v1alpha1.Organization, cluster string) {
	k.Put(Orgs, o)
	k.PutWorkspace(Orgs, o.Name, cluster)
}

// PutWorkspace adds a Workspace that is Ready in kcp.
func (k *KCP) PutWorkspace(orgCluster, name, cluster string) {
	ws := &kcptenancyv1alpha1.Workspace{}
	ws.Name, ws.Spec.Cluster, ws.Status.Phase = name, cluster, kcpcorev1alpha1.LogicalClusterPhaseReady
	k.Put(orgCluster, ws)
}

// PutUser adds a User who is approved.
func (k *KCP) PutUser(name string) {
	u := &v1alpha1.User{Spec: v1alpha1.UserSpec{RBACIdentity: "kedge:" + name, Registration: v1alpha1.RegistrationApproved}}
	u.Name = name
	k.Put(Users, u)
}
