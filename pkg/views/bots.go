package views

import (
	"sync"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// bots finds Bots by their Workspace and by their ServiceAccount.
type bots struct {
	lister interface {
		Get(cluster, name string) (*v1alpha1.Bot, bool)
	}

	mu sync.RWMutex
	// inWorkspace has the Bots of each Workspace. The keys are the logical cluster of the Org
	// and the UUID of the Workspace.
	inWorkspace map[Key]map[string]struct{}
	// byAccount has the Bot of each ServiceAccount, by the UID of the account.
	byAccount map[string]Key
}

func newBots() bots {
	return bots{inWorkspace: map[Key]map[string]struct{}{}, byAccount: map[string]Key{}}
}

func (b *bots) change(cluster string, old, new *v1alpha1.Bot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old != nil {
		remove(b.inWorkspace, Key{cluster, old.Spec.WorkspaceRef.Name}, old.Name)
		if uid := old.Status.ServiceAccountUID; b.byAccount[uid] == (Key{cluster, old.Name}) {
			delete(b.byAccount, uid)
		}
	}
	if new != nil {
		put(b.inWorkspace, Key{cluster, new.Spec.WorkspaceRef.Name}, new.Name, struct{}{})
		if uid := new.Status.ServiceAccountUID; uid != "" {
			b.byAccount[uid] = Key{cluster, new.Name}
		}
	}
}

func (b *bots) count() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	n := 0
	for _, in := range b.inWorkspace {
		n += len(in)
	}
	return n
}

func (b *bots) at(workspace Key) (found []*v1alpha1.Bot) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for name := range b.inWorkspace[workspace] {
		if bot, ok := b.lister.Get(workspace.Cluster, name); ok {
			found = append(found, bot)
		}
	}
	return found
}

func (b *bots) ofAccount(uid string) (*v1alpha1.Bot, bool) {
	b.mu.RLock()
	key, ok := b.byAccount[uid]
	b.mu.RUnlock()
	if !ok {
		return nil, false
	}
	return b.lister.Get(key.Cluster, key.Name)
}

// Bot finds a Bot of a Workspace by name. orgCluster is the logical cluster of the Org's own
// workspace, here and below. It finds no Bot that is being deleted.
func (v *Views) Bot(orgCluster, workspace, name string) (*v1alpha1.Bot, bool) {
	b, ok := v.bots.lister.Get(orgCluster, name)
	if !ok || b.Spec.WorkspaceRef.Name != workspace || !b.DeletionTimestamp.IsZero() {
		return nil, false
	}
	return b, true
}

// BotsAt returns the Bots of a Workspace of the Org, in no order. It includes those that are
// being deleted.
func (v *Views) BotsAt(orgCluster, workspace string) []*v1alpha1.Bot {
	return v.bots.at(Key{orgCluster, workspace})
}

// BotOfAccount finds the Bot whose ServiceAccount has that UID.
func (v *Views) BotOfAccount(uid string) (*v1alpha1.Bot, bool) { return v.bots.ofAccount(uid) }

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
