package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/client"
)

func (k *kind) leaveCommand(long, example string) *cobra.Command {
	var cascade bool
	cmd := &cobra.Command{
		Use: "leave [UUID|NAME]", Short: "End your own membership", Long: long, Example: example, ValidArgsFunction: k.complete,
		Args: k.oneAtMost,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, target, called, err := k.selected(cmd, args)
			if err != nil {
				return err
			}
			r := target
			r.Path += "/memberships/me"
			left, err := remove(cmd.Context(), s, r, "you are", cascade)
			if err != nil {
				return err
			}
			text := "Left %s %s."
			if left.Phase != "" {
				text = "Leaving %s %s; the hub is still carrying it out."
			}
			if err := k.tell(k.output, fmt.Sprintf(text, k.noun, called), left); err != nil {
				return err
			}
			return s.forget(cmd.Context(), target)
		},
	}
	k.output.flag(cmd)
	if !k.inOrg {
		cascadeFlag(cmd, &cascade, "also leave the organization's workspaces that you are a member of")
	}
	return cmd
}

// oneAtMost accepts at most one argument.
func (k *kind) oneAtMost(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s takes the UUID or the name of one %s at most; %w", cmd.CommandPath(), k.noun, errUsage)
	}
	return nil
}

// selected returns the tenant that the argument names, or the chosen one, and its name.
func (k *kind) selected(cmd *cobra.Command, args []string) (*session, client.Request, string, error) {
	s, r, err := k.all(cmd.Context())
	switch {
	case err != nil:
	case len(args) == 1:
		t, err := s.find(cmd.Context(), k.naming, r, args[0])
		return s, one(r, t.UUID), fmt.Sprintf("%s (%s)", t.DisplayName, t.UUID), err
	case k.inOrg:
		if target, err := s.workspace(cmd.Context(), k.org, ""); err == nil {
			return s, target, target.Workspace, nil
		}
		err = k.notChosen()
	case s.login.Org == "":
		err = k.notChosen()
	default:
		return s, organizationAt(s.login.Org), s.login.Org, nil
	}
	return nil, r, "", err
}

func (k *kind) notChosen() error {
	return fmt.Errorf("no %s is chosen; name one, as shown by: %s", k.noun, k.run("list"))
}
