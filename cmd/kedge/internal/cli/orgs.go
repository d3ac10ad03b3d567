package cli

import (
	"context"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// orgs are the commands for organizations.
type orgs = kind[rest.Org, rest.CreateRequest, rest.UpdateOrgRequest]

// tenantOf are the requests about one tenant.
type tenantOf[T any] interface {
	Undelete(ctx context.Context) (*T, error)
	Leave(ctx context.Context, options ...client.Option) (*rest.Receipt, error)
}

func (a *app) orgsCommand() *cobra.Command {
	var billed billing
	var described description
	k := (&orgs{
		naming: organizations(),
		in:     func(s *session, _ string) client.Orgs { return s.api.Orgs() },
		one:    func(s *session, t target) tenantOf[rest.Org] { return s.api.Org(t.Org) },
		created: func(name string) (in rest.CreateRequest, err error) {
			in.DisplayName, in.Description = name, described.field()
			in.Billing, err = billed.patch()
			return in, err
		},
		described: func(text rest.Field[string]) rest.UpdateOrgRequest { return rest.UpdateOrgRequest{Description: text} },
		renamed:   func(name string) rest.UpdateOrgRequest { return rest.UpdateOrgRequest{DisplayName: rest.Set(name)} },
	}).with(a, orgColumns)
	cmd := &cobra.Command{
		Use: "orgs", Aliases: []string{"org", "organizations"},
		Short: "List, create, change, leave and delete organizations, and choose the one to work in",
		Example: `  kedge orgs
  kedge orgs create "My organization"
  kedge orgs use "My organization"`,
	}
	create := k.createCommand()
	billed.flags(create)
	described.flag(create)
	create.Example += "\n  kedge orgs create --cost-center 4711 \"My organization\""
	k.listing(cmd)
	cmd.AddCommand(
		k.listCommand("List your organizations"),
		k.getCommand(), create, k.useCommand(), k.renameCommand(), k.describeCommand(), settingsCommand(k), a.groupsCommand(),
		k.leaveCommand(`Leave an organization, the chosen one unless another is named. While you are a
member of workspaces in it, that needs --cascade, which leaves those, too. An
organization's only admin cannot leave it.`, `  kedge orgs leave
  kedge orgs leave "My organization" --cascade`),
		k.deleteCommand(`Delete an organization with all its workspaces. Nobody can use them from then on.
Until the time that is printed, kedge orgs undelete brings them back.`),
		k.undeleteCommand(`Bring back an organization that was deleted, with all that was in it. Name it by
its UUID or, while that is unique, by its name; kedge orgs list --deleted shows
what there is.`),
	)
	return cmd
}
