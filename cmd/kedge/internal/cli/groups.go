package cli

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var groupColumns = table{{"ID", "id"}, {"GROUP", "group"}, {"ROLE", "role"}, {"WORKSPACE", "workspace"}, {"PEOPLE", "people"},
	{"BY", "createdBy", wide}, {"CREATED", "createdAt", wide}}

// groupsCommand is kedge orgs groups.
func (a *app) groupsCommand() *cobra.Command {
	var output format
	var org string
	cmd := &cobra.Command{
		Use: "groups", Aliases: []string{"group"}, Short: "Let groups of the identity provider into an organization or workspace",
		Long: `List the groups of the identity provider whose members are let into the chosen
organization and its workspaces. A person has the role as long as their newest login
says the group; a group never makes the last admin. For admins of the organization.`,
		Example: "  kedge orgs groups\n  kedge orgs groups add kedge:developers\n  kedge orgs groups add kedge:on-call --role admin --workspace Shop\n" +
			"  kedge orgs groups remove 7c1f5a0e-0b53-5e0c-9d7b-6f1f6b8f2a11",
	}
	list := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the groups that are let in", Example: "  kedge orgs groups list"}
	for _, listing := range []*cobra.Command{cmd, list} {
		printing(a, listing, &output, groupColumns, unchanged, func(cmd *cobra.Command, _ []string) (iter.Seq2[rest.GroupMapping, error], error) {
			all, err := a.groupsIn(cmd.Context(), org)
			return all.List(cmd.Context()), err
		})
	}
	a.orgFlag(cmd, &org)
	cmd.AddCommand(list, a.addGroupCommand(&org), a.removeGroupCommand(&org))
	return cmd
}

// groupsIn are the requests about the mappings of groups in an organization.
func (a *app) groupsIn(ctx context.Context, org string) (client.Groups, error) {
	o, _, err := a.inOrg(ctx, org)
	return o.Groups(), err
}

func (a *app) addGroupCommand(org *string) *cobra.Command {
	var output format
	var workspace string
	as := role("member")
	cmd := &cobra.Command{
		Use: "add GROUP", Short: "Let the members of a group in", Args: oneArg("the name of a group, with the prefix of the hub"),
		ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Let the members of a group of the identity provider into the chosen organization or, with
--workspace, into one of its workspaces. The name of the group has the prefix that the hub
gives it, such as kedge:developers. The answer says how many people that lets in now.`,
		Example: "  kedge orgs groups add kedge:developers\n  kedge orgs groups add kedge:on-call --role admin --workspace Shop",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := rest.CreateGroupMapping{Group: args[0], Role: rest.Role(as.value)}
			var all client.Groups
			if workspace == "" {
				var err error
				if all, err = a.groupsIn(cmd.Context(), *org); err != nil {
					return err
				}
			} else {
				s, err := a.session(cmd.Context())
				if err != nil {
					return err
				}
				t, err := s.workspace(cmd.Context(), *org, workspace)
				if err != nil {
					return err
				}
				all, body.Workspace = s.api.Org(t.Org).Groups(), t.Workspace
			}
			made, err := all.Create(cmd.Context(), body)
			if err != nil {
				return err
			}
			return a.print(output, made.Raw, groupColumns)
		},
	}
	cmd.Flags().Var(as, "role", "admin, member or viewer")
	cmd.Flags().StringVarP(&workspace, "workspace", "w", "", "UUID or name of a workspace (default: the organization itself)")
	a.completeWorkspace(cmd, org)
	output.flag(cmd)
	return cmd
}

func (a *app) removeGroupCommand(org *string) *cobra.Command {
	mappings := ids(a, func(cmd *cobra.Command, _ []string) (iter.Seq2[rest.GroupMapping, error], error) {
		all, err := a.groupsIn(cmd.Context(), *org)
		return all.List(cmd.Context()), err
	}, func(m rest.GroupMapping) (string, string) { return m.ID, m.Group })
	return &cobra.Command{
		Use: "remove ID", Aliases: []string{"rm"}, Short: "Let a group in no longer",
		ValidArgsFunction: inOrder(mappings), Args: oneArg("the ID of a mapping"),
		Long: `Remove the mapping of a group. Its members lose what it gave them at once, and keep what
they have by hand, by request, or by another group.`,
		Example: "  kedge orgs groups remove 7c1f5a0e-0b53-5e0c-9d7b-6f1f6b8f2a11",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !isUUID(args[0]) {
				return fmt.Errorf("%q is not the ID of a mapping; %w", args[0], errUsage)
			}
			all, err := a.groupsIn(cmd.Context(), *org)
			if err != nil {
				return err
			}
			receipt, err := all.End(cmd.Context(), args[0])
			if err != nil {
				return notFoundAdvice(err, "the mappings, run: kedge orgs groups")
			}
			fmt.Fprintf(a.Err, "Removed the mapping %s.\n", args[0])
			a.receipt(receipt)
			return nil
		},
	}
}
