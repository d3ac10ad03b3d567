package reconciler

import (
	"slices"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// MembershipFacts are the facts of a change of a Membership: all that it gives afterwards, and what it does not give any
// more. before is empty for a new one.
func MembershipFacts(before, after v1alpha1.MembershipSpec) audit.Facts {
	facts := audit.Facts{Role: string(after.Role)}
	if after.Role == "" && before.Role != "" {
		facts.Role = rest.NoRole
	}
	if after.Manager || before.Manager {
		facts.Manager = &after.Manager
	}
	if after.Sudo || before.Sudo {
		facts.Sudo = &after.Sudo
	}
	if len(after.Roles) > 0 || !slices.Equal(before.Roles, after.Roles) {
		facts.Roles = tenancy.RoleTexts(after.Roles)
	}
	if len(before.Extra) > 0 || len(after.Extra) > 0 {
		sources := make([]string, 0, len(after.Extra))
		for _, x := range after.Extra {
			sources = append(sources, x.Source)
		}
		facts.Sources = &sources
	}
	if !before.ExpiresAt.Equal(after.ExpiresAt) {
		facts.ExpiresAt = tenancy.ExpiryText(after.ExpiresAt)
	}
	return facts
}
