package cli

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

var (
	deletedPersonColumns = table{{"NAME", "name"}, {"DISPLAY NAME", "displayName"}, {"DELETED", "deletionRequestedAt"}, {"PURGE AT", "purgeAt"}}
	allDeletionColumns   = table{{"KIND", "kind"}, {"NAME", "name"}, {"DISPLAY NAME", "displayName"}, {"DELETED", "deletionRequestedAt"}, {"PURGE AT", "purgeAt"},
		{"PURGING", "purging"}, {"ORGANIZATION", "orgUUID", wide}}
)

func (d *admin) orgsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "orgs", Aliases: []string{"org"}, Short: "List all organizations, show, delete and undelete one",
		Example: "  kedge admin orgs --personal false\n  kedge admin orgs delete ACME\n  kedge admin orgs undelete ACME",
	}
	list := &cobra.Command{Use: "list", Short: "List all organizations", Example: "  kedge admin orgs list --query acme"}
	d.orgs.filters = []*filter{{flag: "query", parameter: "q", usage: "a part of the display name"},
		{flag: "personal", parameter: "personal", usage: "true for personal organizations alone, false for the others"}}
	d.orgs.listing(cmd, list)
	cmd.AddCommand(list, d.orgs.getting(&cobra.Command{
		Use: "get UUID|NAME", Short: "Show an organization", Args: organization, Example: "  kedge admin orgs get ACME -o wide",
	}), d.deleteOrgCommand(), d.orgs.about(&cobra.Command{
		Use: "undelete UUID|NAME", Short: "Bring back a deleted organization", Args: organization,
		Long: `Bring back an organization that was deleted, with its workspaces, while it is not purged. Its
admins can do it, too; this is for organizations whose admins are all gone.`,
		Example: "  kedge admin orgs undelete ACME",
	}, adminOrgColumns, func(ctx context.Context, s *session, _ adminOrgs, uuid string, _ []string) (object, error) {
		o, err := s.api.Admin().UndeleteOrg(ctx, uuid)
		return *orNone(o), err
	}), d.addAdminCommand())
	return cmd
}

func (d *admin) addAdminCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "add-admin UUID|NAME USER", Short: "Make a person admin of an organization whose admins are all gone",
		Long: `Make a person admin of an organization in which no admin can act: they have left, their
accounts are deleted or not approved, or their rights end by time. The members of the
organization see it, with the reason. You cannot name yourself.`,
		Example: "  kedge admin orgs add-admin ACME bob --reason 'Ticket 4711: alice has left the company'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s needs an organization and the name of a person; %w", cmd.CommandPath(), errUsage)
			}
			if err := needReason(cmd, reason); err != nil {
				return err
			}
			return checkPerson(args[1])
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, at most 500 characters; the members of the organization read it (required)")
	d.orgs.about(cmd, orgMemberColumns(), func(ctx context.Context, s *session, _ adminOrgs, uuid string, args []string) (object, error) {
		m, err := s.api.Admin().AddAdmin(ctx, uuid, rest.AdminAddAdminRequest{UserRef: rest.UserRef{Name: args[1]}, Reason: reason})
		return *orNone(m), err
	})
	cmd.ValidArgsFunction = inOrder(d.orgs.complete, d.users.complete)
	return cmd
}

// organization is the argument of commands about an organization.
func organization(cmd *cobra.Command, args []string) error {
	return oneArg("the UUID or the name of an organization")(cmd, args)
}

func (d *admin) deleteOrgCommand() *cobra.Command {
	c := &consent{app: d.app}
	cmd := &cobra.Command{
		Use: "delete UUID|NAME", Short: "Delete an organization; it can be brought back for a time", Args: organization,
		Long: `Delete an organization with all its workspaces. Nobody can use them from then on.
Until the time that is printed, its admins can bring it back.`,
		Example: "  kedge admin orgs delete ACME",
	}
	d.orgs.about(cmd, deletionColumns, func(ctx context.Context, _ *session, all adminOrgs, uuid string, args []string) (object, error) {
		text := fmt.Sprintf("Delete the organization %s with all its workspaces? Nobody can use them then.", args[0])
		if err := c.typed(ctx, text, "Type "+args[0]+" to go on", args[0]); err != nil {
			return nil, err
		}
		return all.Delete(ctx, uuid)
	})
	return c.first(cmd)
}

func (d *admin) deletionsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "deletions", Short: "List what was deleted and can still be brought back", Example: "  kedge admin deletions"}
	return listing(d, cmd, allDeletionColumns, func(s *session, _ []string) (iter.Seq2[rest.Deletion, error], error) {
		return s.api.Admin().Deletions(cmd.Context()), nil
	})
}

func (d *admin) sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sessions USER", Aliases: []string{"session"}, Short: "List the logins of a person, and end them", Args: person, ValidArgsFunction: d.users.complete,
		Example: "  kedge admin sessions bob\n  kedge admin sessions end bob --all",
	}
	printing(d.app, cmd, &d.output, sessionColumns, adviseAdmin, d.sessionsOf)
	cmd.AddCommand(d.endSessionsCommand())
	return cmd
}

// sessionsOf lists the logins of a person.
func (d *admin) sessionsOf(cmd *cobra.Command, args []string) (iter.Seq2[rest.Session, error], error) {
	s, err := d.session(cmd.Context())
	if err != nil {
		return nil, err
	}
	return s.api.Admin().Sessions(args[0]).List(cmd.Context()), checkPerson(args[0])
}

func (d *admin) endSessionsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "end USER [ID]", Short: "End a login of a person, or all of them",
		ValidArgsFunction: inOrder(d.users.complete, ids(d.app, d.sessionsOf, sessionText)),
		Long: `End a login of a person or, with --all, sign them out everywhere; then tokens that they
got elsewhere before are refused as well.`,
		Example: "  kedge admin sessions end bob 01932f5c-7b1e-7c3a-9d53-5b8f0c1d2e3f\n  kedge admin sessions end bob --all",
		Args: needs("the name of a person, and the ID of a session, as shown by kedge admin sessions, or --all",
			func(args []string) bool { return all && len(args) == 1 || !all && len(args) == 2 && isUUID(args[1]) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkPerson(args[0]); err != nil {
				return err
			}
			s, err := d.session(cmd.Context())
			if err != nil {
				return err
			}
			var receipt *rest.Receipt
			done := "Signed " + args[0] + " out everywhere."
			if all {
				receipt, err = s.api.Admin().Sessions(args[0]).EndAll(cmd.Context())
			} else {
				done = "Ended the session " + args[1] + " of " + args[0] + "."
				receipt, err = s.api.Admin().Sessions(args[0]).End(cmd.Context(), args[1])
			}
			if err != nil {
				return adviseAdmin(err)
			}
			fmt.Fprintln(d.Err, done)
			d.receipt(receipt)
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all logins of the person")
	return cmd
}
