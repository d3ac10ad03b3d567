package server

import (
	"fmt"
	"testing"
	"time"

	kcpapisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	kcpcorev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	kcptenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// flush waits until all earlier changes of the object's kind have been handled. It
// changes an object that nobody else has, twice: the second change is cached when the
// handlers of the first have returned, and with it those of all changes before.
func (p *platform) flush(t *testing.T, of kcp.Object) {
	t.Helper()
	probe := of.DeepCopyObject().(kcp.Object)
	probe.SetResourceVersion("")
	probe.SetUID("")
	probe.SetLabels(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByHub, v1alpha1.BotAccountLabel: "true", kcptenancyv1alpha1.WorkspacePhaseLabel: "Unavailable"})
	cluster, name := sentinel, sentinel
	switch probe := probe.(type) {
	case *kcptenancyv1alpha1.Workspace:
		probe.Spec.Cluster = ""
	case *v1alpha1.Membership:
		probe.Spec.UserRef.Name, probe.Spec.WorkspaceRef = sentinel, nil
	case *v1alpha1.Session:
		cluster, probe.Spec.UserRef.Name = usersCluster, sentinel
	case *v1alpha1.User:
		cluster, probe.Spec.Groups = usersCluster, nil
	case *v1alpha1.UserMembershipIndex:
		cluster = usersCluster
	case *v1alpha1.Organization:
		cluster = orgsCluster
	case *kcpcorev1alpha1.LogicalCluster:
		name = probe.Name
	}
	probe.SetName(name)
	for range 2 {
		version := p.Put(cluster, probe).GetResourceVersion()
		require.Eventually(t, func() bool { return p.cached(of, cluster, name, version) }, 10*time.Second, time.Millisecond, "%T", of)
	}
}

// cached tells whether every informer of the object's kind has the version.
func (p *platform) cached(of kcp.Object, cluster, name, version string) bool {
	is := func(o metav1.Object, ok bool) bool { return ok && o.GetResourceVersion() == version }
	switch of.(type) {
	case *v1alpha1.User:
		return is(get(p.v.Users, cluster, name))
	case *v1alpha1.UserMembershipIndex:
		return is(get(p.v.Indexes, cluster, name))
	case *v1alpha1.Bot:
		return is(get(p.v.Bots, cluster, name))
	case *v1alpha1.Invitation:
		return is(get(p.v.Invitations, cluster, name))
	case *v1alpha1.AccessRequest:
		return is(get(p.v.AccessRequests, cluster, name))
	case *v1alpha1.CatalogEntry:
		return is(get(p.v.CatalogEntries, cluster, name))
	case *corev1.ServiceAccount:
		return is(get(p.v.ServiceAccounts, cluster, tenancy.NamespacedName(tenancy.DefaultNamespace, name)))
	case *corev1.Secret:
		return is(get(p.v.BotSecrets, cluster, tenancy.NamespacedName(tenancy.DefaultNamespace, name)))
	case *v1alpha1.Session:
		return is(get(p.v.Sessions, cluster, name))
	case *v1alpha1.Organization:
		return is(get(p.v.Organizations, cluster, name))
	case *kcptenancyv1alpha1.Workspace:
		return is(get(p.v.ChildWorkspaces, cluster, name))
	case *v1alpha1.Membership:
		return is(get(p.v.Memberships, cluster, name))
	case *corev1.Namespace:
		return is(get(p.v.Namespaces, cluster, name))
	case *rbacv1.ClusterRole:
		return is(get(p.v.ClusterRoles, cluster, name))
	case *rbacv1.ClusterRoleBinding:
		return is(get(p.v.ClusterRoleBindings, cluster, name))
	case *rbacv1.Role:
		return is(get(p.v.Roles, cluster, tenancy.NamespacedName(of.GetNamespace(), name)))
	case *rbacv1.RoleBinding:
		return is(get(p.v.RoleBindings, cluster, tenancy.NamespacedName(of.GetNamespace(), name)))
	case *kcpapisv1alpha2.APIBinding:
		return is(get(p.v.Bindings, cluster, name)) && is(get(p.v.OrgBindings, cluster, name))
	case *kcpcorev1alpha1.LogicalCluster:
		return is(get(p.v.Initializing, cluster, name)) && is(get(p.v.Inactive, cluster, name))
	}
	panic(fmt.Sprintf("no informer of %T", of))
}

func get[T kcp.Object](in *views.Kind[T], cluster, name string) (metav1.Object, bool) {
	return in.Get(cluster, name)
}
