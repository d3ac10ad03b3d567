package server

import (
	"path/filepath"

	"github.com/faroshq/kedge-hub/pkg/kcp/connect"
	"github.com/faroshq/kedge-hub/pkg/kcp/transport"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
)

// deactivationHint tells the operator how to let the hub deactivate logical clusters.
const deactivationHint = "the kubeconfig of --kcp-kubeconfig needs the context " + connect.ShardAdmin + " of kcp's admin.kubeconfig, or a user of the group system:masters"

// kcp returns the options of the connection to kcp. The directory of the embedded kcp can be a
// mount of its own.
func (c Config) kcp() connect.Options {
	return connect.Options{Kubeconfig: c.KCPKubeconfig, Embedded: connect.EmbeddedOptions{
		Dir: filepath.Join(c.DataDir, "kcp"), Port: c.KCPPort,
		EtcdClientPort: c.EtcdClientPort, EtcdPeerPort: c.EtcdPeerPort, TokenFile: c.TokenFile,
	}}
}

// settings returns the options that controllers depend on.
func (c Config) settings() reconciler.Settings {
	return reconciler.Settings{
		Tree: c.Tree, Clock: c.Clock, RequestClock: transport.Latest(c.Clock), DeletionGrace: c.DeletionGrace,
		PersonalOrgs: c.PersonalOrgs, PersonalOrgRole: c.PersonalOrgRole, Template: c.Template,
	}
}
