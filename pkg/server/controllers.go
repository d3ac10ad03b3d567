package server

import (
	"github.com/faroshq/kedge-hub/pkg/controller"
	"github.com/faroshq/kedge-hub/pkg/reconciler"
	"github.com/faroshq/kedge-hub/pkg/reconciler/access"
	"github.com/faroshq/kedge-hub/pkg/reconciler/customresources"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membership"
	"github.com/faroshq/kedge-hub/pkg/reconciler/membershipindex"
	"github.com/faroshq/kedge-hub/pkg/reconciler/organization"
	"github.com/faroshq/kedge-hub/pkg/reconciler/user"
	"github.com/faroshq/kedge-hub/pkg/reconciler/workspace"
)

// controllers returns the controllers of the leader. rights and template are those that
// the API and the proxy use, too.
func controllers(d reconciler.Deps, rights *access.Reconciler, template *workspace.Template) []*controller.Controller {
	d.AccessMissing = rights.Missing
	return []*controller.Controller{
		organization.NewController(d), workspace.NewController(d, template), access.NewController(d, rights),
		user.NewController(d), membership.NewController(d), membershipindex.NewController(d),
		customresources.NewController(d),
	}
}
