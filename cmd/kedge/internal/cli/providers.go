package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/client"
)

var providerColumns = table{{"SLUG", "slug"}, {"DISPLAY NAME", "displayName"}, {"SCOPE", "scope"}, {"VERSION", "version"}, {"STATE", "state"}, {"MESSAGE", "message"},
	{"UUID", "uuid", wide}, {"PHASE", "phase", wide}, {"EXPORT", "apiExport", wide}}

// providers are the commands for the providers of a workspace.
type providers struct {
	*app
	org, workspace string
	output         format
}

func (a *app) providersCommand() *cobra.Command {
	p := &providers{app: a}
	cmd := &cobra.Command{
		Use: "providers", Aliases: []string{"provider"}, Short: "Enable APIs of the catalog in the chosen workspace, and disable them", Args: noArgs, RunE: p.runList,
		Long: `Enable APIs of the catalog in the chosen workspace, and disable them. Admins of the
workspace, and its admin bots, do that; members then use the API with kubectl.`,
		Example: "  kedge providers\n  kedge providers get widgets\n  kedge providers enable widgets\n  kedge providers disable widgets",
	}
	a.orgFlag(cmd, &p.org)
	a.workspaceFlag(cmd, &p.org, &p.workspace)
	list := &cobra.Command{Use: "list", Short: "List what the workspace can enable, and what it has", Args: noArgs, RunE: p.runList, Example: "  kedge providers list -o wide"}
	p.output.flag(cmd)
	p.output.flag(list)
	cmd.AddCommand(list, p.getCommand(), p.enableCommand(), p.disableCommand())
	return cmd
}

// open opens the session and returns a request for the workspace.
func (p *providers) open(ctx context.Context) (*session, client.Request, error) {
	s, err := p.session(ctx)
	if err != nil {
		return nil, client.Request{}, err
	}
	r, err := s.workspace(ctx, p.org, p.workspace)
	return s, r, err
}

// listOf is the list of the providers of a workspace.
func listOf(workspace client.Request) client.Request {
	workspace.Path = "/api/providers"
	return workspace
}

func (p *providers) runList(cmd *cobra.Command, _ []string) error {
	s, r, err := p.open(cmd.Context())
	if err != nil {
		return err
	}
	raw, err := listAll(cmd.Context(), s, listOf(r))
	if err != nil {
		return err
	}
	return p.print(p.output, raw, providerColumns)
}

// provider is one provider in a workspace.
type provider struct {
	*session
	at client.Request
	client.Provider
	raw []byte
}

// provider finds a provider by slug or UUID.
func (p *providers) provider(ctx context.Context, arg string) (*provider, error) {
	s, r, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	uuid := arg
	if !isUUID(arg) {
		e, err := findEntry(ctx, s, listOf(r), arg)
		if err != nil {
			return nil, err
		}
		uuid = e.UUID
	}
	r.Path += "/providers/" + uuid
	found := &provider{session: s, at: r}
	return found, found.read(ctx)
}

// read reads the state of the provider.
func (p *provider) read(ctx context.Context) error {
	_, err := p.ask(ctx, http.MethodGet, "", nil, nil)
	return err
}

// ask sends a request about the provider and keeps the answer.
func (p *provider) ask(ctx context.Context, method, path string, query url.Values, body any) (code int, err error) {
	r := p.at
	r.Method, r.Path, r.Query, r.Body = method, r.Path+path, query, body
	code, raw, err := p.send(ctx, r)
	if err != nil {
		return 0, err
	}
	var seen client.Provider
	if err := json.Unmarshal(raw, &seen); err != nil || seen.UUID == "" {
		return 0, errNoHub
	}
	p.raw, p.Provider = raw, seen
	return code, nil
}

// until reads the provider until done reports true, and tells what it waits for.
func (p *provider) until(ctx context.Context, what string, done func() bool) error {
	told := ""
	for !done() {
		text := fmt.Sprintf("%s is still %s; Ctrl-C stops waiting, not the hub ...", p.Slug, what)
		if p.Message != "" {
			text += " " + p.Message
		}
		if text != told {
			fmt.Fprintln(p.app.Err, text)
			told = text
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
		if err := p.read(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *providers) getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get SLUG|UUID", Short: "Show a provider, what it asks for, and what disabling it would delete", Args: oneArg("the slug or the UUID of a provider"), ValidArgsFunction: p.complete,
		Example: "  kedge providers get widgets",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := p.provider(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return p.printEntry(p.output, found.raw, providerColumns)
		},
	}
	p.output.flag(cmd)
	return cmd
}

func (p *providers) disableCommand() *cobra.Command {
	c := consent{app: p.app}
	var confirm bool
	cmd := &cobra.Command{
		Use: "disable SLUG|UUID", Short: "Remove an API from the workspace, with all objects of it", Args: oneArg("the slug or the UUID of a provider"), ValidArgsFunction: p.complete,
		Long: `Remove an API from the workspace. All objects of its kinds in the workspace are
deleted, for good; how many these are is shown first.`,
		Example: "  kedge providers disable widgets\n  kedge providers disable widgets --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			c.yes = c.yes || confirm
			found, err := p.provider(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return p.disable(cmd.Context(), found, c)
		},
	}
	c.flag(cmd)
	cmd.Flags().BoolVar(&confirm, "confirm", false, "the same as --yes")
	p.output.flag(cmd)
	return cmd
}

func (p *providers) disable(ctx context.Context, found *provider, c consent) error {
	if found.Removed() {
		fmt.Fprintf(p.Err, "%s is not enabled in this workspace.\n", found.Slug)
		return p.print(p.output, found.raw, providerColumns)
	}
	if !c.yes {
		if err := found.confirm(ctx, c); err != nil {
			return err
		}
	}
	if _, err := found.ask(ctx, http.MethodDelete, "/enable", url.Values{"confirm": {"true"}}, nil); err != nil {
		return err
	}
	err := found.until(ctx, "being removed", found.Removed)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code() == http.StatusNotFound {
		// The entry was deleted before, and nothing is left of it. There is nothing to print.
		fmt.Fprintf(p.Err, "Disabled %s.\n", found.Slug)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Err, "Disabled %s.\n", found.Slug)
	return p.print(p.output, found.raw, providerColumns)
}

// confirm asks the person, unless the provider is being removed already.
func (p *provider) confirm(ctx context.Context, c consent) error {
	loss, err := p.loss(ctx)
	if err != nil || loss == "" {
		return err
	}
	if err := c.possible(); err != nil {
		return fmt.Errorf("%s\n%w", loss, err)
	}
	return c.typed(ctx, "Disable "+p.Slug+"? "+loss, "Type "+p.Slug+" to go on", p.Slug, p.UUID)
}

// loss says what the hub deletes when the provider is disabled. The hub says it by refusing a
// request without a confirmation. It is empty if the provider is being removed already.
func (p *provider) loss(ctx context.Context) (string, error) {
	_, err := p.ask(ctx, http.MethodDelete, "/enable", nil, nil)
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code() != http.StatusConflict {
		return "", err
	}
	text := "All objects of its API in the workspace are deleted, for good:"
	for _, cause := range refused.Causes() {
		if cause.Type != "WouldLose" {
			return "", err
		}
		text += "\n  " + cause.Message
	}
	if len(refused.Causes()) == 0 {
		return "", err
	}
	return text, nil
}

// complete completes the slug of a provider.
func (p *providers) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.candidates(cmd, func(ctx context.Context, _ *session) ([]cobra.Completion, error) {
		s, r, err := p.open(ctx)
		if err != nil {
			return nil, err
		}
		return slugs(ctx, s, listOf(r))
	})
}
