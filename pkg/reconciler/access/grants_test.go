package access_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// rights is a fake of one Workspace, with its Memberships, bindings and roles.
type rights struct {
	mu          sync.Mutex
	memberships []*v1alpha1.Membership
	deleted     map[string]bool
	bindings    map[string]*rbacv1.ClusterRoleBinding
	roles       map[string]*rbacv1.ClusterRole
	namespaced  map[string]*rbacv1.RoleBinding
	inNamespace map[string]*rbacv1.Role
	namespaces  map[string]bool
	bindable    []string
	fails       string
	did         []string
}

func newRights(memberships ...*v1alpha1.Membership) *rights {
	return &rights{
		memberships: memberships, deleted: map[string]bool{},
		bindings: map[string]*rbacv1.ClusterRoleBinding{}, roles: map[string]*rbacv1.ClusterRole{},
		namespaced: map[string]*rbacv1.RoleBinding{}, inNamespace: map[string]*rbacv1.Role{}, namespaces: map[string]bool{},
	}
}

func (r *rights) write(what string, do func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if what == r.fails {
		return errors.New("kcp cannot be reached")
	}
	r.did = append(r.did, what)
	do()
	return nil
}

var key = controller.Key{Cluster: "org", Name: "w"}

func (r *rights) reconciler() *access.Reconciler {
	return access.New(access.Cache{
		Workspace: func(controller.Key) (tenancy.Org, tenancy.Workspace, bool) {
			return tenancy.Org{Organization: tenancy.NewOrganization("o", "O", "alice")}, tenancy.Workspace{UUID: "w", ClusterID: "c", KCPReady: true}, true
		},
		Memberships: func(string, string) []*v1alpha1.Membership { return slices.Clone(r.memberships) },
		Membership:  func(_, name string) (*v1alpha1.Membership, bool) { return named(r.memberships, name) },
		User: func(name string) (*v1alpha1.User, bool) {
			u := &v1alpha1.User{Spec: v1alpha1.UserSpec{RBACIdentity: "kedge:" + name}}
			u.Name = name
			if r.deleted[name] {
				now := metav1.Now()
				u.Status.DeletionRequestedAt = &now
			}
			return u, name != ""
		},
		Bindings: func(string) []*rbacv1.ClusterRoleBinding {
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.Collect(maps.Values(r.bindings))
		},
		ClusterRoles: func(string) []*rbacv1.ClusterRole {
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.Collect(maps.Values(r.roles))
		},
		NamespacedBindings: func(string) []*rbacv1.RoleBinding {
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.Collect(maps.Values(r.namespaced))
		},
		Roles: r.source,
	}, access.Writes{
		WriteNamespacedBinding: func(_ context.Context, _ string, o *rbacv1.RoleBinding) error {
			return r.write("write "+o.Namespace+"/"+o.Name, func() { r.namespaced[o.Namespace+"/"+o.Name] = o })
		},
		RemoveNamespacedBinding: func(_ context.Context, _ string, o *rbacv1.RoleBinding) error {
			return r.write("remove "+o.Namespace+"/"+o.Name, func() { delete(r.namespaced, o.Namespace+"/"+o.Name) })
		},
		WriteRole: func(_ context.Context, _ string, o *rbacv1.ClusterRole) error {
			return r.write("write role "+o.Name, func() { r.roles[o.Name] = o })
		},
		RemoveRole: func(_ context.Context, _ string, o *rbacv1.ClusterRole) error {
			return r.write("remove role "+o.Name, func() { delete(r.roles, o.Name) })
		},
		WriteBinding: func(_ context.Context, _ string, o *rbacv1.ClusterRoleBinding) error {
			return r.write("write "+o.Name, func() { r.bindings[o.Name] = o })
		},
		RemoveBinding: func(_ context.Context, _ string, o *rbacv1.ClusterRoleBinding) error {
			return r.write("remove "+o.Name, func() { delete(r.bindings, o.Name) })
		},
	})
}

// reconcile requires that one pass writes everything and that a second pass writes
// nothing.
func (r *rights) reconcile(t *testing.T) {
	t.Helper()
	a := r.reconciler()
	_, err := a.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Zero(t, a.Missing(key))
	r.did = nil
	_, err = a.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, r.did, "what is right is left alone")
}

func (r *rights) names() []string { return slices.Sorted(maps.Keys(r.bindings)) }

// source has the roles, and the admin role that the hub keeps in every Workspace.
func (r *rights) source(string) tenancy.RoleSource {
	return tenancy.RoleSource{
		ClusterRole: func(name string) (*rbacv1.ClusterRole, bool) {
			if name == tenancy.ClusterRoleAdmin {
				return tenancy.ClusterRoles(nil)[0], true
			}
			o, ok := r.roles[name]
			return o, ok
		},
		Role: func(namespace, name string) (*rbacv1.Role, bool) {
			o, ok := r.inNamespace[namespace+"/"+name]
			return o, ok
		},
		Namespace: func(name string) (metav1.Object, bool) { return &metav1.ObjectMeta{Name: name}, r.namespaces[name] },
		Bindable:  r.bindable,
	}
}

func further(names ...string) []v1alpha1.RoleRef {
	var refs []v1alpha1.RoleRef
	for _, name := range names {
		refs = append(refs, v1alpha1.RoleRef{Name: name})
	}
	return refs
}

// tenants returns a tenant's ClusterRole as it is in the cache.
func tenants(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{}
	r.Name = name
	r.Annotations = map[string]string{tenancy.RulesAnnotation: tenancy.EncodeRules(rules)}
	return r
}

func TestGrants_bindExistingRolesAndNeverReservedOnes(t *testing.T) {
	t.Parallel()
	r := newRights(tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, further("view", "later", "cluster-admin", "kedge:workspace:admin", "system:x"), false))
	for _, name := range []string{"view", "cluster-admin", "kedge:workspace:admin", "system:x"} {
		r.roles[name] = tenants(name)
	}
	r.reconcile(t)
	view := tenancy.ExtraBindingName("view", "bob")
	require.Equal(t, []string{view, "kedge:workspace:member:user:bob"}, r.names())
	require.Equal(t, "view", r.bindings[view].RoleRef.Name)
	require.Equal(t, "kedge:bob", r.bindings[view].Subjects[0].Name)

	r.roles["later"] = tenants("later")
	r.reconcile(t)
	require.Contains(t, r.names(), tenancy.ExtraBindingName("later", "bob"))
	r.roles["later"].DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	r.reconcile(t)
	require.NotContains(t, r.names(), tenancy.ExtraBindingName("later", "bob"))
	delete(r.roles, "view")
	r.reconcile(t)
	require.NotContains(t, r.names(), view)
	require.Contains(t, r.roles, "cluster-admin", "a tenant's roles are left alone")
}

func TestGrants_giveAndTakeSudoWithTheMembership(t *testing.T) {
	t.Parallel()
	const ofBob, ofCarol, shared = "kedge:workspace:sudo:user:bob", "kedge:workspace:sudo:user:carol", "kedge:workspace:sudo"
	r := newRights(
		tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, nil, true),
		tenancy.NewWorkspaceMembership("carol", "w", v1alpha1.RoleMember, nil, true),
		tenancy.NewWorkspaceMembership("dave", "other", v1alpha1.RoleMember, nil, true),
	)
	r.reconcile(t)
	require.Equal(t, []string{ofBob, ofCarol}, slices.Sorted(maps.Keys(r.roles)))
	require.Subset(t, r.names(), []string{ofBob, ofCarol, shared})

	// A role that was altered by hand is repaired.
	r.roles[ofBob] = r.roles[ofBob].DeepCopy()
	r.roles[ofBob].Rules[0].ResourceNames = nil
	require.Equal(t, 1, r.reconciler().MissingOf(key, "bob"))
	require.Zero(t, r.reconciler().MissingOf(key, "carol"))
	r.reconcile(t)
	require.Equal(t, []string{"kedge:bob"}, r.roles[ofBob].Rules[0].ResourceNames)

	r.memberships[0].Spec.Sudo = false
	require.Equal(t, 2, r.reconciler().MissingOf(key, "bob"), "the role and its binding")
	r.reconcile(t)
	require.Contains(t, r.names(), shared, "somebody else has sudo")
	require.NotContains(t, r.names(), ofBob)
	r.deleted["carol"] = true
	r.reconcile(t)
	require.Empty(t, r.roles)
	require.Equal(t, []string{"kedge:workspace:member:user:bob"}, r.names(), "O-8: who is deleted has nothing")
}

// Whichever write fails, the next pass ends in the same state.
func TestO11_accessGoesOnFromAnyStop(t *testing.T) {
	t.Parallel()
	arrange := func() *rights {
		r := newRights(tenancy.NewWorkspaceMembership("gone", "w", v1alpha1.RoleMember, nil, true))
		r.memberships = append(r.memberships, tenancy.NewMembership("admin", "w", v1alpha1.RoleAdmin))
		r.reconcile(t)
		r.memberships = []*v1alpha1.Membership{
			tenancy.NewMembership("alice", "", v1alpha1.RoleAdmin), tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleMember, nil, true),
		}
		return r
	}
	control := arrange()
	_, err := control.reconciler().Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.NotEmpty(t, control.did)
	for _, fails := range control.did {
		r := arrange()
		r.fails = fails
		_, err := r.reconciler().Reconcile(t.Context(), key)
		require.Error(t, err, fails)
		require.Positive(t, r.reconciler().Missing(key), "it does not say that all is well")
		r.fails, r.did = "", nil
		_, err = r.reconciler().Reconcile(t.Context(), key)
		require.NoError(t, err)
		r.reconcile(t)
		require.Equal(t, control.names(), r.names(), fails)
		require.Equal(t, slices.Sorted(maps.Keys(control.roles)), slices.Sorted(maps.Keys(r.roles)), fails)
	}
}

func TestRightsThatEnd_goWithTheirBindingsAlone(t *testing.T) {
	t.Parallel()
	const admins, members, elevated = "kedge:workspace:admin:user:bob", "kedge:workspace:member:user:bob", "kedge:workspace:sudo:user:bob"
	bob, dave := tenancy.NewWorkspaceMembership("bob", "w", v1alpha1.RoleAdmin, nil, false), tenancy.NewWorkspaceMembership("dave", "w", v1alpha1.RoleMember, nil, false)
	for _, tc := range []struct {
		name string
		end  func(r *rights)
		want []string
	}{
		{"demoted", func(*rights) { bob.Spec.Role = v1alpha1.RoleMember }, []string{"remove " + admins, "write " + members}},
		{"removed", func(r *rights) { r.memberships = r.memberships[1:] }, []string{"remove " + admins}},
		{"a member", func(r *rights) { r.memberships = r.memberships[:1] }, []string{"remove kedge:workspace:member:user:dave"}},
		{"elevated", func(r *rights) {
			bob.Spec.Role, bob.Spec.Sudo = v1alpha1.RoleMember, true
			r.reconcile(t)
			bob.Spec.Sudo, r.did = false, nil
		}, []string{"remove " + elevated, "remove kedge:workspace:sudo", "remove role kedge:workspace:sudo:user:bob"}},
		{"a binding with the labels of the hub's", func(r *rights) {
			b := r.bindings[admins].DeepCopy()
			b.Name = "own"
			r.bindings[b.Name] = b
		}, []string{"remove own"}},
	} {
		bob.Spec.Role, bob.Spec.Sudo = v1alpha1.RoleAdmin, false
		r := newRights(bob, dave)
		r.reconcile(t)
		tc.end(r)
		_, err := r.reconciler().Reconcile(t.Context(), key)
		require.NoError(t, err, tc.name)
		require.ElementsMatch(t, tc.want, r.did, tc.name)
		r.reconcile(t)
	}
}
