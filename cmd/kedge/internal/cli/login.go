package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/oauth"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// loginOptions are the flags of kedge login.
type loginOptions struct {
	caFile, tokenFile string
	noBrowser, device bool
	timeout           time.Duration
	// ci makes the login that of a bot, for the ID token of a job.
	ci                    bool
	bot, subjectTokenFile string
}

func (a *app) loginCommand() *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in to a hub with a browser, or with a token",
		Long: `Log in to a hub. kedge opens your browser, where the hub's identity provider asks
who you are, and the hub asks you to continue. Over SSH without a display it prints
a code instead, which you enter in a browser on any device; --device does the
same elsewhere.

A static token, or a token of a bot, is read from --token-file ("-" for standard
input) or from $KEDGE_TOKEN, never from the command line, where others could see it.

In a job of CI, --ci logs in as a bot that trusts the job, without a secret: with the
ID token of GitHub Actions, with that in $KEDGE_ID_TOKEN, or with one in a file.

The login is kept in a file that only you can read. Log in with --profile to be
logged in to one hub as several people.`,
		Example: `  kedge login --server https://hub.example.com
  kedge login --server https://hub.example.com --device
  kedge login --server https://127.0.0.1:9443 --ca-file ca.crt --token-file token
  kedge login --ci --server https://hub.example.com --bot 0b6d2f5e-7a3c-4c6b-9a3a-0d7c1f1f2a3b`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := exclusive(cmd, "no-browser", "device", "token-file", "ci"); err != nil {
				return err
			}
			if !o.ci && (o.bot != "" || o.subjectTokenFile != "") {
				return fmt.Errorf("--bot and --subject-token-file: give them with --ci; %w", errUsage)
			}
			return a.login(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.caFile, "ca-file", "", "PEM file of the CA that signs the hub's certificate (default: that of the last login there, or the system's)")
	flags.StringVar(&o.tokenFile, "token-file", "", `file that holds a static token or a token of a bot, "-" for standard input (default: $KEDGE_TOKEN)`)
	flags.BoolVar(&o.noBrowser, "no-browser", false, "print the URL of the login instead of opening it; it works in a browser on this computer")
	flags.BoolVar(&o.device, "device", false, "print a code to enter in a browser on any device")
	flags.BoolVar(&o.ci, "ci", false, "log in as a bot with the ID token of the job that runs this command")
	flags.StringVar(&o.bot, "bot", "", "with --ci: UUID of the bot, which must trust the job")
	flags.StringVar(&o.subjectTokenFile, "subject-token-file", "", "with --ci: file that holds the ID token of the job (default: that of GitHub Actions, or $KEDGE_ID_TOKEN)")
	flags.DurationVar(&o.timeout, "timeout", 3*time.Minute, "how long to wait for you, for example 10m")
	return cmd
}

func (a *app) login(ctx context.Context, o loginOptions) error {
	if o.timeout <= 0 {
		return fmt.Errorf("--timeout: give a positive duration; %w", errUsage)
	}
	login, err := a.newLogin(ctx, o)
	if err != nil {
		return err
	}
	if o.ci {
		if err := a.logInAsJob(ctx, o, login); err != nil {
			return err
		}
	} else if o.tokenFile != "" || a.Getenv("KEDGE_TOKEN") != "" && !o.device && !o.noBrowser {
		if login.Token, err = a.token(o.tokenFile); err != nil {
			return err
		}
	} else if err := a.logIn(ctx, o, login); err != nil {
		return err
	}
	who, first, err := a.accept(ctx, login)
	if err != nil {
		// Nobody keeps the secret of this session.
		_ = a.revoke(ctx, login)
		return err
	}
	name := who.Name
	if who.Kind == botKind {
		name = describeBot(who)
	}
	a.warnBot(who)
	fmt.Fprintf(a.Out, "Logged in to %s as %s.\n%s\n", login.Server, name, nextStep(who, login, first))
	return nil
}

// newLogin is a login without a token, for the hub and the CA that the flags name.
func (a *app) newLogin(ctx context.Context, o loginOptions) (*config.Profile, error) {
	server, err := a.givenServer()
	if err != nil {
		return nil, err
	}
	_, c, err := a.load(ctx)
	if errors.As(err, new(*config.BrokenError)) {
		fmt.Fprintln(a.Err, "kedge:", printableLines(err.Error()))
		_, c, err = a.load(ctx)
	}
	if err != nil {
		return nil, err
	}
	if server == "" {
		if name, err := a.choose(c); err == nil {
			server = c.Profiles[name].Server
		}
	}
	if server, err = hubURL(server); err != nil {
		return nil, err
	}
	login := &config.Profile{Server: server}
	name, err := a.profileFor(c, login.Server)
	if err != nil {
		return nil, err
	}
	if before := c.Profiles[name]; before != nil {
		login.CA = before.CA
	}
	if o.caFile != "" {
		if login.CA, err = os.ReadFile(o.caFile); err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
	}
	return login, nil
}

// logIn gets tokens from the hub's identity provider.
func (a *app) logIn(ctx context.Context, o loginOptions, login *config.Profile) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout,
		fmt.Errorf("nobody completed the login within %s; run kedge login again", o.timeout))
	defer cancel()
	hub, err := oauth.Discover(ctx, a.oauthConfig(login))
	if errors.Is(err, oauth.ErrNoProvider) {
		return fmt.Errorf("%w; log in with a static token: kedge login --server %s --token-file FILE", err, login.Server)
	}
	if err != nil {
		return checkServer(err)
	}
	var tokens oauth.Tokens
	if o.device || !o.noBrowser && a.overSSH() {
		tokens, err = hub.LogInWithDevice(ctx, a.description(), a.showCode)
	} else {
		tokens, err = hub.LogInWithBrowser(ctx, a.description(), oauth.Browser{
			Show: func(url string) { a.showURL(o, url) },
			Warn: func(text string) { fmt.Fprintln(a.Err, "kedge:", printableLines(text)) },
		})
	}
	if err != nil {
		return checkServer(err)
	}
	setTokens(login, tokens, a.Clock.Now())
	return nil
}

func (a *app) showURL(o loginOptions, at string) {
	check := fmt.Sprintf("Press Continue there if the page names %s.", listenerOf(at))
	if o.noBrowser {
		fmt.Fprintf(a.Out, "Open this URL in a browser on this computer. %s\n\n%s\n\n", check, at)
		return
	}
	if err := a.openBrowser(at); err != nil {
		fmt.Fprintf(a.Err, "No browser could be started. Open this URL in a browser on this computer. %s\n\n%s\n\n", check, at)
		return
	}
	fmt.Fprintf(a.Err, "Your browser opens for the login. %s If it does not open, open this URL:\n\n%s\n\n", check, at)
}

// listenerOf returns the address of this program in the URL of a login, as the page of the hub shows it.
func listenerOf(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return ""
	}
	redirect, err := url.Parse(u.Query().Get("redirect_uri"))
	if err != nil {
		return ""
	}
	return redirect.Host
}

func (a *app) showCode(d oauth.Device) {
	fmt.Fprintf(a.Out, "Open %s in a browser and enter the code\n\n    %s\n\n", d.URL, d.UserCode)
}

func (a *app) oauthConfig(login *config.Profile) oauth.Config {
	return oauth.Config{Server: login.Server, CA: login.CA, Agent: agent(), Clock: a.Clock}
}

// description names this computer in the person's list of sessions.
func (a *app) description() string {
	host, err := a.Hostname()
	if err != nil {
		return "kedge"
	}
	return host
}

// checkServer adds advice to the error of a hub that cannot be reached.
func checkServer(err error) error {
	if errors.As(err, new(*client.UnreachableError)) {
		return fmt.Errorf("%w; check that it is running, and what --server says", err)
	}
	return err
}

// accept stores a login after the hub has accepted its token. first is where a person works who has chosen
// nothing.
func (a *app) accept(ctx context.Context, login *config.Profile) (who *rest.Me, first place, err error) {
	api, err := client.New(client.Config{Server: login.Server, Token: client.StaticToken(login.Token), CA: login.CA, UserAgent: agent()})
	if err != nil {
		return nil, first, err
	}
	if who, err = whoami(ctx, api); err != nil {
		return nil, first, checkServer(err)
	}
	login.Person = who.Name
	if who.Kind == botKind {
		login.Bot, login.Org, login.Workspace, login.ExpiresAt = who.UUID, who.Org, who.Workspace, who.ExpiresAt.Time
	} else {
		first = a.firstPlace(ctx, api, who)
		login.Org, login.Workspace = first.Org, first.Workspace
	}
	return who, first, a.storeLogin(ctx, login)
}

// storeLogin stores a login as the current profile and ends the session that it replaces. The choice of
// an organization and a workspace stays if the person is the same and made one.
func (a *app) storeLogin(ctx context.Context, login *config.Profile) error {
	path, err := config.Path(a.configFile, a.Getenv)
	if err != nil {
		return err
	}
	var before *config.Profile
	err = config.Update(ctx, path, func(c *config.Config) error {
		name, err := a.profileFor(c, login.Server)
		if err != nil {
			return err
		}
		before = c.Profiles[name]
		if before != nil && before.Bot == "" && login.Bot == "" && before.Person == login.Person && before.Org != "" {
			login.Org, login.Workspace = before.Org, before.Workspace
		}
		c.Current, c.Profiles[name] = name, login
		return nil
	})
	if err == nil && before != nil {
		// It ends by itself if this fails; nobody has its secret any more.
		_ = a.revoke(ctx, before)
	}
	return err
}

// profileFor is the profile in which a login to a hub is stored.
func (a *app) profileFor(c *config.Config, server string) (string, error) {
	name, _, err := a.givenProfile()
	switch {
	case err != nil:
		return "", err
	case name != "":
		if p := c.Profiles[name]; p != nil && p.Server != server {
			return "", fmt.Errorf("the profile %s is a login to %s; give --profile with another name, or run: kedge logout --profile %s", name, p.Server, name)
		}
		return name, nil
	case len(c.At(server)) == 0:
		return c.NewName(server), nil
	}
	return chooseAt(c, server, c.Current)
}

func (a *app) token(file string) (string, error) {
	var raw []byte
	var err error
	switch file {
	case "":
		raw = []byte(a.Getenv("KEDGE_TOKEN"))
	case "-":
		raw, err = io.ReadAll(io.LimitReader(a.In, 1<<20))
	default:
		raw, err = os.ReadFile(file)
	}
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", fmt.Errorf("no token: give --token-file or $KEDGE_TOKEN; %w", errUsage)
	}
	return token, nil
}
