package cli

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

var sessionColumns = table{{"ID", "id"}, {"CLIENT", "client"}, {"DESCRIPTION", "description"}, {"CREATED", "createdAt"},
	{"LAST USED", "lastUsedAt"}, {"EXPIRES", "expiresAt"}, {"CURRENT", "current"}}

func (a *app) sessionsCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "sessions", Aliases: []string{"session"}, Short: "List your logins at the hub, and end them",
		Long: `List your logins at the hub, on all computers and in all browsers. When a session
ends, the hub refuses its tokens and closes its open watches.`,
		Example: "  kedge sessions\n  kedge sessions end ID\n  kedge sessions end --all",
	}
	printing(a, cmd, &output, sessionColumns, unchanged, a.listSessions)
	listCommand := &cobra.Command{Use: "list", Short: "List your logins at the hub", Example: "  kedge sessions list\n  kedge sessions list -o json"}
	printing(a, listCommand, &output, sessionColumns, unchanged, a.listSessions)
	cmd.AddCommand(listCommand, a.endSessionCommand())
	return cmd
}

func (a *app) listSessions(cmd *cobra.Command, _ []string) (iter.Seq2[rest.Session, error], error) {
	s, err := a.session(cmd.Context())
	if err != nil {
		return nil, err
	}
	return s.api.Sessions().List(cmd.Context()), nil
}

// sessionText names a session for a shell.
func sessionText(s rest.Session) (id, description string) {
	return s.ID, s.Client + " " + s.Description + ", last used " + when(&s.LastUsedAt)
}

func (a *app) endSessionCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "end ID|--all", Short: "End a login, or all of them", ValidArgsFunction: inOrder(ids(a, a.listSessions, sessionText)),
		Long: `End one of your logins at the hub or, with --all, sign out everywhere, here too. With
--all, tokens that you got elsewhere before are refused as well.`,
		Example: "  kedge sessions end 01932f5c-7b1e-7c3a-9d53-5b8f0c1d2e3f\n  kedge sessions end --all",
		Args: needs("the ID of a session, as shown by kedge sessions, or --all", func(args []string) bool {
			return all && len(args) == 0 || !all && len(args) == 1 && isUUID(args[0])
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.session(cmd.Context())
			if err != nil {
				return err
			}
			if all {
				return s.endAll(cmd.Context())
			}
			receipt, err := s.api.Sessions().End(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "Ended the session %s.\n", args[0])
			a.receipt(receipt)
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "sign out everywhere, here too")
	return cmd
}

// endAll signs out everywhere and forgets the login, unless that has a static token.
func (s *session) endAll(ctx context.Context) error {
	receipt, err := s.api.Sessions().EndAll(ctx)
	if err != nil {
		return err
	}
	if s.login.Secret != "" {
		if _, err := forget(ctx, s.path, s.name); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.app.Out, "Signed out of %s everywhere.\n", s.login.Server)
	s.app.receipt(receipt)
	return err
}
