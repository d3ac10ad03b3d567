package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// warnWithin is the time before the end of a token from which on people are warned.
const warnWithin = 14 * 24 * time.Hour

// toReplace begins the advice about a token that ends soon.
const toReplace = "to replace it, run: "

// leftColumn is the column of the time that is left to a token.
func leftColumn() [3]string { return [3]string{"LEFT", "expirationTimestamp"} }

// leftUntil returns the time until an end in words.
func leftUntil(at string, now time.Time) string {
	end, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return ""
	}
	if left := end.Sub(now); left > 0 {
		return inWords(left)
	}
	return "none"
}

// warnOfEnd warns that a token ends soon. what names it, and then says what to do.
func (a *app) warnOfEnd(what string, end metav1.Time, then string) {
	if now := time.Now(); end.Sub(now) < warnWithin {
		fmt.Fprintf(a.Err, "Warning: %s ends in %s; %s\n", what, leftUntil(end.Format(time.RFC3339), now), then)
	}
}

// warnBot warns a bot that its token ends soon. That of a job always does.
func (a *app) warnBot(who *rest.Me) {
	if who.Kind == botKind && !who.Job && who.ExpiresAt != nil {
		a.warnOfEnd("the token of this bot", *who.ExpiresAt, toReplace+"kedge bots tokens rotate")
	}
}

// warnToken warns of a token of a bot that ends soon and is not replaced yet.
func (b *bots) warnToken(bot string) func(rest.BotToken) {
	return func(t rest.BotToken) {
		if t.Trust == "" && t.RotatedTo == "" {
			b.warnOfEnd("the token "+t.ID, t.ExpirationTimestamp, toReplace+"kedge bots tokens rotate "+bot+" "+t.ID)
		}
	}
}

// warnOfTokens warns of a bot with a token that ends soon.
func (b *bots) warnOfTokens(bot rest.Bot) {
	if bot.NextTokenExpiresAt != nil {
		b.warnOfEnd("a token of the bot "+printable(bot.DisplayName), *bot.NextTokenExpiresAt, "to see which one, run: kedge bots tokens list "+bot.UUID)
	}
}

// rotation are the flags of kedge bots tokens rotate.
type rotation struct {
	tokenOptions
	grace time.Duration
}

func (b *bots) rotateTokenCommand() *cobra.Command {
	o := rotation{tokenOptions: newTokenOptions()}
	cmd := &cobra.Command{
		Use: "rotate [BOT ID]", Short: "Replace a token of a bot by a new one", ValidArgsFunction: inOrder(b.complete, b.completeToken()),
		Long: `Replace a token of a bot by a new one that lives as long, and print it as kedge bots tokens
create does. The old token still works for a while, and is not replaced again.

In the login of a bot and without arguments, the token of the login is replaced, and the login goes on with
the new one. It is then printed only with --output, --file or --stdout.`,
		Example: "  kedge bots tokens rotate CI ID --file kubeconfig\n  kedge bots tokens rotate",
		Args: needs("the UUID or the name of a bot and the ID of a token, or, for the login of a bot, nothing",
			func(args []string) bool { return len(args) == 0 || len(args) == 2 && isUUID(args[1]) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := exclusive(cmd, "file", "stdout"); err != nil {
				return err
			}
			if o.grace < 0 || o.grace%time.Second != 0 {
				return fmt.Errorf("--grace: give whole seconds, such as 10m or 0s; %w", errUsage)
			}
			s, err := b.session(cmd.Context())
			if err != nil {
				return err
			}
			wanted := cmd.Flags().Changed("output") || cmd.Flags().Changed("file") || cmd.Flags().Changed("stdout")
			own := len(args) == 0
			switch {
			case own && s.login.Bot == "":
				return fmt.Errorf("this login is that of a person: give the bot and the ID of the token; %w", errUsage)
			case !own && s.login.Bot != "":
				return fmt.Errorf("a bot replaces its own token only: give no arguments; %w", errUsage)
			case !own || wanted:
				if err := o.shown(b.app); err != nil {
					return err
				}
			}
			if own {
				return b.rotateOwn(cmd.Context(), s, o, wanted)
			}
			w, bot, err := b.bot(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			issued, kubeconfig, err := b.rotated(cmd.Context(), w, bot, args[1], o)
			if err != nil {
				return err
			}
			return b.keep(cmd.Context(), w, bot, o.tokenOptions, issued, kubeconfig)
		},
	}
	o.flags(cmd)
	cmd.Flags().DurationVar(&o.grace, "grace", 10*time.Minute, "time for which the old token still works")
	return cmd
}

// rotated replaces a token. kubeconfig is that of the workspace, if it is printed.
func (b *bots) rotated(ctx context.Context, w client.InWorkspace, bot, token string, o rotation) (
	issued *rest.IssuedBotToken, kubeconfig []byte, err error,
) {
	if o.output.value == kubeconfigOutput {
		// What can fail fails before the old token gets its end.
		if kubeconfig, err = w.Kubeconfig(ctx); err != nil {
			return nil, nil, err
		}
	}
	issued, err = w.RotateBotToken(ctx, bot, token, rest.RotateBotTokenRequest{GracePeriodSeconds: new(int64(o.grace / time.Second))})
	if err == nil && issued.Token == "" {
		err = errNoToken
	}
	return issued, kubeconfig, err
}

// rotateOwn replaces the token of the login of a bot. The login has the new one before it is printed.
func (b *bots) rotateOwn(ctx context.Context, s *session, o rotation, wanted bool) error {
	who, err := whoami(ctx, s.api)
	if err != nil {
		return err
	}
	w := s.in(target{s.login.Org, s.login.Workspace})
	if !wanted {
		o.output.value = "token"
	}
	issued, kubeconfig, err := b.rotated(ctx, w, who.UUID, who.Token, o)
	if err != nil {
		return err
	}
	err = s.update(ctx, func(p *config.Profile) { p.Token, p.ExpiresAt = issued.Token, issued.ExpirationTimestamp.Time })
	if err != nil && !wanted {
		return fmt.Errorf("the login could not be changed, and the new token %s is lost: %w", issued.ID, err)
	}
	if wanted {
		if err := b.write(o.tokenOptions, issued, kubeconfig); err != nil {
			return fmt.Errorf("the new token %s could not be written: %w", issued.ID, err)
		}
	}
	fmt.Fprintf(b.Err, "Replaced token %s by %s, which expires at %s. The old one still works for %s.\n",
		who.Token, issued.ID, when(&issued.ExpirationTimestamp), o.grace)
	return err
}

// shown refuses to print a token on a terminal that nobody asked for.
func (o *tokenOptions) shown(a *app) error {
	if a.Shown && o.file == "" && !o.stdout {
		return fmt.Errorf("the token would be shown on the terminal; give --file FILE, or --stdout to show it; %w", errUsage)
	}
	return nil
}
