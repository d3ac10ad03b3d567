package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/faroshq/kedge-hub/cmd/internal/subcommands"
	"github.com/faroshq/kedge-hub/pkg/client"
	"github.com/faroshq/kedge-hub/pkg/version"
)

// Streams are the input and outputs of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal is true if In is a terminal, so that the command can ask questions.
	Terminal bool
	// Shown is true if Out is a terminal, on which secrets would stay.
	Shown bool
}

// errUsage marks an invalid command line. The exit code is 2.
var errUsage = errors.New("see --help")

// Environment is what commands use of the computer.
type Environment struct {
	Getenv   func(name string) string
	Hostname func() (string, error)
	Clock    clock.Clock
	// OS is the operating system, as runtime.GOOS names it.
	OS string
	// Start starts a program and does not wait for its end.
	Start func(name string, args ...string) error
	// Run runs a program to its end and returns its exit code.
	Run func(ctx context.Context, p Program) (int, error)
	// Outside is the client for servers that are no hub.
	Outside *http.Client
}

// app is the state that all commands share.
type app struct {
	Streams
	Environment
	configFile string
	profile    string
	server     string
}

// Main runs a command line and returns the exit code: 0 for success, 1 for a failure, 2 for an
// invalid command line.
func Main(ctx context.Context, args []string, streams Streams, environment Environment) int {
	a := &app{Streams: streams, Environment: environment}
	cmd := a.root()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var program *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &program):
		return program.code
	case errors.Is(err, context.Canceled), ctx.Err() != nil:
		fmt.Fprintln(streams.Err, "kedge: interrupted")
		return 1
	}
	text := err.Error()
	var certificate *client.CertificateError
	if errors.As(err, &certificate) && certificate.Untrusted {
		text += "; give the hub's CA with kedge login --ca-file"
	}
	fmt.Fprintln(streams.Err, "kedge:", printableLines(text))
	// cobra says "unknown command" of an argument of its own completion commands.
	if errors.Is(err, errUsage) || strings.HasPrefix(err.Error(), "unknown command") {
		return 2
	}
	return 1
}

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kedge",
		Short: "Work with organizations and workspaces of a kedge-hub",
		Long: `kedge logs you in to a kedge-hub, manages organizations, workspaces and their
members there, and gives kubectl what it needs to work in a workspace.`,
		Example: `  kedge login --server https://hub.example.com
  kedge orgs create "My organization"
  kedge workspaces create "My workspace"
  kedge kubeconfig > kubeconfig
  kubectl --kubeconfig kubeconfig get namespaces`,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.forPeople(cmd) },
		SilenceUsage:      true,
		SilenceErrors:     true,
	}
	cmd.SetIn(a.In)
	cmd.SetOut(a.Out)
	cmd.SetErr(a.Err)
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.configFile, "config", "",
		"file with the logins (default $KEDGE_CONFIG, or kedge/config.json in $XDG_CONFIG_HOME or "+
			"in .config in your home folder: $HOME, or %USERPROFILE% on Windows)")
	flags.StringVar(&a.profile, "profile", "", "name of the login to use (default: $KEDGE_PROFILE, or the one logged in with or chosen last)")
	flags.StringVar(&a.server, "server", "", "URL of the hub, or of a page of its portal (default: the profile's)")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w; %w", err, errUsage) })
	cmd.AddCommand(a.loginCommand(), a.logoutCommand(), a.profilesCommand(), a.sessionsCommand(), a.whoamiCommand(), a.meCommand(),
		a.orgsCommand(), a.membersCommand(), a.invitationsCommand(), a.requestsCommand(), a.auditCommand(), a.accessCommand(), a.usageCommand(),
		a.workspacesCommand(), a.botsCommand(), a.usersCommand(), a.kubeconfigCommand(), a.whyCommand(), a.sudoCommand(), a.catalogCommand(), a.providersCommand(), a.adminCommand(), a.credentialCommand(), &cobra.Command{
			Use: "version", Short: "Print the version", Args: noArgs,
			RunE: func(*cobra.Command, []string) error {
				_, err := fmt.Fprintln(a.Out, "kedge", version.String())
				return err
			},
		})
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc("profile", a.completeProfile)
	completeWords(cmd)
	subcommands.Check(cmd, errUsage)
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments; %w", cmd.CommandPath(), errUsage)
	}
	return nil
}

// exclusive fails if the command line has more than one of some flags.
func exclusive(cmd *cobra.Command, names ...string) error {
	var given []string
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) > 1 {
		return fmt.Errorf("give one of %s only; %w", strings.Join(given, " and "), errUsage)
	}
	return nil
}

// needs refuses arguments that are not ok. what says which ones are.
func needs(what string, ok func(args []string) bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if !ok(args) {
			return fmt.Errorf("%s needs %s; %w", cmd.CommandPath(), what, errUsage)
		}
		return nil
	}
}

// needReason refuses an empty --reason. The hub would, too, but not as an invalid command line.
func needReason(cmd *cobra.Command, reason string) error {
	if strings.TrimSpace(reason) == "" {
		return fmt.Errorf("%s needs --reason TEXT, which says why; %w", cmd.CommandPath(), errUsage)
	}
	return nil
}

func oneArg(what string) cobra.PositionalArgs {
	return needs(what, func(args []string) bool { return len(args) == 1 })
}

func twoArgs(what string) cobra.PositionalArgs {
	return needs(what, func(args []string) bool { return len(args) == 2 })
}

func agent() string { return "kedge/" + version.String() }
