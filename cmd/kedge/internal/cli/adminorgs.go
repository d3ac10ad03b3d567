package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/client"
)

var (
	deletedPersonColumns = table{{"NAME", "name"}, {"DISPLAY NAME", "displayName"}, {"DELETED", "deletionRequestedAt"}, {"PURGE AT", "purgeAt"}}
	allDeletionColumns   = table{{"KIND", "kind"}, {"NAME", "name"}, {"DISPLAY NAME", "displayName"}, {"DELETED", "deletionRequestedAt"}, {"PURGE AT", "purgeAt"},
		{"PURGING", "purging"}, {"ORGANIZATION", "orgUUID", wide}}
)

// org is the UUID of the organization that an argument names, of all that the hub has.
func (d *admin) org(ctx context.Context, s *session, arg string) (string, error) {
	if isUUID(arg) {
		return arg, nil
	}
	t, err := s.find(ctx, naming{"organization", "kedge admin orgs", "CREATED BY"}, client.Request{Path: adminOrgs, Query: url.Values{"q": {arg}}}, arg)
	return t.UUID, err
}

func (d *admin) orgsCommand() *cobra.Command {
	cmd := d.listing(&cobra.Command{
		Use: "orgs", Aliases: []string{"org"}, Short: "List all organizations, and delete one",
		Example: "  kedge admin orgs --personal false\n  kedge admin orgs delete ACME",
	}, &cobra.Command{Use: "list", Short: "List all organizations", Example: "  kedge admin orgs list --query acme"}, adminOrgs, adminOrgColumns,
		&filter{flag: "query", parameter: "q", usage: "a part of the display name"},
		&filter{flag: "personal", parameter: "personal", usage: "true for personal organizations alone, false for the others"})
	cmd.AddCommand(d.deleteOrgCommand())
	return cmd
}

func (d *admin) deleteOrgCommand() *cobra.Command {
	c := consent{app: d.app}
	cmd := &cobra.Command{
		Use: "delete UUID|NAME", Short: "Delete an organization; its admins can bring it back for a time", Args: oneArg("the UUID or the name of an organization"),
		Long: `Delete an organization with all its workspaces. Nobody can use them from then on.
Until the time that is printed, its admins can bring it back.`,
		Example: "  kedge admin orgs delete ACME", ValidArgsFunction: d.completeOrgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.possible(); err != nil {
				return err
			}
			s, err := d.session(cmd.Context())
			if err != nil {
				return err
			}
			uuid, err := d.org(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			text := fmt.Sprintf("Delete the organization %s with all its workspaces? Nobody can use them then.", args[0])
			if err := c.typed(cmd.Context(), text, "Type "+args[0]+" to go on", args[0]); err != nil {
				return err
			}
			return d.sendAbout(cmd, client.Request{Method: http.MethodDelete, Path: adminOrgs + "/" + uuid}, deletionColumns)
		},
	}
	c.flag(cmd)
	d.output.flag(cmd)
	return cmd
}

func (d *admin) deletionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "deletions", Short: "List what was deleted and can still be brought back", Args: noArgs, Example: "  kedge admin deletions",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.list(cmd, client.Request{Path: "/api/admin/deletions"}, allDeletionColumns)
		},
	}
	d.output.flag(cmd)
	return cmd
}

func (d *admin) sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sessions USER", Aliases: []string{"session"}, Short: "List the logins of a person, and end them", Args: oneArg("the name of a person"), ValidArgsFunction: d.completePeople,
		Example: "  kedge admin sessions bob\n  kedge admin sessions end bob --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := aboutPerson("", args[0], "/sessions", nil)
			if err != nil {
				return err
			}
			return d.list(cmd, r, sessionColumns)
		},
	}
	d.output.flag(cmd)
	cmd.AddCommand(d.endSessionsCommand())
	return cmd
}

func (d *admin) endSessionsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "end USER [ID]", Short: "End a login of a person, or all of them", ValidArgsFunction: d.completePeople,
		Long: `End a login of a person or, with --all, sign them out everywhere; then tokens that they
got elsewhere before are refused as well.`,
		Example: "  kedge admin sessions end bob 01932f5c-7b1e-7c3a-9d53-5b8f0c1d2e3f\n  kedge admin sessions end bob --all",
		Args: func(cmd *cobra.Command, args []string) error {
			if all && len(args) == 1 || !all && len(args) == 2 && isUUID(args[1]) {
				return nil
			}
			return fmt.Errorf("%s needs the name of a person, and the ID of a session, as shown by kedge admin sessions, or --all; %w", cmd.CommandPath(), errUsage)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := aboutPerson(http.MethodDelete, args[0], "/sessions", nil)
			if err != nil {
				return err
			}
			done := "Signed " + args[0] + " out everywhere."
			if all {
				r.Query = url.Values{"all": {"true"}}
			} else {
				r.Path += "/" + args[1]
				done = "Ended the session " + args[1] + " of " + args[0] + "."
			}
			if err := d.sendAbout(cmd, r, nil); err != nil {
				return err
			}
			fmt.Fprintln(d.Err, done)
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all logins of the person")
	return cmd
}

// completePeople completes the name of a person.
func (d *admin) completePeople(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return d.candidates(cmd, func(ctx context.Context, s *session) ([]cobra.Completion, error) {
		var found []cobra.Completion
		for person, err := range client.List[client.FoundPerson](ctx, s, client.Request{Path: adminUsers}) {
			if err != nil {
				return nil, err
			}
			found = append(found, cobra.CompletionWithDesc(person.Name, person.DisplayName))
		}
		return found, nil
	})
}

// completeOrgs completes the name of an organization, of all that the hub has.
func (d *admin) completeOrgs(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return d.candidates(cmd, func(ctx context.Context, s *session) ([]cobra.Completion, error) {
		return s.completions(ctx, client.Request{Path: adminOrgs})
	})
}
