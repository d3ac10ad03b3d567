package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var providerColumns = table{{"SLUG", "slug"}, {"DISPLAY NAME", "displayName"}, {"SCOPE", "scope"}, {"VERSION", "version"}, {"STATE", "state"}, {"MESSAGE", "message"},
	{"UUID", "uuid", wide}, {"PHASE", "phase", wide}, {"EXPORT", "apiExport", wide}}

// providers are the commands for the providers of a workspace.
type providers struct {
	resource[rest.Provider, client.Providers]
	org, workspace string
}

// at opens the session and returns the requests about the workspace.
func (p *providers) at(ctx context.Context) (client.InWorkspace, error) {
	w, _, err := p.inWorkspace(ctx, p.org, p.workspace)
	return w, err
}

func (a *app) providersCommand() *cobra.Command {
	p := &providers{}
	p.resource = resource[rest.Provider, client.Providers]{
		app: a, columns: providerColumns, describe: a.describe,
		candidates: byName(func(e rest.Provider) (string, string) { return e.Slug, e.DisplayName }),
		open: func(cmd *cobra.Command, _ []string) (*session, client.Providers, error) {
			w, err := p.at(cmd.Context())
			return nil, w.Providers(), err
		},
		name: func(ctx context.Context, all client.Providers, arg string) (string, error) {
			if isUUID(arg) {
				return arg, nil
			}
			e, err := findEntry(all.List(ctx), func(e rest.Provider) *rest.Entry { return &e.Entry }, arg, "kedge providers list")
			return e.UUID, err
		},
	}
	cmd := &cobra.Command{
		Use: "providers", Aliases: []string{"provider"}, Short: "Enable APIs of the catalog in the chosen workspace, and disable them",
		Long: `Enable APIs of the catalog in the chosen workspace, and disable them. Admins of the
workspace, and its admin bots, do that; members then use the API with kubectl.`,
		Example: "  kedge providers\n  kedge providers get widgets\n  kedge providers enable widgets\n  kedge providers disable widgets",
	}
	a.placeFlags(cmd, &p.org, &p.workspace)
	list := &cobra.Command{Use: "list", Short: "List what the workspace can enable, and what it has", Example: "  kedge providers list -o wide"}
	p.listing(cmd, list)
	cmd.AddCommand(list, p.getting(&cobra.Command{
		Use: "get SLUG|UUID", Short: "Show a provider, what it asks for, and what disabling it would delete", Args: oneArg("the slug or the UUID of a provider"),
		Example: "  kedge providers get widgets",
	}), p.enableCommand(), p.disableCommand())
	return cmd
}

// provider finds a provider by slug or UUID, and reads it.
func (p *providers) provider(ctx context.Context, arg string) (client.InWorkspace, *rest.Provider, error) {
	w, err := p.at(ctx)
	if err != nil {
		return w, nil, err
	}
	uuid, err := p.name(ctx, w.Providers(), arg)
	if err != nil {
		return w, nil, err
	}
	found, err := w.Providers().Get(ctx, uuid)
	if err == nil && found.UUID == "" {
		err = errNoHub
	}
	return w, found, err
}

// telling tells what a command waits for, each text once.
func (p *providers) telling(what string) client.Option {
	told := ""
	return client.Waiting(func(a *client.Response) bool {
		var seen rest.Provider
		if json.Unmarshal(a.Body, &seen) != nil {
			return false
		}
		text := fmt.Sprintf("%s is still %s; Ctrl-C stops waiting, not the hub ...", seen.Slug, what)
		if seen.Message != "" {
			text += " " + seen.Message
		}
		if text != told {
			fmt.Fprintln(p.Err, printable(text))
			told = text
		}
		return true
	})
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
			w, found, err := p.provider(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return p.disable(cmd.Context(), w, found, c)
		},
	}
	c.flag(cmd)
	cmd.Flags().BoolVar(&confirm, "confirm", false, "the same as --yes")
	p.output.flag(cmd)
	return cmd
}

func (p *providers) disable(ctx context.Context, w client.InWorkspace, found *rest.Provider, c consent) error {
	if found.Removed() {
		fmt.Fprintf(p.Err, "%s is not enabled in this workspace.\n", found.Slug)
		return p.print(p.output, found.Raw, providerColumns)
	}
	if !c.yes {
		if err := confirmLoss(ctx, w, found, c); err != nil {
			return err
		}
	}
	gone, err := w.Disable(ctx, found.UUID, p.telling("being removed"))
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Err, "Disabled %s.\n", found.Slug)
	return p.print(p.output, gone.Raw, providerColumns)
}

// confirmLoss asks the person, unless the provider is being removed already. The hub says what it
// deletes by refusing a request without a confirmation.
func confirmLoss(ctx context.Context, w client.InWorkspace, p *rest.Provider, c consent) error {
	_, err := w.Disable(ctx, p.UUID, client.Unconfirmed(), client.Once())
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code() != http.StatusConflict || len(refused.Causes()) == 0 {
		return err
	}
	loss := "All objects of its API in the workspace are deleted, for good:"
	for _, cause := range refused.Causes() {
		if cause.Type != "WouldLose" {
			return err
		}
		loss += "\n  " + cause.Message
	}
	if err := c.possible(); err != nil {
		return fmt.Errorf("%s\n%w", loss, err)
	}
	return c.typed(ctx, "Disable "+p.Slug+"? "+loss, "Type "+p.Slug+" to go on", p.Slug, p.UUID)
}
