package views

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// bots finds Bots.
type bots struct {
	// workspaces has the logical cluster of the Org and the UUID of the Workspace.
	workspaces *index[Key, *v1alpha1.Bot]
	// accounts has the UID of the ServiceAccount.
	accounts *index[string, *v1alpha1.Bot]
	uuids    *index[string, *v1alpha1.Bot]
}

func newBots() bots {
	return bots{
		workspaces: newIndex(func(b *v1alpha1.Bot) []Key { return []Key{{kcp.ClusterOf(b), b.Spec.WorkspaceRef.Name}} }),
		accounts: newIndex(func(b *v1alpha1.Bot) []string {
			if b.Status.ServiceAccountUID == "" {
				return nil
			}
			return []string{b.Status.ServiceAccountUID}
		}),
		uuids: newIndex(func(b *v1alpha1.Bot) []string { return []string{b.Name} }),
	}
}

func (b bots) indexes() []indexed[*v1alpha1.Bot] {
	return []indexed[*v1alpha1.Bot]{b.workspaces, b.accounts, b.uuids}
}

// BotsAt returns the Bots of a Workspace of the Org, in no order. It includes those that are
// being deleted. orgCluster is the logical cluster of the Org's own workspace, here and below.
func (b bots) BotsAt(orgCluster, workspace string) []*v1alpha1.Bot {
	return b.workspaces.all(Key{orgCluster, workspace})
}

// BotOfAccount finds the Bot whose ServiceAccount has that UID.
func (b bots) BotOfAccount(uid string) (*v1alpha1.Bot, bool) { return b.accounts.one(uid) }

// BotNamed finds a Bot of any Organization by its UUID, and its Org. It finds no Bot that is being
// deleted.
func (v *Views) BotNamed(uuid string) (*v1alpha1.Bot, tenancy.Org, bool) {
	b, ok := v.uuids.one(uuid)
	if !ok || !b.DeletionTimestamp.IsZero() {
		return nil, tenancy.Org{}, false
	}
	org, ok := v.OrgByCluster(kcp.ClusterOf(b))
	return b, org, ok && org.Organization != nil
}

// Bot finds a Bot of a Workspace by name.
// It finds no Bot that is being deleted.
func (v *Views) Bot(orgCluster, workspace, name string) (*v1alpha1.Bot, bool) {
	b, ok := v.Bots.Get(orgCluster, name)
	if !ok || b.Spec.WorkspaceRef.Name != workspace || !b.DeletionTimestamp.IsZero() {
		return nil, false
	}
	return b, true
}

// botRefs has the Workspace of the Bot besides the Org.
func (v *Views) botRefs(cluster string, b *v1alpha1.Bot) []tenancy.Ref {
	return append(v.clusterRefs(cluster), tenancy.WorkspaceRef(b.Spec.WorkspaceRef.Name))
}

// BotKeyOf returns the key of the Bot that an object in a child Workspace belongs to; ok is
// false for an object of no Bot.
func (v *Views) BotKeyOf(o kcp.Object) (key Key, ok bool) {
	name := o.GetLabels()[v1alpha1.BotLabel]
	if name == "" {
		return Key{}, false
	}
	ws, ok := v.WorkspaceKeyOf(kcp.ClusterOf(o))
	return Key{ws.Cluster, name}, ok
}
