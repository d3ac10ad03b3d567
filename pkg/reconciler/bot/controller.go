package bot

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/revocation"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/views"
)

// NewController returns the controller of Bots.
func NewController(d reconciler.Deps) *controller.Controller {
	c := d.Controller(controller.Options{Name: "bot", All: reconciler.Keys(d.Views.Bots.Keys)}, New(Config{
		Objects: d.Objects(), Clock: d.Settings.Clock, RightsClock: d.Settings.RightsClock,
		Views: d.Views, Issuers: d.Settings.CIIssuers,
		Rights: revocation.Reviews{
			Clients: d.Clients, User: d.Views.ByName, Bot: d.Views.BotOfAccount, ClusterRole: d.Views.ClusterRoles.Get,
		},
	}))
	all := func(bots []*v1alpha1.Bot) {
		for _, b := range bots {
			c.Enqueue(controller.Key{Cluster: kcp.ClusterOf(b), Name: b.Name})
		}
	}
	d.Views.Bots.OnChange(func(b views.Change[*v1alpha1.Bot]) {
		ends := b.Ends(func(b *v1alpha1.Bot) any {
			return []any{b.Spec.Role, b.Status.AuthorizedRole, b.Spec.Generation, b.Spec.Tokens, b.Spec.Trust}
		})
		reconciler.Enqueue(c, ends)(controller.Key{Cluster: b.Cluster(), Name: b.Object().Name})
	})
	d.OnOrgMoved(reconciler.OrgDeletion, func(org tenancy.Org) { all(d.Views.Bots.InCluster(org.ClusterID)) })
	d.OnWorkspaceMoved(reconciler.WorkspaceState, func(ws controller.Key) { all(d.Views.BotsAt(ws.Cluster, ws.Name)) })
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
