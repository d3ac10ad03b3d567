package server

import (
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
)

// deactivationHint tells the operator how to let the hub deactivate logical clusters.
const deactivationHint = "the kubeconfig of --kcp-kubeconfig needs the context " + shardAdmin + " of kcp's admin.kubeconfig, or a user of the group system:masters"

// settings returns the options that controllers depend on.
func (c Config) settings() reconciler.Settings {
	return reconciler.Settings{
		Tree: c.Tree, Clock: c.Clock, RequestClock: transport.Latest(c.Clock), DeletionGrace: c.DeletionGrace,
		PersonalOrgs: c.PersonalOrgs, PersonalOrgRole: c.PersonalOrgRole, Template: c.Template,
	}
}
