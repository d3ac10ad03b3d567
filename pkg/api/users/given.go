package users

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// given has the objects that sign-up created for a person, as far as the person can read them.
type given struct {
	phase v1alpha1.Phase
	// org and workspace are empty if the person cannot read them.
	org, workspace string
}

// givenTo returns the objects that sign-up created for a person. The phase is Progressing until
// all of them exist and the person can read them. It is Ready if the person has left them.
func (h *Handler) givenTo(u *v1alpha1.User) given {
	g := given{phase: v1alpha1.PhaseProgressing}
	if !tenancy.Active(u) {
		return g
	}
	done := meta.IsStatusConditionTrue(u.Status.Conditions, v1alpha1.ConditionPersonalOrg) &&
		meta.IsStatusConditionTrue(u.Status.Conditions, v1alpha1.ConditionDefaultWorkspace)
	if org, ok := h.Views.Org(u.Status.PersonalOrg); ok && !org.Deleted() {
		entries := h.Views.Index(u.Name)
		if tenancy.OrgRole(entries, org.UUID()) != "" {
			g.org = org.UUID()
		} else if _, member := h.Views.Membership(org.ClusterID, tenancy.MembershipName(u.Name, "")); member {
			// The index does not list it yet.
			done = false
		}
		ws, ok := h.Views.Workspace(org.UUID(), u.Status.DefaultWorkspace)
		if ok && !ws.Deleted() && tenancy.WorkspaceRole(entries, org.UUID(), ws.UUID, org.Spec.DefaultAccess) != "" {
			g.workspace = ws.UUID
		}
	}
	if done {
		g.phase = v1alpha1.PhaseReady
	}
	return g
}
