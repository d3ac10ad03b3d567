package server

import (
	"net/http"

	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/proxy"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// place finds where a proxied request goes, for its event in the audit log. The gate decides about the
// request; this says only what a refused one was about.
func (a *assembly) place(r *http.Request, caller *httpmw.Caller) httpmw.Place {
	at := httpmw.Place{Cluster: proxy.ClusterOf(r)}
	org, uuid, isPath := a.hub.config.Tree.ParseWorkspacePath(at.Cluster)
	if !isPath {
		of := a.views.Cluster(at.Cluster)
		org, uuid = of.OrgUUID, of.WorkspaceUUID
	}
	if _, ok := a.views.Org(org); !ok {
		return at
	}
	at.Org = org
	if ws, ok := a.views.Workspace(org, uuid); ok {
		at.Workspace, at.Cluster = uuid, ws.ClusterID
	}
	switch {
	case caller == nil:
	case caller.Bot != nil:
		at.Belongs = caller.Bot.Org.UUID() == org
	case caller.User != nil:
		at.Belongs = tenancy.InOrg(a.views.Index(caller.User.Name), org)
	}
	return at
}
