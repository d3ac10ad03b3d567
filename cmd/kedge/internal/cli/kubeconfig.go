package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/cmd/kedge/internal/config"
	"github.com/faroshq/kedge-hub/cmd/kedge/internal/kubeconfig"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// kubeconfigOptions are the flags of kedge kubeconfig.
type kubeconfigOptions struct {
	org, workspace, file string
	all, merge, use      bool
}

func (a *app) kubeconfigCommand() *cobra.Command {
	var o kubeconfigOptions
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a kubeconfig for the chosen workspace, or merge it into yours",
		Long: `Print a kubeconfig for the chosen workspace, or put its entry into your own
kubeconfig: the first file that $KUBECONFIG names, or .kube/config in your home folder
($HOME, or %USERPROFILE% on Windows). Entries are named ORGANIZATION/WORKSPACE; where
two are equal, a part of the UUID is added.

A kubeconfig holds no token and can be shared: kubectl asks kedge for one, so keep
kedge on your PATH and stay logged in with the profile that the entry names.`,
		Example: `  kedge kubeconfig > kubeconfig
  kedge kubeconfig --merge --use
  kedge kubeconfig --all --merge`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := exclusive(cmd, "file", "merge"); err != nil {
				return err
			}
			if err := exclusive(cmd, "workspace", "all"); err != nil {
				return err
			}
			return a.kubeconfig(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.org, "org", "", "UUID or name of the organization (default: the chosen one; with --all, all)")
	flags.StringVarP(&o.workspace, "workspace", "w", "", "UUID or name of the workspace (default: the chosen one)")
	flags.StringVarP(&o.file, "file", "f", "", "file to write to instead, readable by you alone")
	flags.BoolVar(&o.all, "all", false, "all workspaces that you can enter")
	flags.BoolVar(&o.merge, "merge", false, "put the entries into your kubeconfig; entries of others stay as they are")
	flags.BoolVar(&o.use, "use", false, "with --merge: make the chosen workspace's context the current one")
	a.completeOrg(cmd)
	a.completeWorkspace(cmd, &o.org)
	return cmd
}

func (a *app) kubeconfig(ctx context.Context, o kubeconfigOptions) error {
	if o.use && !o.merge {
		return fmt.Errorf("--use: give it with --merge; %w", errUsage)
	}
	s, err := a.session(ctx)
	if err != nil {
		return err
	}
	chosen := s.login.Workspace
	var entries []*kubeconfig.Entry
	if s.login.Bot != "" {
		if o.all || o.org != "" || o.workspace != "" {
			return fmt.Errorf("--all, --org, --workspace: a bot has one workspace; give none of them; %w", errUsage)
		}
		var e *kubeconfig.Entry
		e, err = s.botEntry(ctx)
		entries = []*kubeconfig.Entry{e}
	} else if o.all {
		entries, err = s.entries(ctx, o.org)
	} else {
		var e *kubeconfig.Entry
		if e, err = s.chosenEntry(ctx, o); err == nil {
			entries, chosen = []*kubeconfig.Entry{e}, e.UUID
		}
	}
	if err != nil {
		return err
	}
	kubeconfig.Distinguish(entries)
	if o.merge {
		return a.mergeKubeconfig(ctx, entries, chosen, o.use)
	}
	raw, err := kubeconfig.Print(entries, chosen)
	if err != nil {
		return err
	}
	if o.file != "" {
		return config.WriteFile(o.file, raw)
	}
	_, err = a.Out.Write(raw)
	return err
}

func (a *app) mergeKubeconfig(ctx context.Context, entries []*kubeconfig.Entry, chosen string, use bool) error {
	current := ""
	for _, e := range entries {
		if use && e.UUID == chosen {
			current = chosen
		}
	}
	if use && current == "" {
		return errors.New("--use: no workspace is chosen among these; run: kedge workspaces use NAME")
	}
	path, err := kubeconfig.Path(a.Getenv)
	if err != nil {
		return err
	}
	if err := kubeconfig.Merge(ctx, path, entries, current); err != nil {
		return err
	}
	for _, e := range entries {
		text := "Context %s is in %s.\n"
		if e.UUID == current {
			text = "Context %s is in %s and is the current one.\n"
		}
		fmt.Fprintf(a.Out, text, e.Name, path)
	}
	return nil
}

// chosenEntry is the entry for the workspace that the flags name or, without them, the chosen one.
func (s *session) chosenEntry(ctx context.Context, o kubeconfigOptions) (*kubeconfig.Entry, error) {
	t, err := s.workspace(ctx, o.org, o.workspace)
	if err != nil {
		return nil, err
	}
	org, err := s.organizationOf(ctx, t)
	if err != nil {
		return nil, err
	}
	workspace, err := s.api.Org(t.Org).Workspaces().Get(ctx, t.Workspace)
	if err != nil {
		return nil, err
	}
	return s.entry(ctx, t.Org, org.DisplayName, as[tenant](workspace))
}

// organizationOf is the organization of a workspace. Members of the workspace alone may not read it,
// but their memberships name it.
func (s *session) organizationOf(ctx context.Context, t target) (tenant, error) {
	org, err := s.api.Orgs().Get(ctx, t.Org)
	if err == nil {
		return as[tenant](org), nil
	}
	if !is(err, http.StatusForbidden) {
		return tenant{}, err
	}
	orgs, listErr := s.organizations(ctx)
	for _, o := range orgs {
		if o.UUID == t.Org {
			return o, nil
		}
	}
	if listErr != nil {
		return tenant{}, listErr
	}
	return tenant{}, err
}

// entries are those for all workspaces that the person can enter, or for those in the organization
// onlyOrg. A workspace for which the hub gives no kubeconfig is left out.
func (s *session) entries(ctx context.Context, onlyOrg string) ([]*kubeconfig.Entry, error) {
	orgs, err := s.organizations(ctx)
	if err != nil {
		return nil, err
	}
	if onlyOrg != "" {
		only, err := organizations().among(orgs, onlyOrg, "list")
		if err != nil {
			return nil, err
		}
		orgs = []tenant{only}
	}
	var entries []*kubeconfig.Entry
	for _, org := range orgs {
		workspaces, err := tenantsOf(s.api.Org(org.UUID).Workspaces().List(ctx))
		if err = s.leaveOut(org, err); err != nil {
			return nil, err
		}
		for _, workspace := range workspaces {
			e, err := s.entry(ctx, org.UUID, org.DisplayName, workspace)
			if err = s.leaveOut(workspace, err); err != nil {
				return nil, err
			}
			if e != nil {
				entries = append(entries, e)
			}
		}
	}
	if len(entries) == 0 {
		return nil, errors.New("there is no workspace that you can enter; to make one, run: kedge workspaces create NAME")
	}
	return entries, nil
}

// leaveOut reports a tenant that the hub refuses, which can be deleted meanwhile, and returns other
// errors.
func (s *session) leaveOut(t tenant, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code() == http.StatusUnauthorized {
		return err
	}
	fmt.Fprintf(s.app.Err, "kedge: %s is left out: %s\n", t, printableLines(err.Error()))
	return nil
}

// entry is the entry for a workspace of an organization, given with its display name.
func (s *session) entry(ctx context.Context, org, name string, workspace tenant) (*kubeconfig.Entry, error) {
	if workspace.UUID == "" {
		return nil, errNoHub
	}
	raw, err := s.in(target{org, workspace.UUID}).Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	return kubeconfig.New(kubeconfig.Source{
		Org: name, Workspace: workspace.DisplayName, UUID: workspace.UUID,
		Server: s.login.Server, Profile: s.name, Kubeconfig: raw,
	})
}
