package cli

import (
	"context"
	"fmt"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// settleTimeout is how long a first login waits for what the hub makes for a new person.
const settleTimeout = 10 * time.Second

// firstPlace is where a person works who has chosen nothing yet: in the only workspace or else in the
// personal one, in the only organization or else in the personal one. Nothing is chosen for people who
// have none of them, or if the hub does not say.
func (a *app) firstPlace(ctx context.Context, api *client.Client, who *rest.Me) target {
	if who.DeletionRequestedAt != nil || who.Registration != "" && who.Registration != "Approved" {
		return target{}
	}
	for deadline := a.Clock.Now().Add(settleTimeout); ; {
		place, err := placeOf(ctx, api, who)
		if err != nil || place.Workspace != "" || who.Phase != "Progressing" || !a.Clock.Now().Before(deadline) {
			return place
		}
		// The personal organization of a new person is being made.
		select {
		case <-ctx.Done():
			return target{}
		case <-a.Clock.After(250 * time.Millisecond):
		}
		if who, err = api.Me(ctx); err != nil {
			return target{}
		}
	}
}

func placeOf(ctx context.Context, api *client.Client, who *rest.Me) (target, error) {
	orgs := map[string]bool{}
	var found []target
	for row, err := range api.Memberships(ctx, false) {
		if err != nil {
			return target{}, err
		}
		orgs[row.OrgUUID] = true
		if row.WorkspaceUUID != "" {
			found = append(found, target{row.OrgUUID, row.WorkspaceUUID})
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case who.PersonalOrg != "":
		return target{who.PersonalOrg, who.DefaultWorkspace}, nil
	case len(orgs) == 1:
		for org := range orgs {
			return target{Org: org}, nil
		}
	}
	return target{}, nil
}

// nextStep says what a person or a program does after a login.
func nextStep(who *rest.Me, login *config.Profile) string {
	switch {
	case who.Kind == botKind:
		return "To use kubectl, run: kedge kubeconfig > kubeconfig"
	case who.DeletionRequestedAt != nil:
		return "Your account is deleted. To bring it back, run: kedge me undelete"
	case who.Registration == "Pending":
		return "Your registration waits for approval; until then you can use no workspace."
	case login.Workspace != "":
		return fmt.Sprintf("You work in the workspace %s. To use kubectl in it, run: kedge kubeconfig --merge --use\nTo see others, run: kedge workspaces, or kedge orgs", login.Workspace)
	case login.Org != "":
		return fmt.Sprintf("You work in the organization %s. To make a workspace, run: kedge workspaces create NAME", login.Org)
	}
	return "To see your organizations, run: kedge orgs. To make one, run: kedge orgs create NAME"
}
