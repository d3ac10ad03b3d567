package verify

import (
	"strings"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// bots compares the Bots with what they have in their Workspaces.
func (c *comparison) bots() {
	for b := range c.Views.Bots.All() {
		c.compared++
		if b.DeletionTimestamp.IsZero() {
			c.bot(b)
		}
	}
	for a := range c.Views.ServiceAccounts.All() {
		c.compared++
		c.orphan(KindBot, a, "serviceaccounts", "an account of no bot")
	}
	for s := range c.Views.BotSecrets.All() {
		c.compared++
		c.orphan(KindBotToken, s, "secrets", "a token of no bot")
	}
	for b := range c.Views.ClusterRoleBindings.All() {
		c.orphan(KindBinding, b, "clusterrolebindings", "a binding of no bot")
	}
}

// orphan adds what was made for a Bot that does not exist.
func (c *comparison) orphan(kind string, o kcp.Object, resource, found string) {
	key, ok := c.Views.BotKeyOf(o)
	if !ok || c.gone(kcp.ClusterOf(o)) {
		return
	}
	if _, ok := c.Views.Bots.Get(key.Cluster, key.Name); ok {
		return
	}
	command := []string{"kubectl delete", resource, o.GetName()}
	if o.GetNamespace() != "" {
		command = append(command, "--namespace", o.GetNamespace())
	}
	c.add(Difference{Kind: kind, Place: c.place(kcp.ClusterOf(o)), Name: o.GetName(), Wanted: Nothing, Found: found, ToDo: strings.Join(command, " ")})
}

// gone reports whether a logical cluster is of a Workspace that is deleted, with its Organization or by itself.
func (c *comparison) gone(cluster string) bool {
	at := c.Views.Cluster(cluster)
	org, ok := c.Views.Org(at.OrgUUID)
	ws, found := c.Views.Workspace(at.OrgUUID, at.WorkspaceUUID)
	return !ok || !found || org.Deleted() || ws.Deleted()
}

func (c *comparison) bot(b *v1alpha1.Bot) {
	parent := kcp.ClusterOf(b)
	org, ok := c.Views.OrgByCluster(parent)
	if !ok || org.Organization == nil || org.Deleted() {
		return
	}
	d := Difference{Kind: KindBot, Place: c.place(parent), Name: b.Name}.healedBy("bot", controller.Key{Cluster: parent, Name: b.Name})
	ws, ok := c.Views.Workspace(org.UUID(), b.Spec.WorkspaceRef.Name)
	switch {
	case !ok:
		d.Wanted, d.Found = Nothing, "a bot of a Workspace that does not exist"
		c.add(d)
		return
	case ws.Deleted() || !ws.KCPReady || !c.isMade(b.CreationTimestamp, b.Status.Phase):
		return
	}
	d.Place = c.place(ws.ClusterID)
	if tenancy.RoleLowered(b) {
		lowered := d
		lowered.Wanted, lowered.Found = "the role "+string(b.Spec.Role), "kcp allows the role "+string(b.Status.AuthorizedRole)
		c.add(lowered)
	}
	d.Wanted = "the account " + b.Status.ServiceAccountUID
	account, ok := c.Views.ServiceAccounts.Get(ws.ClusterID, tenancy.NamespacedName(tenancy.DefaultNamespace, b.Name))
	switch {
	case !ok:
		d.Found = Nothing
		c.add(d)
		return
	case string(account.UID) != b.Status.ServiceAccountUID:
		d.Found = "the account " + string(account.UID)
		c.add(d)
		return
	case !tenancy.SameBotAccount(account, tenancy.BotAccount(b)):
		d.Found = d.Wanted + ", with other labels or annotations"
		c.add(d)
	}
	var held []tenancy.RBAC
	for _, o := range c.Views.ClusterRoleBindings.InCluster(ws.ClusterID) {
		if tenancy.OfBot(o, b.Name) {
			held = append(held, o)
		}
	}
	c.rbac(d, ws.ClusterID, tenancy.CompareRBAC(held, []tenancy.RBAC{tenancy.BotBinding(b, string(account.UID))}, false))
	c.tokens(d, ws.ClusterID, b)
}

// tokens compares the tokens that a Bot lists with the Secrets that they are bound to.
func (c *comparison) tokens(d Difference, cluster string, b *v1alpha1.Bot) {
	d.Kind = KindBotToken
	uids := map[string]string{}
	for _, s := range c.Views.BotSecrets.InCluster(cluster) {
		id, ok := tenancy.TokenOfSecret(s)
		if !tenancy.OfBot(s, b.Name) {
			continue
		}
		if _, listed := tenancy.FindToken(b.Spec.Tokens, id); !ok || !listed {
			d.Name, d.Wanted, d.Found = s.Name, Nothing, "the Secret of a token that the bot "+b.Name+" does not list"
			c.add(d)
		}
		uids[id] = string(s.UID)
	}
	kept := tenancy.KeptTokens(b, c.now, c.Settings.CIIssuers, func(id string) string { return uids[id] })
	for _, t := range b.Spec.Tokens {
		if _, ok := tenancy.FindToken(kept, t.ID); !ok {
			d.Name, d.Wanted, d.Found = t.ID, Nothing, "a token in the list of the bot "+b.Name+" that cannot work"
			c.add(d)
		}
	}
}
