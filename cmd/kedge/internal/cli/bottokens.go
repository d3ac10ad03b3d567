package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// tokenColumns are the columns of tokens.
var tokenColumns = table{{"ID", "id"}, {"NAME", "name"}, {"CREATED", "createdAt"}, {"EXPIRES", "expirationTimestamp"}}

func (b *bots) tokensCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tokens", Aliases: []string{"token"}, Short: "Issue, list and revoke tokens of a bot",
		Long:    "Issue, list and revoke tokens of a bot. A token is shown once, when it is issued.",
		Example: "  kedge bots tokens create CI --file kubeconfig\n  kedge bots tokens list CI",
	}
	cmd.AddCommand(b.createTokenCommand(), b.listTokensCommand(), b.revokeTokenCommand())
	return cmd
}

func (b *bots) listTokensCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list BOT", Short: "List the living tokens of a bot", Args: oneArg("the UUID or the name of a bot"), ValidArgsFunction: b.complete, Example: "  kedge bots tokens list CI",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, r, err := b.bot(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r.Path += "/tokens"
			raw, err := listAll(cmd.Context(), s, r)
			if err != nil {
				return err
			}
			return b.print(b.output, raw, tokenColumns)
		},
	}
	b.output.flag(cmd)
	return cmd
}

func (b *bots) revokeTokenCommand() *cobra.Command {
	c, all := consent{app: b.app}, false
	cmd := &cobra.Command{
		Use: "revoke BOT [ID]", Short: "Revoke a token of a bot, or all of them", ValidArgsFunction: b.complete, Example: "  kedge bots tokens revoke CI ID\n  kedge bots tokens revoke CI --all --yes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && !all && isUUID(args[1]) || len(args) == 1 && all {
				return nil
			}
			return fmt.Errorf("%s needs the UUID or the name of a bot, and the ID of a token or --all; %w", cmd.CommandPath(), errUsage)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if all {
				if err := c.possible(); err != nil {
					return err
				}
			}
			s, r, err := b.bot(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			text := "Revoked all tokens of the bot."
			if r.Path += "/tokens"; all {
				if err := c.agreed(cmd.Context(), "Revoke all tokens of bot "+args[0]+"? Every program that works as it stops."); err != nil {
					return err
				}
			} else {
				r.Path += "/" + args[1]
				text = "Revoked token " + args[1] + "."
			}
			r.Method = http.MethodDelete
			if _, _, err := s.send(cmd.Context(), r); err != nil {
				return err
			}
			fmt.Fprintln(b.Err, text)
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all tokens of the bot")
	c.flag(cmd)
	return cmd
}

// tokenOptions are the flags of kedge bots tokens create.
type tokenOptions struct {
	name    string
	expires life
	output  tokenFormat
	file    string
	stdout  bool
}

func (b *bots) createTokenCommand() *cobra.Command {
	o := tokenOptions{output: "kubeconfig"}
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
			if out, ok := b.Out.(*os.File); ok && IsTerminal(out) && o.file == "" && !o.stdout {
				return fmt.Errorf("the token would be shown on the terminal; give --file FILE, or --stdout to show it; %w", errUsage)
			}
			s, r, err := b.bot(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return b.issue(cmd.Context(), s, r, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "name of the token, to tell it from others")
	flags.Var(&o.expires, "expires-in", "life of the token, such as 90d or 12h (default: what the hub gives, a year)")
	flags.VarP(&o.output, "output", "o", "what to print: kubeconfig, token or json")
	flags.StringVarP(&o.file, "file", "f", "", "file to write to instead, readable by you alone")
	flags.BoolVar(&o.stdout, "stdout", false, "print the token even if the output is a terminal")
	return cmd
}

// issue issues a token and prints it. A token that cannot be written anywhere is revoked.
func (b *bots) issue(ctx context.Context, s *session, r client.Request, o tokenOptions) error {
	var kubeconfig []byte
	if o.output == "kubeconfig" {
		at, err := s.workspace(ctx, b.org, b.workspace)
		if err != nil {
			return err
		}
		at.Method, at.Path = http.MethodGet, at.Path+"/kubeconfig"
		if _, kubeconfig, err = s.send(ctx, at); err != nil {
			return err
		}
	}
	body := map[string]any{}
	if o.name != "" {
		body["name"] = o.name
	}
	if o.expires > 0 {
		body["expirationSeconds"] = int64(o.expires / life(time.Second))
	}
	r.Method, r.Path, r.Body = http.MethodPost, r.Path+"/tokens", body
	_, raw, err := s.send(ctx, r)
	if err != nil {
		return err
	}
	var issued struct {
		ID      string `json:"id"`
		Token   string `json:"token"`
		Expires string `json:"expirationTimestamp"`
	}
	if err := json.Unmarshal(raw, &issued); err != nil || issued.Token == "" {
		return errors.New("the hub's answer has no token")
	}
	out, err := o.output.of(raw, issued.Token, kubeconfig)
	if err == nil {
		if o.file != "" {
			err = config.WriteFile(o.file, out)
		} else {
			_, err = b.Out.Write(out)
		}
	}
	if err != nil {
		r.Method, r.Path, r.Body = http.MethodDelete, r.Path+"/"+issued.ID, nil
		if _, _, revokeErr := s.send(ctx, r); revokeErr != nil {
			return fmt.Errorf("%w; the token %s is not revoked: %w", err, issued.ID, revokeErr)
		}
		return fmt.Errorf("%w; the token %s is revoked again", err, issued.ID)
	}
	fmt.Fprintf(b.Err, "Issued token %s, which expires at %s.\n", issued.ID, issued.Expires)
	return nil
}

// tokenFormat is the value of --output of kedge bots tokens create.
type tokenFormat string

func (f *tokenFormat) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *tokenFormat) Type() string { return "kubeconfig|token|json" }

// Set implements pflag.Value.
func (f *tokenFormat) Set(s string) error {
	switch s {
	case "kubeconfig", "token", "json":
		*f = tokenFormat(s)
		return nil
	}
	return errors.New("give kubeconfig, token or json")
}

// of returns what is printed: raw is the hub's answer, kubeconfig that of the workspace, in which
// the token replaces the login.
func (f *tokenFormat) of(raw []byte, token string, kubeconfig []byte) ([]byte, error) {
	switch *f {
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
