package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/kcp"
	"github.com/faroshq/kedge-hub/pkg/kcp/bootstrap"
	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/leader"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/accessrequest"
	"github.com/faroshq/kedge-hub/pkg/reconciler/bot"
	"github.com/faroshq/kedge-hub/pkg/reconciler/catalogentry"
	"github.com/faroshq/kedge-hub/pkg/reconciler/customresources"
	"github.com/faroshq/kedge-hub/pkg/reconciler/invitation"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membership"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membershipindex"
	"github.com/faroshq/kedge-hub/pkg/reconciler/organization"
	"github.com/faroshq/kedge-hub/pkg/reconciler/session"
	"github.com/faroshq/kedge-hub/pkg/reconciler/user"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/version"
)

// deactivationHint tells the operator how to let the hub deactivate logical clusters.
const deactivationHint = "the kubeconfig of --kcp-kubeconfig needs the context " + connect.ShardAdmin + " of kcp's admin.kubeconfig, or a user of the group system:masters"

// controllers returns the controllers of the leader. rights and template are those that
// the API and the proxy use, too.
func controllers(d reconciler.Deps, rights *access.Reconciler, template *workspace.Template) []*controller.Controller {
	return append([]*controller.Controller{
		organization.NewController(d, access.NewReadiness(rights, d.Views).Followed),
		workspace.NewController(d, template, rights.Missing), access.NewController(d, rights),
		user.NewController(d), membership.NewController(d), membershipindex.NewController(d),
		customresources.NewController(d), bot.NewController(d), session.NewController(d), invitation.NewController(d), accessrequest.NewController(d),
	}, catalogentry.NewControllers(d)...)
}

// spareHashOf identifies what this hub makes spares with.
func spareHashOf(c Config, clusters bootstrap.Clusters) (string, error) {
	return tenancy.SpareHash(version.String(), clusters.WorkspacePolicy.Policy, clusters.WorkspacePolicy.Binding, clusters.OrgBindings, clusters.WorkspaceBindings,
		tenancy.Namespace(), tenancy.ClusterRoles(nil), c.Template)
}

// newLeader returns the election of this replica. With an embedded kcp there is no other replica;
// otherwise the Lease is in the root workspace of the tree.
func newLeader(c Config, clients *kcp.Clients, clusters bootstrap.Clusters, registry prometheus.Registerer) (*leader.Leader, error) {
	if c.Embedded || !c.LeaderElect {
		return leader.Alone(registry)
	}
	return leader.New(leader.Config{Lock: leader.NewLease(clients, clusters.Root), Metrics: registry})
}

// settings returns the options that controllers depend on. k is the clock of deletions.
// spareHash is what spareHashOf returns.
func settings(c Config, k clock.WithTicker, spareHash string, full func() bool) reconciler.Settings {
	window := c.Policy.EnforcementWindow
	if c.Embedded {
		// It runs in one process.
		window = 0
	}
	return reconciler.Settings{
		PolicyWindow: window,
		Tree:         c.Tree, Clock: k, RequestClock: transport.Latest(k), RightsClock: transport.Current(k), Graces: graces(c),
		PersonalOrgs: c.PersonalOrgs, PersonalOrgRole: c.PersonalOrgRole,
		Billing: billingRules(c, nil).Initial(), Template: c.Template,
		Spares:               reconciler.Spares{Organizations: c.Spares.Organizations, Workspaces: c.Spares.Workspaces, Hash: spareHash, Full: full},
		GroupMaxAge:          c.GroupMaxAge,
		BindableClusterRoles: c.BindableClusterRoles, SessionIdleTimeout: c.Sessions.IdleTimeout, CIIssuers: c.CI.Issuers,
	}
}

// graces are the times during which something soft-deleted can be undeleted.
func graces(c Config) tenancy.Graces {
	return tenancy.Graces{Deletion: c.DeletionGrace, Expired: c.ExpiredWorkspaceGrace}
}
