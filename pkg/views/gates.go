package views

import (
	"context"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Gates returns the gates of people and of bots that read these caches. issuers are the identity
// providers whose jobs Bots may trust.
func (v *Views) Gates(tree tenancy.Tree, issuers []string) tenancy.Gates {
	return tenancy.Gates{
		People: tenancy.Gate{Tree: tree, Cluster: v.Cluster, Index: v.Index, Org: v.Org, Workspace: v.Workspace,
			Sudo: v.Sudo, SudoRequest: v.SudoRequest, Roles: v.BoundRoles, User: v.ByName, Ending: v.Ending},
		Bots: tenancy.BotGate{Tree: tree, Bot: v.botInOrg, Workspace: v.Workspace, Issuers: issuers},
	}
}

// botInOrg finds a Bot by the UID of its ServiceAccount, and its Org.
func (v *Views) botInOrg(account string) (b *v1alpha1.Bot, org tenancy.Org, ok bool) {
	if b, ok = v.BotOfAccount(account); ok {
		org, ok = v.OrgByCluster(kcp.ClusterOf(b))
	}
	return b, org, ok
}

// AwaitBot waits until cond holds. It evaluates cond again after each change of a Bot in the
// Workspace with that logical cluster.
func (v *Views) AwaitBot(ctx context.Context, cluster string, cond func() bool) error {
	at := v.Cluster(cluster)
	if at.WorkspaceUUID == "" {
		return errs.New(errs.NotFound, "there is no such workspace")
	}
	return v.Await(ctx, []tenancy.Ref{tenancy.WorkspaceRef(at.WorkspaceUUID)}, cond)
}
