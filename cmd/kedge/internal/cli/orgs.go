package cli

import "github.com/spf13/cobra"

func (a *app) orgsCommand() *cobra.Command {
	k := &kind{app: a, naming: organizations(), columns: orgColumns}
	cmd := &cobra.Command{
		Use: "orgs", Aliases: []string{"org", "organizations"},
		Short: "List, create, change, leave and delete organizations, and choose the one to work in",
		Example: `  kedge orgs
  kedge orgs create "My organization"
  kedge orgs use "My organization"`,
		Args: noArgs, RunE: k.runList,
	}
	k.output.flag(cmd)
	cmd.AddCommand(
		k.listCommand("List your organizations"),
		k.getCommand(), k.createCommand(), k.useCommand(), k.renameCommand(), k.settingsCommand(),
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
