package cli

import "github.com/spf13/cobra"

func (a *app) workspacesCommand() *cobra.Command {
	k := &kind{app: a, naming: workspaces(), columns: workspaceColumns, inOrg: true}
	cmd := &cobra.Command{
		Use: "workspaces", Aliases: []string{"workspace", "ws"},
		Short: "List, create, rename, leave and delete workspaces, manage their members, and choose the one to work in",
		Long:  "Work with the workspaces of an organization. " + orgAdmins,
		Example: `  kedge workspaces
  kedge workspaces create "My workspace"
  kedge workspaces use "My workspace"
  kedge workspaces members add bob`,
		Args: noArgs, RunE: k.runList,
	}
	a.orgFlag(cmd, &k.org)
	k.output.flag(cmd)
	cmd.AddCommand(
		k.listCommand("List the workspaces that you can enter"),
		k.getCommand(), k.createCommand(), k.useCommand(), k.renameCommand(),
		k.leaveCommand("Leave a workspace, the chosen one unless another is named.", `  kedge workspaces leave
  kedge workspaces leave "My workspace"`),
		k.deleteCommand(`Delete a workspace with all its contents. Nobody can use it from then on.
Until the time that is printed, kedge workspaces undelete brings it back.`),
		k.undeleteCommand(`Bring back a workspace that was deleted, with all that was in it. Name it by its
UUID or, while that is unique, by its name; kedge workspaces list --deleted shows
those that you are a member of. Others, which an admin of the organization can
bring back, too, are named by UUID.`),
		a.workspaceMembersCommand(&k.org),
	)
	return cmd
}
