package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/kubeconfig"
)

// Program is a program that a command runs.
type Program struct {
	Name string
	Args []string
	// Env is added to the environment of kedge.
	Env []string
}

// Run runs a program with the streams of kedge and returns its exit code. When the context ends,
// the program is interrupted.
func Run(ctx context.Context, p Program) (int, error) {
	cmd := exec.CommandContext(ctx, p.Name, p.Args...) //nolint:gosec // The person names the program.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() > 0 {
		return failed.ExitCode(), nil
	}
	return 0, err
}

// exitError is the exit code of a program, which has said what was wrong.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func (a *app) sudoCommand() *cobra.Command {
	var o kubeconfigOptions
	cmd := &cobra.Command{
		Use: "sudo -- COMMAND [ARGUMENT...]", Short: "Run kubectl, or a program like it, as an admin of the chosen workspace",
		Long: `Run kubectl, or another program that reads $KUBECONFIG, in the chosen workspace with
the workspace's sudo group, as if with --as and --as-group, for this one command. An
admin of the workspace permits a member to do that with kedge workspaces members
set-role --sudo. The audit log records each request with sudo. The command neither
uses nor changes the current context of kubectl.`,
		Example: `  kedge sudo -- kubectl get rolebindings
  kedge sudo --workspace "My workspace" -- kubectl delete secret leaked`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.sudo(cmd.Context(), o, args) },
	}
	cmd.Args = needs("a command after --, such as: kedge sudo -- kubectl get secrets", func(args []string) bool {
		return len(args) > 0 && cmd.ArgsLenAtDash() == 0
	})
	a.placeFlags(cmd, &o.org, &o.workspace)
	return cmd
}

func (a *app) sudo(ctx context.Context, o kubeconfigOptions, command []string) error {
	s, err := a.session(ctx)
	if err != nil {
		return err
	}
	raw, err := s.elevated(ctx, o)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kedge-sudo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return err
	}
	code, err := a.Run(ctx, Program{Name: command[0], Args: command[1:], Env: []string{"KUBECONFIG=" + file, "KEDGE_CONFIG=" + s.path}})
	if err != nil {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	if code != 0 {
		return &exitError{code}
	}
	return nil
}

// elevated is a kubeconfig for a workspace that impersonates its sudo group.
func (s *session) elevated(ctx context.Context, o kubeconfigOptions) ([]byte, error) {
	e, err := s.chosenEntry(ctx, o)
	if err != nil {
		return nil, err
	}
	t, err := s.workspace(ctx, o.org, e.UUID)
	if err != nil {
		return nil, err
	}
	workspace, err := s.api.Org(t.Org).Workspaces().Get(ctx, t.Workspace)
	if err != nil {
		return nil, err
	}
	user, err := s.api.Username(ctx, workspace.ClusterID)
	if err != nil {
		return nil, err
	}
	if user == "" {
		return nil, errNoHub
	}
	e.Impersonate(user, "kedge:workspace:"+workspace.UUID+":sudo")
	return kubeconfig.Print([]*kubeconfig.Entry{e}, e.UUID)
}
