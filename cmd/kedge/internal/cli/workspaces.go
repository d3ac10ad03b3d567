package cli

import (
	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

func (a *app) workspacesCommand() *cobra.Command {
	k := (&kind[rest.Workspace, rest.RenameRequest]{
		naming: workspaces(), inOrg: true,
		in:      func(s *session, org string) client.Workspaces { return s.api.Org(org).Workspaces() },
		one:     func(s *session, t target) tenantOf[rest.Workspace] { return s.in(t) },
		renamed: func(name string) rest.RenameRequest { return rest.RenameRequest{DisplayName: rest.Set(name)} },
	}).with(a, workspaceColumns)
	cmd := &cobra.Command{
		Use: "workspaces", Aliases: []string{"workspace", "ws"},
		Short: "List, create, rename, leave and delete workspaces, manage their members, and choose the one to work in",
		Long:  "Work with the workspaces of an organization. " + orgAdmins,
		Example: `  kedge workspaces
  kedge workspaces create "My workspace"
  kedge workspaces use "My workspace"
  kedge workspaces members add bob`,
	}
	a.orgFlag(cmd, &k.org)
	k.listing(cmd)
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
