package bot

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/internal/objects"
	"github.com/faroshq/kedge-hub/pkg/revocation"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of Bots.
func NewController(d reconciler.Deps) *controller.Controller {
	c := d.Controller(controller.Options{Name: "bot", All: reconciler.Keys(d.Views.Bots.Keys)}, New(configOf(d)))
	all := func(bots []*v1alpha1.Bot) {
		for _, b := range bots {
			c.Enqueue(controller.Key{Cluster: kcp.ClusterOf(b), Name: b.Name})
		}
	}
	d.Views.Bots.OnChange(func(b views.Change[*v1alpha1.Bot]) {
		ends := b.Ends(func(b *v1alpha1.Bot) any {
			return []any{b.Spec.Role, b.Status.AuthorizedRole, b.Spec.Generation, b.Spec.Tokens}
		})
		reconciler.Enqueue(c, ends)(controller.Key{Cluster: b.Cluster(), Name: b.Object().Name})
	})
	d.OnOrgMoved(func(org tenancy.Org) { all(d.Views.Bots.InCluster(org.ClusterID)) })
	d.OnWorkspaceMoved(func(ws controller.Key) { all(d.Views.BotsAt(ws.Cluster, ws.Name)) })
	of := func(o kcp.Object) {
		if key, ok := d.Views.BotKeyOf(o); ok {
			c.Enqueue(controller.Key(key))
		}
	}
	d.Views.ServiceAccounts.OnChange(func(a views.Change[*corev1.ServiceAccount]) { of(a.Object()) })
	d.Views.BotSecrets.OnChange(func(s views.Change[*corev1.Secret]) { of(s.Object()) })
	d.Views.ClusterRoleBindings.OnChange(func(b views.Change[*rbacv1.ClusterRoleBinding]) { of(b.Object()) })
	return c
}

func configOf(d reconciler.Deps) Config {
	return Config{
		Clock: d.Settings.Clock, Cache: cacheOf(d), Bots: botsOf(d), Accounts: accountsOf(d),
		Rights: revocation.Reviews{
			Clients: d.Clients, User: d.Views.ByName, Bot: d.Views.BotOfAccount, ClusterRole: d.Views.ClusterRoles.Get,
		},
		Bindings: Bindings{
			Find: func(ctx context.Context, cluster, name string) (*rbacv1.ClusterRoleBinding, bool, error) {
				return objects.Find(ctx, d.Clients.ClusterRoleBindings(cluster), name)
			},
			Write: func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error {
				return objects.Replace(ctx, d.Clients.ClusterRoleBindings(cluster), b)
			},
			Delete: func(ctx context.Context, cluster string, b *rbacv1.ClusterRoleBinding) error {
				return objects.Delete(ctx, d.Clients.ClusterRoleBindings(cluster), b)
			},
		},
		Secrets: Secrets{
			Find: func(ctx context.Context, cluster, name string) (*corev1.Secret, bool, error) {
				return objects.Find(ctx, d.Clients.Secrets(cluster, tenancy.DefaultNamespace), name)
			},
			Delete: func(ctx context.Context, cluster string, s *corev1.Secret) error {
				return objects.Delete(ctx, d.Clients.Secrets(cluster, tenancy.DefaultNamespace), s)
			},
		},
		WorkspaceExists: func(ctx context.Context, orgCluster, workspace string) (bool, error) {
			return objects.Exists(ctx, d.Clients.Workspaces(orgCluster), workspace)
		},
	}
}

func cacheOf(d reconciler.Deps) Cache {
	return Cache{
		Workspace: func(orgCluster, workspace string) (ws tenancy.Workspace, deleted, ok bool) {
			org, ok := d.Views.OrgByCluster(orgCluster)
			if !ok || org.Organization == nil {
				return tenancy.Workspace{}, false, false
			}
			ws, ok = d.Views.Workspace(org.UUID(), workspace)
			return ws, org.Deleted() || ws.Deleted(), ok
		},
		Account: func(cluster, name string) (*corev1.ServiceAccount, bool) {
			return d.Views.ServiceAccounts.Get(cluster, tenancy.NamespacedName(tenancy.DefaultNamespace, name))
		},
		Bindings: func(cluster, bot string) []*rbacv1.ClusterRoleBinding {
			return ofBot(d.Views.ClusterRoleBindings.InCluster(cluster), bot)
		},
		Secrets: func(cluster, bot string) []*corev1.Secret { return ofBot(d.Views.BotSecrets.InCluster(cluster), bot) },
	}
}

func ofBot[T metav1.Object](all []T, bot string) []T {
	return slices.DeleteFunc(slices.Clone(all), func(o T) bool { return !tenancy.OfBot(o, bot) })
}

func botsOf(d reconciler.Deps) Bots {
	return Bots{
		Get: func(key controller.Key) (*v1alpha1.Bot, bool) {
			if _, ok := d.Views.OrgByCluster(key.Cluster); !ok || d.OrgDeactivated(key.Cluster) {
				return nil, false
			}
			return d.Views.Bots.Get(key.Cluster, key.Name)
		},
		Patch: objects.Commit(d.Clients.Bots),
		Read: func(ctx context.Context, orgCluster, name string) (*v1alpha1.Bot, error) {
			return objects.Read(ctx, d.Clients.Bots(orgCluster), name)
		},
		Delete: func(ctx context.Context, orgCluster string, b *v1alpha1.Bot) error {
			return objects.DeleteUnchanged(ctx, d.Clients.Bots(orgCluster), b)
		},
	}
}

func accountsOf(d reconciler.Deps) Accounts {
	accounts := func(cluster string) *kcp.Client[*corev1.ServiceAccount] {
		return d.Clients.ServiceAccounts(cluster, tenancy.DefaultNamespace)
	}
	return Accounts{
		Find: func(ctx context.Context, cluster, name string) (*corev1.ServiceAccount, bool, error) {
			return objects.Find(ctx, accounts(cluster), name)
		},
		Create: func(ctx context.Context, cluster string, a *corev1.ServiceAccount) (*corev1.ServiceAccount, error) {
			made, err := accounts(cluster).Create(ctx, a, metav1.CreateOptions{FieldManager: kcp.FieldManager})
			return made, objects.Retryable(err)
		},
		Mend: func(ctx context.Context, cluster string, have, want *corev1.ServiceAccount) error {
			return objects.Merge(ctx, accounts(cluster), have, map[string]any{"metadata": map[string]any{
				"labels": want.Labels, "annotations": want.Annotations,
			}})
		},
		Delete: func(ctx context.Context, cluster string, a *corev1.ServiceAccount) error {
			return objects.Delete(ctx, accounts(cluster), a)
		},
	}
}
