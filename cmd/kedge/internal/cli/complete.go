package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/faroshq/kedge-hub/pkg/client"
)

// completeTimeout is how long a shell waits for candidates.
const completeTimeout = 2 * time.Second

// offer asks the hub for what an argument can be. An error gives none, without a word.
func (a *app) offer(cmd *cobra.Command, ask func(ctx context.Context) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	found, err := ask(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// ids completes an argument with the IDs of the objects of a list, each with a description.
func ids[T object](a *app, list lister[T], of func(T) (id, description string)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.offer(cmd, func(ctx context.Context) ([]cobra.Completion, error) {
			cmd.SetContext(ctx)
			all, err := list(cmd, args)
			if err != nil {
				return nil, err
			}
			items, err := client.Collect(all)
			return byName(of)(items), err
		})
	}
}

// inOrder completes each argument by a function of its own, and none after the last.
func inOrder(each ...cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(each) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return each[len(args)](cmd, args, toComplete)
	}
}

// completeRole completes a role.
func completeRole(w *word) cobra.CompletionFunc {
	return cobra.FixedCompletions(w.words, cobra.ShellCompDirectiveNoFileComp)
}

// completeWords makes a shell offer the words of each flag that takes one of some.
func completeWords(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if w, ok := f.Value.(interface{ choices() []string }); ok {
			// It fails only where the flag has a completion already.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(w.choices(), cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, c := range cmd.Commands() {
		completeWords(c)
	}
}

// completeProfile offers the logins on this computer.
func (a *app) completeProfile(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.offer(cmd, func(ctx context.Context) (found []cobra.Completion, err error) {
		_, c, err := a.load(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
			found = append(found, cobra.CompletionWithDesc(name, c.Profiles[name].Person+" at "+c.Profiles[name].Server))
		}
		return found, nil
	})
}

// completionsOf names each object of a list: by display name if that is unique, else by UUID.
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

// byDisplayName offers objects that people name by display name or UUID.
func byDisplayName[T object](items []T) []cobra.Completion {
	tenants := make([]tenant, len(items))
	for i, item := range items {
		tenants[i] = as[tenant](item)
	}
	return completionsOf(tenants)
}

// orgFlag adds --org to a command and those below it.
func (a *app) orgFlag(cmd *cobra.Command, org *string) {
	cmd.PersistentFlags().StringVar(org, "org", "", "UUID or name of the organization (default: the one chosen with kedge orgs use)")
	a.completeOrg(cmd)
}

// workspaceFlag adds --workspace, which names a workspace in the organization of --org.
func (a *app) workspaceFlag(cmd *cobra.Command, org, workspace *string) {
	cmd.PersistentFlags().StringVarP(workspace, "workspace", "w", "",
		"UUID or name of the workspace (default: the one chosen with kedge workspaces use)")
	a.completeWorkspace(cmd, org)
}

// placeFlags adds --org and --workspace.
func (a *app) placeFlags(cmd *cobra.Command, org, workspace *string) {
	a.orgFlag(cmd, org)
	a.workspaceFlag(cmd, org, workspace)
}

func (a *app) completeOrg(cmd *cobra.Command) {
	a.completeFlag(cmd, "org", func(ctx context.Context, s *session) ([]tenant, error) { return s.organizations(ctx) })
}

func (a *app) completeWorkspace(cmd *cobra.Command, org *string) {
	a.completeFlag(cmd, "workspace", func(ctx context.Context, s *session) ([]tenant, error) {
		uuid, err := s.organization(ctx, *org)
		if err != nil {
			return nil, err
		}
		return tenantsOf(s.api.Org(uuid).Workspaces().List(ctx))
	})
}

func (a *app) completeFlag(cmd *cobra.Command, flag string, ask func(ctx context.Context, s *session) ([]tenant, error)) {
	// It fails only for a flag that the command does not have.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.offer(cmd, func(ctx context.Context) ([]cobra.Completion, error) {
			s, err := a.session(ctx)
			if err != nil {
				return nil, err
			}
			items, err := ask(ctx, s)
			return completionsOf(items), err
		})
	})
}
