package cli

import (
	"context"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// botColumns are the columns of bots.
var botColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"ROLE", "role"}, {"PHASE", "phase"}, {"CREATED", "createdAt"}, {"LAST TOKEN", "lastTokenIssuedAt"}}

// bots are the commands for the bots of a workspace.
type bots struct {
	resource[rest.Bot, client.Bots]
	org, workspace string
}

// at opens the session and returns the requests about the workspace.
func (b *bots) at(ctx context.Context) (client.InWorkspace, error) {
	w, _, err := b.inWorkspace(ctx, b.org, b.workspace)
	return w, err
}

// botsCommand is kedge bots, about the chosen workspace.
func (a *app) botsCommand() *cobra.Command {
	b := &bots{}
	b.resource = resource[rest.Bot, client.Bots]{
		app: a, columns: botColumns, candidates: byDisplayName[rest.Bot],
		open: func(cmd *cobra.Command, _ []string) (*session, client.Bots, error) {
			w, err := b.at(cmd.Context())
			return nil, w.Bots(), err
		},
		name: func(ctx context.Context, all client.Bots, arg string) (string, error) {
			if isUUID(arg) {
				return arg, nil
			}
			t, err := find(botsOfWorkspace(), all.List(ctx), arg)
			return t.UUID, err
		},
	}
	b.warn = b.warnOfTokens
	cmd := &cobra.Command{
		Use: "bots", Aliases: []string{"bot"}, Short: "Manage bots, the accounts of programs such as CI, in the chosen workspace",
		Long: `Manage the bots of the chosen workspace. A bot has a role in this one workspace,
and tokens for programs such as CI. Only admins of the workspace can create bots.`,
		Example: "  kedge bots create CI\n  kedge bots tokens create CI --file kubeconfig\n  kedge bots tokens revoke CI --all",
	}
	a.placeFlags(cmd, &b.org, &b.workspace)
	list := &cobra.Command{Use: "list", Short: "List the bots of the chosen workspace", Example: "  kedge bots list"}
	b.listing(cmd, list)
	cmd.AddCommand(list, b.getting(&cobra.Command{
		Use: "get UUID|NAME", Short: "Show a bot", Args: oneArg("the UUID or the name of a bot"), Example: "  kedge bots get CI",
	}), b.createCommand(), b.renameCommand(), b.setRoleCommand(), b.deleting(&cobra.Command{
		Use: "delete UUID|NAME", Aliases: []string{"rm"}, Short: "Delete a bot with its tokens, for good", Args: oneArg("the UUID or the name of a bot"),
		Example: "  kedge bots delete --yes 0b6d2f5e-7a3c-4c6b-9a3a-0d7c1f1f2a3b",
	}, "Delete bot %s? All its tokens end, and it cannot be brought back.", "Deleted bot %s.\n"), b.tokensCommand(), b.trustCommand())
	return cmd
}

func (b *bots) createCommand() *cobra.Command {
	as := role("member")
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a bot", Args: oneArg("a name for the bot"), Example: "  kedge bots create CI\n  kedge bots create Deploy --role admin",
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := b.at(cmd.Context())
			if err != nil {
				return err
			}
			made, err := w.Bots().Create(cmd.Context(), rest.CreateBotRequest{DisplayName: args[0], Role: rest.Role(as.value)}, client.Waiting(b.beingMade("bot")))
			if err != nil {
				return err
			}
			return b.show(made, botColumns)
		},
	}
	cmd.Flags().Var(as, "role", "admin, member or viewer")
	b.output.flag(cmd)
	return cmd
}

func (b *bots) renameCommand() *cobra.Command {
	return b.about(&cobra.Command{
		Use: "rename UUID|NAME NEW-NAME", Short: "Give a bot another name", Example: "  kedge bots rename CI \"CI of the shop\"",
		Long: "Give a bot another name. Its UUID, its role and its tokens stay as they are.",
		Args: twoArgs("the UUID or the name of a bot, and its new name"),
	}, botColumns, func(ctx context.Context, _ *session, all client.Bots, uuid string, args []string) (object, error) {
		o, err := all.Update(ctx, uuid, rest.UpdateBotRequest{DisplayName: rest.Set(args[1])})
		return *orNone(o), ofArgument(err, "displayName", "NEW-NAME")
	})
}

func (b *bots) setRoleCommand() *cobra.Command {
	cmd := b.about(&cobra.Command{
		Use: "set-role UUID|NAME ROLE", Short: "Set the role of a bot: admin, member or viewer", Example: "  kedge bots set-role CI admin",
		Long: "Set the role of a bot. Its living tokens have the new role at once.",
		Args: needs("the UUID or the name of a bot and a role, admin, member or viewer", func(args []string) bool {
			return len(args) == 2 && role("").Set(args[1]) == nil
		}),
	}, botColumns, func(ctx context.Context, _ *session, all client.Bots, uuid string, args []string) (object, error) {
		o, err := all.Update(ctx, uuid, rest.UpdateBotRequest{Role: rest.Set(rest.Role(args[1]))}, client.Representation())
		changed := *orNone(o)
		b.receipt(changed.Receipt)
		return changed, err
	})
	cmd.ValidArgsFunction = inOrder(b.complete, completeRole(role("")))
	return cmd
}
