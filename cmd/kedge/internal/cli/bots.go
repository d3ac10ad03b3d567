package cli

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/client"
)

// botColumns are the columns of bots.
var botColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"ROLE", "role"}, {"PHASE", "phase"}, {"CREATED", "createdAt"}, {"LAST TOKEN", "lastTokenIssuedAt"}}

// bots are the commands for the bots of a workspace.
type bots struct {
	*app
	org, workspace string
	output         format
}

// botsCommand is kedge bots, about the chosen workspace.
func (a *app) botsCommand() *cobra.Command {
	b := &bots{app: a}
	cmd := &cobra.Command{
		Use: "bots", Aliases: []string{"bot"}, Short: "Manage bots, the accounts of programs such as CI, in the chosen workspace",
		Long: `Manage the bots of the chosen workspace. A bot has a role in this one workspace,
and tokens for programs such as CI. Only admins of the workspace can create bots.`,
		Example: "  kedge bots create CI\n  kedge bots tokens create CI --file kubeconfig\n  kedge bots tokens revoke CI --all",
		Args:    noArgs, RunE: b.runList,
	}
	a.orgFlag(cmd, &b.org)
	a.workspaceFlag(cmd, &b.org, &b.workspace)
	list := &cobra.Command{Use: "list", Short: "List the bots of the chosen workspace", Args: noArgs, Example: "  kedge bots list", RunE: b.runList}
	b.output.flag(cmd)
	b.output.flag(list)
	cmd.AddCommand(list, b.getCommand(), b.createCommand(), b.setRoleCommand(), b.deleteCommand(), b.tokensCommand())
	return cmd
}

// open opens the session and returns the path of the bots.
func (b *bots) open(ctx context.Context) (*session, client.Request, error) {
	s, err := b.session(ctx)
	if err != nil {
		return nil, client.Request{}, err
	}
	r, err := s.workspace(ctx, b.org, b.workspace)
	r.Path += "/serviceaccounts"
	return s, r, err
}

// bot opens the session and returns the path of one bot.
func (b *bots) bot(ctx context.Context, arg string) (*session, client.Request, error) {
	s, r, err := b.open(ctx)
	if err != nil {
		return nil, r, err
	}
	if !isUUID(arg) {
		t, err := s.find(ctx, botsOfWorkspace(), r, arg)
		if err != nil {
			return nil, r, err
		}
		arg = t.UUID
	}
	r.Path += "/" + arg
	return s, r, nil
}

func (b *bots) runList(cmd *cobra.Command, _ []string) error {
	s, r, err := b.open(cmd.Context())
	if err != nil {
		return err
	}
	raw, err := listAll(cmd.Context(), s, r)
	if err != nil {
		return err
	}
	return b.print(b.output, raw, botColumns)
}

func (b *bots) getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get UUID|NAME", Short: "Show a bot", Args: oneArg("the UUID or the name of a bot"), ValidArgsFunction: b.complete, Example: "  kedge bots get CI",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, r, err := b.bot(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return b.send(cmd.Context(), s, r, http.MethodGet, nil)
		},
	}
	b.output.flag(cmd)
	return cmd
}

// send sends a request about a bot and prints the answer.
func (b *bots) send(ctx context.Context, s *session, r client.Request, method string, body any) error {
	r.Method, r.Body = method, body
	_, raw, err := s.send(ctx, r)
	if err != nil {
		return err
	}
	return b.printAnswer(b.output, raw, botColumns)
}

func (b *bots) createCommand() *cobra.Command {
	as := role("member")
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a bot", Args: oneArg("a name for the bot"), Example: "  kedge bots create CI\n  kedge bots create Deploy --role admin",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, r, err := b.open(cmd.Context())
			if err != nil {
				return err
			}
			return b.send(cmd.Context(), s, r, http.MethodPost, map[string]any{"displayName": args[0], "role": as})
		},
	}
	cmd.Flags().Var(&as, "role", "admin or member")
	b.output.flag(cmd)
	return cmd
}

func (b *bots) setRoleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set-role UUID|NAME ROLE", Short: "Set the role of a bot: admin or member", ValidArgsFunction: b.complete, Example: "  kedge bots set-role CI admin",
		Long: "Set the role of a bot. Its living tokens have the new role at once.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 || new(role).Set(args[1]) != nil {
				return fmt.Errorf("%s needs the UUID or the name of a bot and a role, admin or member; %w", cmd.CommandPath(), errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, r, err := b.bot(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return b.send(cmd.Context(), s, r, http.MethodPatch, map[string]any{"role": args[1]})
		},
	}
	b.output.flag(cmd)
	return cmd
}

func (b *bots) deleteCommand() *cobra.Command {
	c := consent{app: b.app}
	cmd := &cobra.Command{
		Use: "delete UUID|NAME", Aliases: []string{"rm"}, Short: "Delete a bot with its tokens, for good", Args: oneArg("the UUID or the name of a bot"), ValidArgsFunction: b.complete,
		Example: "  kedge bots delete --yes 0b6d2f5e-7a3c-4c6b-9a3a-0d7c1f1f2a3b",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.possible(); err != nil {
				return err
			}
			s, r, err := b.bot(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := c.agreed(cmd.Context(), "Delete bot "+args[0]+"? All its tokens end, and it cannot be brought back."); err != nil {
				return err
			}
			r.Method = http.MethodDelete
			if _, _, err := s.send(cmd.Context(), r); err != nil {
				return err
			}
			fmt.Fprintf(b.Err, "Deleted bot %s.\n", args[0])
			return nil
		},
	}
	c.flag(cmd)
	return cmd
}
