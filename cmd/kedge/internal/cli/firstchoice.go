package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// settleTimeout is how long a first login waits for what the hub makes for a new person.
const settleTimeout = 10 * time.Second

// place is where a person works. row is what the hub says about it, if it says anything.
type place struct {
	target
	row *rest.MembershipRow
}

// firstPlace is where a person works who has chosen nothing yet: in the personal place; without one, in the
// only workspace of the organizations that the person made, or else in the only such organization; and who
// made none, in the only workspace or organization that there is. The order keeps strangers, who can add a
// new person to what they made, from choosing for those who have a place of their own. Nothing is chosen
// where several are equal, or if the hub does not say.
func (a *app) firstPlace(ctx context.Context, api *client.Client, who *rest.Me) place {
	if who.DeletionRequestedAt != nil || who.Registration != "" && who.Registration != "Approved" {
		return place{}
	}
	for deadline := a.Clock.Now().Add(settleTimeout); ; {
		at, err := placeOf(ctx, api, who)
		if err != nil || who.Phase != "Progressing" || at.Workspace != "" && at.Org == who.PersonalOrg || !a.Clock.Now().Before(deadline) {
			return at
		}
		// The personal organization of a new person is being made.
		select {
		case <-ctx.Done():
			return place{}
		case <-a.Clock.After(250 * time.Millisecond):
		}
		if who, err = api.Me(ctx); err != nil {
			return place{}
		}
	}
}

func placeOf(ctx context.Context, api *client.Client, who *rest.Me) (place, error) {
	var rows, own []rest.MembershipRow
	for row, err := range api.Memberships(ctx, false) {
		if err != nil {
			return place{}, err
		}
		rows = append(rows, row)
		if row.OrgFirstAdmin == who.Name {
			own = append(own, row)
		}
	}
	chosen := target{who.PersonalOrg, who.DefaultWorkspace}
	switch {
	case who.PersonalOrg != "":
	case len(own) > 0:
		chosen = only(own)
	default:
		chosen = only(rows)
	}
	at := place{target: chosen}
	if i := slices.IndexFunc(rows, func(r rest.MembershipRow) bool { return target{r.OrgUUID, r.WorkspaceUUID} == chosen }); i >= 0 {
		at.row = &rows[i]
	}
	return at, nil
}

// only returns the workspace of rows that are about one, or the organization of rows that are all in one.
func only(rows []rest.MembershipRow) target {
	orgs := map[string]bool{}
	var works []target
	for _, row := range rows {
		orgs[row.OrgUUID] = true
		if row.WorkspaceUUID != "" {
			works = append(works, target{row.OrgUUID, row.WorkspaceUUID})
		}
	}
	switch {
	case len(works) == 1:
		return works[0]
	case len(orgs) == 1:
		return target{Org: rows[0].OrgUUID}
	}
	return target{}
}

// describe names the place where somebody works. Others chose the names.
func describe(login *config.Profile, at place) string {
	org, workspace, as := tenant{UUID: login.Org}, tenant{UUID: login.Workspace}, ""
	if row := at.row; row != nil && at.target == (target{login.Org, login.Workspace}) {
		org.DisplayName, workspace.DisplayName = printable(row.OrgDisplayName), printable(row.WorkspaceDisplayName)
		switch {
		case row.Role != "":
			as = ", as " + printable(string(row.Role))
		case row.Manager:
			as = ", as manager"
		}
	}
	if login.Workspace == "" {
		return "organization " + org.String() + as
	}
	return "workspace " + workspace.String() + " of the organization " + org.String() + as
}

// nextStep says what a person or a program does after a login.
func nextStep(who *rest.Me, login *config.Profile, first place) string {
	switch {
	case who.Kind == botKind:
		return "To use kubectl, run: kedge kubeconfig > kubeconfig"
	case who.DeletionRequestedAt != nil:
		return "Your account is deleted. To bring it back, run: kedge me undelete"
	case who.Registration == "Pending":
		return "Your registration waits for approval; until then you can use no workspace."
	case login.Workspace != "":
		return fmt.Sprintf("You work in the %s.\nTo use kubectl in it, run: kedge kubeconfig --merge --use\n"+
			"To see others, run: kedge workspaces, or kedge orgs", describe(login, first))
	case login.Org != "":
		return fmt.Sprintf("You work in the %s.\nTo make a workspace, run: kedge workspaces create NAME", describe(login, first))
	}
	return "To see your organizations, run: kedge orgs. To make one, run: kedge orgs create NAME"
}
