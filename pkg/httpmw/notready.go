package httpmw

import (
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// outside refuses somebody who has no role where the request goes. The creator of what is not Ready
// yet is told its phase. Everybody else gets the answer of foreign.
func (s Scopes) outside(scope *tenancy.Scope, u *v1alpha1.User, org, workspace string) error {
	if scope.OrgRole == "" {
		if made, role := s.Creator.ReadOrg(u, org); role != "" {
			return notReady("organization", made.Status.CommonStatus)
		}
		return foreign()
	}
	if workspace != "" {
		if made, role := s.Creator.ReadWorkspace(u, scope.Org, workspace); role != "" {
			return notReady("workspace", made.Status)
		}
	}
	return foreign()
}

func notReady(what string, status v1alpha1.CommonStatus) error {
	return errs.New(errs.Conflict, "the "+what+" is not ready for you yet, its phase is "+string(tenancy.PhaseOf(status))+"; repeat the request in a moment")
}
