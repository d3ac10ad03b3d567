package cli

import (
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// trustColumns are the columns of trust rules.
var trustColumns = table{
	{"ID", "id"}, {"ISSUER", "issuer"}, {"CLAIMS", "claims"}, {"AUDIENCE", "audience"},
	{"LAST USED", "lastUsedAt"}, {"LAST REFUSED", "lastRefusal"}, {"CREATED", "createdAt", wide}, {"CREATED BY", "createdBy", wide},
}

func (b *bots) trustCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "trust", Short: "Manage which jobs of CI get tokens of a bot for their own",
		Long: `Manage which jobs get tokens of a bot. A job of GitHub Actions or GitLab CI has an
ID token that says which job it is. "kedge login --ci" exchanges it for a token of a
bot that trusts it, so that no pipeline needs a secret.`,
		Example: "  kedge bots trust add CI --issuer https://token.actions.githubusercontent.com --claim repository_id=42 --claim ref=refs/heads/main\n" +
			"  kedge bots trust list CI",
	}
	cmd.AddCommand(b.addTrustCommand(), b.listTrustCommand(), b.removeTrustCommand())
	return cmd
}

func (b *bots) listTrustCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "list BOT", Short: "List the jobs that a bot trusts", Args: oneArg("the UUID or the name of a bot"), ValidArgsFunction: b.complete,
		Example: "  kedge bots trust list CI",
	}
	printing(b.app, cmd, &output, trustColumns, unchanged, b.trustOf)
	return cmd
}

// trustOf lists the jobs that a bot trusts.
func (b *bots) trustOf(cmd *cobra.Command, args []string) (iter.Seq2[rest.BotTrust, error], error) {
	w, bot, err := b.bot(cmd.Context(), args[0])
	return w.BotTrust(bot).List(cmd.Context()), err
}

func (b *bots) addTrustCommand() *cobra.Command {
	var in rest.AddBotTrustRequest
	var claims []string
	cmd := &cobra.Command{
		Use: "add BOT", Short: "Let a bot trust a job", Args: oneArg("the UUID or the name of a bot"), ValidArgsFunction: b.complete,
		Long: `Let a bot trust the jobs whose ID token has all the claims, with exactly these values.
Name a repository or a project by its number, which no other can have later. Jobs of
pull requests and merge requests are not trusted unless you name event_name or
pipeline_source.`,
		Example: "  kedge bots trust add CI --issuer https://token.actions.githubusercontent.com --claim repository_id=42 --claim environment=production\n" +
			"  kedge bots trust add CI --issuer https://gitlab.example.com --claim project_id=42 --claim ref_protected=true",
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Claims = map[string]string{}
			for _, claim := range claims {
				name, value, ok := strings.Cut(claim, "=")
				if _, twice := in.Claims[name]; !ok || name == "" || twice {
					return fmt.Errorf("--claim: give each claim once, as NAME=VALUE; %w", errUsage)
				}
				in.Claims[name] = value
			}
			if in.Issuer == "" || len(in.Claims) == 0 {
				return fmt.Errorf("give --issuer and at least one --claim; %w", errUsage)
			}
			w, bot, err := b.bot(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			made, err := w.BotTrust(bot).Create(cmd.Context(), in, client.Once())
			if err != nil {
				return err
			}
			return b.show(made, trustColumns)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Issuer, "issuer", "", "URL of the identity provider of the job, which the hub must allow")
	flags.StringArrayVar(&claims, "claim", nil, "claim of the ID token with its exact value, as NAME=VALUE; can be repeated")
	flags.StringVar(&in.Audience, "audience", "", "audience of the ID token (default: the URL of the hub)")
	b.output.flag(cmd)
	return cmd
}

func (b *bots) removeTrustCommand() *cobra.Command {
	rules := ids(b.app, b.trustOf, func(t rest.BotTrust) (string, string) { return t.ID, t.Issuer })
	return &cobra.Command{
		Use: "remove BOT ID", Aliases: []string{"rm"}, Short: "Remove a rule, and end the tokens that jobs got by it",
		ValidArgsFunction: inOrder(b.complete, rules), Example: "  kedge bots trust remove CI 0b6d2f5e-7a3c-4c6b-9a3a-0d7c1f1f2a3b",
		Args: needs("the UUID or the name of a bot, and the ID of a rule", func(args []string) bool {
			return len(args) == 2 && isUUID(args[1])
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, bot, err := b.bot(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			receipt, err := w.BotTrust(bot).End(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			fmt.Fprintf(b.Err, "Removed rule %s. The tokens that jobs got by it have ended.\n", args[1])
			b.receipt(receipt)
			return nil
		},
	}
}
