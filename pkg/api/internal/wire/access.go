package wire

import (
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// PastAccess converts who had access at a moment.
func PastAccess(at time.Time, p tenancy.PastAccess) rest.PastAccess {
	v := rest.PastAccess{At: at.UTC(), Since: known(p.Since), AsOf: known(p.AsOf), Active: p.Active, Items: make([]rest.AccessHolder, 0, len(p.Holders))}
	switch {
	case v.Since == nil:
		v.Message = "the hub has not recorded yet who has access; try again in a moment"
	case v.AsOf == nil:
		v.Message = "the records of access begin at " + v.Since.Format(time.RFC3339) + ", and nothing earlier is known"
	}
	for _, h := range p.Holders {
		i := rest.AccessHolder{
			Workspace: h.Workspace, User: h.User, Bot: h.Bot, DisplayName: h.Name, Role: rest.Role(h.Role), Sudo: h.Sudo, Manager: h.Manager,
			Through: append([]rest.PastSource{}, pastSources(h.Through)...), EveryWorkspace: pastSources(h.EveryWorkspace),
		}
		for _, r := range h.Roles {
			i.Roles = append(i.Roles, rest.RoleRef(r))
		}
		for _, t := range h.Tokens {
			i.Tokens = append(i.Tokens, rest.PastToken(t))
		}
		v.Items = append(v.Items, i)
	}
	return v
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func pastSources(all []tenancy.HeldSource) (sources []rest.PastSource) {
	for _, s := range all {
		sources = append(sources, rest.PastSource{Through: string(s.Through), Role: rest.Role(s.Role), Sources: s.Sources, Since: s.Since, ExpiresAt: s.ExpiresAt})
	}
	return sources
}
