package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// tokenColumns are the columns of tokens.
var tokenColumns = table{{"ID", "id"}, {"NAME", "name"}, {"CREATED", "createdAt"}, {"EXPIRES", "expirationTimestamp"}, leftColumn(), {"LAST USED", "lastUsedAt"}}

func (b *bots) tokensCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tokens", Aliases: []string{"token"}, Short: "Issue, list, rotate and revoke tokens of a bot",
		Long:    "Issue, list, rotate and revoke tokens of a bot. A token is shown once, when it is issued.",
		Example: "  kedge bots tokens create CI --file kubeconfig\n  kedge bots tokens list CI",
	}
	cmd.AddCommand(b.createTokenCommand(), b.listTokensCommand(), b.rotateTokenCommand(), b.revokeTokenCommand())
	return cmd
}

// completeToken completes the ID of a living token of the bot of the first argument.
func (b *bots) completeToken() cobra.CompletionFunc {
	return ids(b.app, b.tokensOf, func(t rest.BotToken) (string, string) {
		return t.ID, strings.TrimSpace(t.Name + " until " + when(&t.ExpirationTimestamp))
	})
}

// tokensOf lists the living tokens of a bot.
func (b *bots) tokensOf(cmd *cobra.Command, args []string) (iter.Seq2[rest.BotToken, error], error) {
	w, bot, err := b.bot(cmd.Context(), args[0])
	return w.BotTokens(bot).List(cmd.Context()), err
}

// bot opens the session and returns the requests about its workspace, and the UUID of a bot.
func (b *bots) bot(ctx context.Context, arg string) (w client.InWorkspace, uuid string, err error) {
	if w, err = b.at(ctx); err == nil {
		uuid, err = b.name(ctx, w.Bots(), arg)
	}
	return w, uuid, err
}

func (b *bots) listTokensCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "list BOT", Short: "List the living tokens of a bot", Args: oneArg("the UUID or the name of a bot"), ValidArgsFunction: b.complete, Example: "  kedge bots tokens list CI",
	}
	printing(b.app, cmd, &output, tokenColumns, b.failed, func(cmd *cobra.Command, args []string) (iter.Seq2[rest.BotToken, error], error) {
		all, err := b.tokensOf(cmd, args)
		return each(all, b.warnToken(args[0])), err
	})
	return cmd
}

func (b *bots) revokeTokenCommand() *cobra.Command {
	c, all := consent{app: b.app}, false
	cmd := &cobra.Command{
		Use: "revoke BOT [ID]", Short: "Revoke a token of a bot, or all of them", ValidArgsFunction: inOrder(b.complete, b.completeToken()), Example: "  kedge bots tokens revoke CI ID\n  kedge bots tokens revoke CI --all --yes",
		Args: needs("the UUID or the name of a bot, and the ID of a token or --all", func(args []string) bool {
			return len(args) == 2 && !all && isUUID(args[1]) || len(args) == 1 && all
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all {
				if err := c.possible(); err != nil {
					return err
				}
			}
			w, bot, err := b.bot(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var receipt *rest.Receipt
			text := "Revoked all tokens of the bot."
			if all {
				if err := c.agreed(cmd.Context(), "Revoke all tokens of bot "+args[0]+"? Every program that works as it stops."); err != nil {
					return err
				}
				receipt, err = w.BotTokens(bot).EndAll(cmd.Context())
			} else {
				text = "Revoked token " + args[1] + "."
				receipt, err = w.BotTokens(bot).End(cmd.Context(), args[1])
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(b.Err, text)
			b.receipt(receipt)
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all tokens of the bot")
	c.flag(cmd)
	return cmd
}

// errNoToken means that the answer of the hub is not one to a request for a token.
var errNoToken = errors.New("the hub's answer has no token")

// kubeconfigOutput is the word for a kubeconfig that has the token.
const kubeconfigOutput = "kubeconfig"

// tokenOptions are the flags of kedge bots tokens create.
type tokenOptions struct {
	name    string
	expires life
	output  word
	file    string
	stdout  bool
}

func (b *bots) createTokenCommand() *cobra.Command {
	o := newTokenOptions()
	cmd := &cobra.Command{
		Use: "create BOT", Short: "Issue a token of a bot", Args: oneArg("the UUID or the name of a bot"), ValidArgsFunction: b.complete,
		Long: `Issue a token of a bot and print it, by default in a kubeconfig. The token is shown
only once. It is not printed on a terminal without --stdout: give --file, or pipe the
output to the program that stores the token.`,
		Example: "  kedge bots tokens create CI --file kubeconfig\n  kedge bots tokens create CI --expires-in 90d -o token | secret-store put kedge",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "file", "stdout"); err != nil {
				return err
			}
			if err := o.shown(b.app); err != nil {
				return err
			}
			w, bot, err := b.bot(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return b.issue(cmd.Context(), w, bot, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "name of the token, to tell it from others")
	flags.Var(&o.expires, "expires-in", "life of the token, such as 90d or 12h (default: what the hub gives, a year)")
	o.flags(cmd)
	return cmd
}

func newTokenOptions() tokenOptions {
	return tokenOptions{output: word{kubeconfigOutput, []string{kubeconfigOutput, "token", "json"}}}
}

// flags are those that say where a token is printed.
func (o *tokenOptions) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.VarP(&o.output, "output", "o", "what to print: kubeconfig, token or json")
	flags.StringVarP(&o.file, "file", "f", "", "file to write to instead, readable by you alone")
	flags.BoolVar(&o.stdout, "stdout", false, "print the token even if the output is a terminal")
}

// issue issues a token and prints it.
func (b *bots) issue(ctx context.Context, w client.InWorkspace, bot string, o tokenOptions) (err error) {
	var kubeconfig []byte
	if o.output.value == kubeconfigOutput {
		if kubeconfig, err = w.Kubeconfig(ctx); err != nil {
			return err
		}
	}
	body := rest.IssueBotTokenRequest{Name: o.name}
	if o.expires > 0 {
		body.ExpirationSeconds = new(int64(o.expires / life(time.Second)))
	}
	issued, err := w.IssueBotToken(ctx, bot, body)
	if err != nil {
		return err
	}
	if issued.Token == "" {
		return errNoToken
	}
	return b.keep(ctx, w, bot, o, issued, kubeconfig)
}

// write prints a token.
func (b *bots) write(o tokenOptions, issued *rest.IssuedBotToken, kubeconfig []byte) error {
	out, err := o.of(issued.Raw, issued.Token, kubeconfig)
	switch {
	case err != nil:
		return err
	case o.file != "":
		return config.WriteFile(o.file, out)
	}
	_, err = b.Out.Write(out)
	return err
}

// keep prints a new token. One that cannot be written anywhere is revoked.
func (b *bots) keep(ctx context.Context, w client.InWorkspace, bot string, o tokenOptions, issued *rest.IssuedBotToken, kubeconfig []byte) error {
	if err := b.write(o, issued, kubeconfig); err != nil {
		if _, revokeErr := w.BotTokens(bot).Delete(ctx, issued.ID); revokeErr != nil {
			return fmt.Errorf("%w; the token %s is not revoked: %w", err, issued.ID, revokeErr)
		}
		return fmt.Errorf("%w; the token %s is revoked again", err, issued.ID)
	}
	fmt.Fprintf(b.Err, "Issued token %s, which expires at %s.\n", issued.ID, when(&issued.ExpirationTimestamp))
	return nil
}

// of returns what is printed: raw is the hub's answer, kubeconfig that of the workspace, in which
// the token replaces the login.
func (o *tokenOptions) of(raw []byte, token string, kubeconfig []byte) ([]byte, error) {
	switch o.output.value {
	case "json":
		return append([]byte(strings.TrimSpace(string(raw))), '\n'), nil
	case "token":
		return []byte(token + "\n"), nil
	}
	var c struct {
		Users []struct {
			Name string         `json:"name"`
			User map[string]any `json:"user"`
		} `json:"users"`
	}
	var whole map[string]any
	if yaml.Unmarshal(kubeconfig, &c) != nil || yaml.Unmarshal(kubeconfig, &whole) != nil || len(c.Users) != 1 {
		return nil, errors.New("the hub's kubeconfig cannot be read")
	}
	c.Users[0].User = map[string]any{"token": token}
	whole["users"] = c.Users
	return yaml.Marshal(whole)
}

// life is the value of --expires-in.
type life time.Duration

func (l *life) String() string {
	if *l == 0 {
		return ""
	}
	return time.Duration(*l).String()
}

// Type implements pflag.Value.
func (l *life) Type() string { return "duration" }

// Set implements pflag.Value. It takes days besides Go's units.
func (l *life) Set(s string) error {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil || n == 0 {
			return errors.New("give a number of days, such as 90d")
		}
		*l = life(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Second {
		return errors.New("give a time such as 90d or 12h")
	}
	*l = life(d)
	return nil
}
