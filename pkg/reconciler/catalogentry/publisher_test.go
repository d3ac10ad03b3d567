package catalogentry

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/kcptest"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/test/doubles/kcpfake"
)

func TestPublisher_whoStandsForAnEntry(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	nobody := func(w *world) { w.Remove(provider, providerBinds()) }
	binding := func(edit func(*rbacv1.ClusterRoleBinding)) func(*world) { return func(w *world) { w.binding(edit) } }
	user := func(edit func(*v1alpha1.User)) func(*world) { return func(w *world) { w.user(edit) } }
	in := func(workspace string, role v1alpha1.Role) *v1alpha1.Membership {
		return tenancy.NewMembership("alice", workspace, role)
	}
	alice := func(memberships ...*v1alpha1.Membership) func(*world) {
		return func(w *world) { w.alice(memberships...) }
	}
	onlyAdmins := func(w *world) {
		w.organization(func(o *v1alpha1.Organization) { o.Spec.CatalogEntryCreation = v1alpha1.WhoAdmin })
	}
	for name, c := range map[string]struct {
		change func(*world)
		// problem is a part of the message; empty if the entry is granted.
		problem string
	}{
		"whom the provider names": {change: func(*world) {}},
		"as everybody": {change: binding(func(b *rbacv1.ClusterRoleBinding) {
			b.Subjects[0] = subject(rbacv1.GroupKind, "system:authenticated")
		})},
		"with all rights of the workspace": {change: binding(func(b *rbacv1.ClusterRoleBinding) { b.RoleRef.Name = "cluster-admin" })},
		"with a role for all exports":      {change: func(w *world) { w.Put(provider, bindRole()) }},
		"where a Global entry has it": {change: func(w *world) {
			nobody(w)
			e := &v1alpha1.CatalogEntry{Spec: v1alpha1.CatalogEntrySpec{Slug: "gadgets", APIExport: w.entry.Spec.APIExport}}
			e.Name = "global"
			e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSlugUnique, Status: metav1.ConditionTrue}}
			w.Put(providers, e)
		}},
		"the platform": {change: func(w *world) {
			nobody(w)
			w.Remove(kcptest.Users, person("alice"))
			w.change(func(e *v1alpha1.CatalogEntry) { e.Spec.PublishedBy = &v1alpha1.CatalogPublisher{Platform: true} })
		}},
		"nobody": {change: func(w *world) {
			w.change(func(e *v1alpha1.CatalogEntry) { e.Spec.PublishedBy = nil })
		}, problem: "does not say who published it"},
		"whom the provider does not name": {change: nobody, problem: "does not let its publisher, alice"},
		"in a group of others": {change: binding(func(b *rbacv1.ClusterRoleBinding) {
			b.Subjects[0] = subject(rbacv1.GroupKind, "oidc:team")
		}), problem: "does not let"},
		"a ServiceAccount of that name": {change: binding(func(b *rbacv1.ClusterRoleBinding) {
			b.Subjects[0] = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "oidc:alice", Namespace: "default"}
		}), problem: "does not let"},
		"with a role for another export": {change: func(w *world) {
			w.Put(provider, bindRole("gadgets.example.org"))
		}, problem: "does not let"},
		"with a role that is gone":   {change: func(w *world) { w.Remove(provider, bindRole()) }, problem: "does not let"},
		"who is gone":                {change: func(w *world) { w.Remove(kcptest.Users, person("alice")) }, problem: "is not active"},
		"who is another of the name": {change: user(func(u *v1alpha1.User) { u.UID = "another" }), problem: "is not active"},
		"whose account is deleted": {change: user(func(u *v1alpha1.User) {
			u.Status.DeletionRequestedAt = &now
		}), problem: "is not active"},
		"who was rejected": {change: user(func(u *v1alpha1.User) {
			u.Spec.Registration = v1alpha1.RegistrationRejected
		}), problem: "is not active"},
		"who has left the organization": {change: alice(), problem: "is not a member"},
		"whose membership is being removed": {change: func(w *world) {
			w.Delete(w.t, "org1", in("", v1alpha1.RoleAdmin))
		}, problem: "is not a member"},
		"who is in another organization": {change: func(w *world) {
			w.alice()
			w.Put("org2", in("", v1alpha1.RoleAdmin))
		}, problem: "is not a member"},
		"who is in one of its workspaces": {change: alice(in(wsUUID, v1alpha1.RoleAdmin)), problem: "is not a member"},
		"a member":                        {change: alice(in("", v1alpha1.RoleMember))},
		"a member where only admins publish": {change: func(w *world) {
			w.alice(in("", v1alpha1.RoleMember))
			onlyAdmins(w)
		}, problem: "is not an admin"},
		"an admin where only admins publish": {change: onlyAdmins},
		"an admin of its workspace":          {change: func(w *world) { nobody(w); w.at(ownPath) }},
		"an admin of its workspace alone": {change: func(w *world) {
			nobody(w)
			w.at(ownPath)
			w.alice(in("", v1alpha1.RoleMember), in(wsUUID, v1alpha1.RoleAdmin))
		}},
		"a member of its workspace": {change: func(w *world) {
			w.at(ownPath)
			w.alice(in("", v1alpha1.RoleMember), in(wsUUID, v1alpha1.RoleMember))
		}, problem: "is not an admin of the workspace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.admin("bob")
			c.change(w)
			w.converged()
			got := w.condition(v1alpha1.ConditionPublisherMayBind)
			if c.problem == "" {
				require.Equal(t, metav1.ConditionTrue, got.Status, got.Message)
				require.NotEmpty(t, w.bound())
				require.False(t, tenancy.RightEnded(w.entry))
				return
			}
			require.Equal(t, metav1.ConditionFalse, got.Status)
			require.Contains(t, got.Message, c.problem)
			require.Empty(t, w.bound())
			require.True(t, tenancy.RightEnded(w.entry))
			require.Equal(t, v1alpha1.PhaseProgressing, w.entry.Status.Phase)
		})
	}
}

// The grant of the entry names its publisher, and does not vouch for them.
func TestPublisher_whoLosesTheRightLosesTheGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admin("bob")
	w.converged()
	require.Equal(t, []string{"oidc:alice", "oidc:bob"}, w.bound(), "the control")

	w.Remove(provider, providerBinds())
	// A grant of the hub without its label is still one of the hub.
	kcptest.Change(t, w.KCP, provider, w.bindings()[0], func(b *rbacv1.ClusterRoleBinding) { b.Labels = nil })
	require.NoError(t, w.pass())
	require.Empty(t, w.bound())
	require.NotNil(t, w.entry.Status.Export, "what is enabled goes on")

	w.provide()
	w.converged()
	require.Equal(t, []string{"oidc:alice", "oidc:bob"}, w.bound(), "the right came back")
}

// An entry that is granted stays so if its Organization lets only admins publish from now on. One
// that is not granted is judged as a new one.
func TestPublisher_theSettingIsForNewEntries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admin("bob")
	w.alice(tenancy.NewMembership("alice", "", v1alpha1.RoleMember))
	w.converged()
	w.organization(func(o *v1alpha1.Organization) { o.Spec.CatalogEntryCreation = v1alpha1.WhoAdmin })
	w.converged()
	require.Equal(t, []string{"oidc:bob"}, w.bound())
	w.Remove(provider, providerBinds())
	w.converged()
	w.provide()
	w.converged()
	require.Empty(t, w.bound())
	require.Contains(t, w.condition(v1alpha1.ConditionPublisherMayBind).Message, "only admins may publish")
}

func TestPublisher_keepsTheVerdictWhileKCPIsDown(t *testing.T) {
	t.Parallel()
	for name, granted := range map[string]bool{"granted": true, "not granted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			right := map[bool]func(){true: w.provide, false: func() { w.Remove(provider, providerBinds()) }}
			right[granted]()
			w.converged()
			before := w.condition(v1alpha1.ConditionPublisherMayBind)
			right[!granted]()
			w.FailBefore(func(r kcpfake.Request) error {
				if r.Resource == "clusterrolebindings" {
					return apierrors.NewInternalError(kcptest.ErrDown)
				}
				return nil
			})
			require.ErrorIs(t, w.pass(), controller.ErrRetry)
			require.Equal(t, before, w.condition(v1alpha1.ConditionPublisherMayBind))
			require.Equal(t, granted, len(w.bound()) > 0)
			w.FailBefore(nil)
			w.converged()
			require.Equal(t, !granted, len(w.bound()) > 0, "kcp answers again")
		})
	}
}

// A provider that is away for a moment does not hide the entry: it is not found, and that is all.
func TestPublisher_isNotAskedWithoutTheExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.converged()
	w.Remove(provider, apiExport())
	w.Remove(provider, providerBinds())
	w.converged()
	require.Equal(t, metav1.ConditionTrue, w.condition(v1alpha1.ConditionPublisherMayBind).Status)
	require.Empty(t, w.bound(), "nothing is granted without the export")
	w.Put(provider, apiExport())
	w.converged()
	require.Equal(t, metav1.ConditionFalse, w.condition(v1alpha1.ConditionPublisherMayBind).Status)
}
