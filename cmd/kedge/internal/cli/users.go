package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) usersCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "users", Aliases: []string{"user"}, Short: "Find people",
		Example: "  kedge users search bob",
	}
	search := &cobra.Command{
		Use: "search QUERY", Short: "Find people to add as members", Args: oneArg("a part of a person's name"),
		Long: `Find people by a part of their name, of at least two characters. What is shown as
NAME is what other commands take.`,
		Example: "  kedge users search bob\n  kedge users search bob -o name",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			columns := table{{"NAME", "name"}, {"DISPLAY NAME", "displayName"}}
			return ofArgument(printList(a, output, s.api.SearchPeople(cmd.Context(), args[0]), columns, nil), "query:q", "QUERY")
		},
	}
	output.flag(search)
	cmd.AddCommand(search)
	return cmd
}

func (a *app) meCommand() *cobra.Command {
	cmd := a.whoamiCommand()
	cmd.Use, cmd.Short = "me", "Show who you are to the hub, and rename, delete or undelete your account there"
	cmd.Example = "  kedge me\n  kedge me rename 'Alice Adams'\n  kedge me delete\n  kedge me undelete"
	cmd.AddCommand(a.renameMeCommand(), a.deleteMeCommand(), a.undeleteMeCommand())
	return cmd
}

func (a *app) renameMeCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "rename NAME", Short: "Give yourself another display name", Args: oneArg("your new display name"),
		Long:    "Give yourself another display name. Your name at the hub, by which others add you, stays as it is.",
		Example: "  kedge me rename 'Alice Adams'",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			renamed, err := s.api.RenameMe(cmd.Context(), args[0])
			if err != nil {
				return ofArgument(err, "displayName", "NAME")
			}
			return a.print(output, renamed.Raw, meColumns)
		},
	}
	output.flag(cmd)
	return cmd
}

var meColumns = table{{"NAME", "name"}, {"DISPLAY NAME", "displayName"}, {"EMAIL", "email"}}

// account opens the session and returns the caller's account.
func (a *app) account(cmd *cobra.Command) (s *session, who me, err error) {
	if s, err = a.session(cmd.Context()); err != nil {
		return nil, me{}, err
	}
	person, err := whoami(cmd.Context(), s.api)
	if err != nil {
		return s, me{}, err
	}
	return s, as[me](person), nil
}

func (a *app) deleteMeCommand() *cobra.Command {
	var output format
	c := &consent{app: a}
	cmd := &cobra.Command{
		Use: "delete", Short: "Delete your account; it can be brought back for a time", Args: noArgs,
		Long: `Delete your account at the hub. From then on you can do nothing there but see
who you are and, until the time that is printed, undelete yourself.`,
		Example: "  kedge me delete\n  kedge me delete --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, who, err := a.account(cmd)
			if err != nil {
				return err
			}
			if who.DeletionRequestedAt != "" {
				fmt.Fprintf(a.Err, "Your account %s is deleted already. %s\n", who.Name, untilPurge(who.PurgeAt, "kedge me undelete"))
				return a.printValue(output, who, meColumns)
			}
			text := fmt.Sprintf("Delete your account %s at %s? Your memberships give no rights then. It can be\n"+
				"brought back until the hub purges what was deleted, after 30 days where its operator\nhas not chosen otherwise.", who.Name, s.login.Server)
			if err := c.typed(cmd.Context(), text, "Type "+who.Name+" to go on", who.Name); err != nil {
				return err
			}
			gone, err := s.api.DeletePerson(cmd.Context(), "me")
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Err, "Deleted your account %s. %s\n", who.Name, untilPurge(when(gone.PurgeAt), "kedge me undelete"))
			return a.print(output, gone.Raw, deletedPersonColumns)
		},
	}
	output.flag(cmd)
	return c.first(cmd)
}

func (a *app) undeleteMeCommand() *cobra.Command {
	var output format
	c := &consent{app: a}
	cmd := &cobra.Command{
		Use: "undelete", Short: "Bring back your account", Args: noArgs,
		Long:    "Bring back your account at the hub after you deleted it, with its memberships.",
		Example: "  kedge me undelete\n  kedge me undelete --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, who, err := a.account(cmd)
			if err != nil {
				return err
			}
			if who.DeletionRequestedAt == "" {
				fmt.Fprintf(a.Err, "Your account %s is not deleted.\n", who.Name)
				return a.printValue(output, who, meColumns)
			}
			if err := c.agreed(cmd.Context(), fmt.Sprintf("Bring back your account %s at %s?", who.Name, s.login.Server)); err != nil {
				return err
			}
			back, err := s.api.UndeletePerson(cmd.Context(), "me")
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Err, "Your account %s is back.\n", who.Name)
			return a.print(output, back.Raw, meColumns)
		},
	}
	output.flag(cmd)
	return c.first(cmd)
}
