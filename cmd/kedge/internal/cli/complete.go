package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/client"
)

// completeTimeout is how long a shell waits for candidates.
const completeTimeout = 2 * time.Second

// candidates asks the hub for what an argument can be. An error gives none, without a word.
func (a *app) candidates(cmd *cobra.Command, ask func(ctx context.Context, s *session) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	s, err := a.session(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, err := ask(ctx, s)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completions names each object of a list: by display name if that is unique, else by UUID.
func (s *session) completions(ctx context.Context, r client.Request) ([]cobra.Completion, error) {
	items, err := s.tenants(ctx, r)
	return completionsOf(items), err
}

func completionsOf(items []tenant) []cobra.Completion {
	count := map[string]int{}
	for _, t := range items {
		count[t.DisplayName]++
	}
	var found []cobra.Completion
	for _, t := range items {
		if count[t.DisplayName] == 1 {
			found = append(found, cobra.CompletionWithDesc(t.DisplayName, t.UUID))
		} else {
			found = append(found, cobra.CompletionWithDesc(t.UUID, t.DisplayName+", created "+t.CreatedAt))
		}
	}
	return found
}

// complete completes the name of a tenant of the kind.
func (k *kind) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return k.candidates(cmd, func(ctx context.Context, s *session) ([]cobra.Completion, error) {
		if !k.inOrg {
			return s.completions(ctx, client.Request{Path: "/api/orgs"})
		}
		return s.completeWorkspaces(ctx, k.org)
	})
}

func (s *session) completeWorkspaces(ctx context.Context, givenOrg string) ([]cobra.Completion, error) {
	org, err := s.organization(ctx, givenOrg)
	if err != nil {
		return nil, err
	}
	return s.completions(ctx, workspacesOf(org))
}

// orgFlag adds --org to a command and those below it.
func (a *app) orgFlag(cmd *cobra.Command, org *string) {
	cmd.PersistentFlags().StringVar(org, "org", "", "UUID or name of the organization (default: the one chosen with kedge orgs use)")
	a.completeOrg(cmd)
}

// workspaceFlag adds --workspace, which names a workspace in the organization of --org.
func (a *app) workspaceFlag(cmd *cobra.Command, org, workspace *string) {
	cmd.PersistentFlags().StringVar(workspace, "workspace", "", "UUID or name of the workspace (default: the one chosen with kedge workspaces use)")
	a.completeWorkspace(cmd, org)
}

func (a *app) completeOrg(cmd *cobra.Command) {
	a.completeFlag(cmd, "org", func(ctx context.Context, s *session) ([]cobra.Completion, error) {
		orgs, err := s.organizations(ctx)
		return completionsOf(orgs), err
	})
}

func (a *app) completeWorkspace(cmd *cobra.Command, org *string) {
	a.completeFlag(cmd, "workspace", func(ctx context.Context, s *session) ([]cobra.Completion, error) {
		return s.completeWorkspaces(ctx, *org)
	})
}

func (a *app) completeFlag(cmd *cobra.Command, flag string, ask func(ctx context.Context, s *session) ([]cobra.Completion, error)) {
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.candidates(cmd, ask)
	})
}

// complete completes the name of a member.
func (m *members) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return m.candidates(cmd, func(ctx context.Context, _ *session) ([]cobra.Completion, error) {
		s, r, err := m.target(ctx)
		if err != nil {
			return nil, err
		}
		r.Path += "/members"
		var found []cobra.Completion
		for member, err := range client.List[client.Member](ctx, s, r) {
			if err != nil {
				return nil, err
			}
			found = append(found, cobra.CompletionWithDesc(member.User, member.DisplayName))
		}
		return found, nil
	})
}

// complete completes the name of a bot.
func (b *bots) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return b.candidates(cmd, func(ctx context.Context, _ *session) ([]cobra.Completion, error) {
		s, r, err := b.open(ctx)
		if err != nil {
			return nil, err
		}
		return s.completions(ctx, r)
	})
}
