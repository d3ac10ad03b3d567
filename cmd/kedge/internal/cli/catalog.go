package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var entryColumns = table{{"SLUG", "slug"}, {"DISPLAY NAME", "displayName"}, {"SCOPE", "scope"}, {"VERSION", "version"}, {"PHASE", "phase"}, {"WORKSPACES", "workspaces"}, {"CREATED", "createdAt"}, {"CREATED BY", "createdBy"},
	{"UUID", "uuid", wide}, {"EXPORT PATH", "apiExport", wide}}

// maxEntry is the maximum size of a file with an entry, in bytes.
const maxEntry = 64 << 10

// catalog are the commands for the entries of an organization, or for the global ones.
type catalog struct {
	resource[rest.CatalogEntry, client.Catalog]
	org    string
	global bool
}

// newCatalog returns the commands without their flags.
func (a *app) newCatalog(columns table) *catalog {
	c := &catalog{}
	c.resource = resource[rest.CatalogEntry, client.Catalog]{
		app: a, columns: columns, describe: a.describe,
		candidates: byName(func(e rest.CatalogEntry) (string, string) { return e.Slug, e.DisplayName }),
		open: func(cmd *cobra.Command, _ []string) (*session, client.Catalog, error) {
			if err := exclusive(cmd, "global", "org"); err != nil {
				return nil, client.Catalog{}, err
			}
			if !c.global {
				o, _, err := c.inOrg(cmd.Context(), c.org)
				return nil, o.Catalog(), err
			}
			s, err := c.session(cmd.Context())
			if err != nil {
				return nil, client.Catalog{}, err
			}
			return s, s.api.Admin().Catalog(), nil
		},
	}
	return c
}

func (a *app) catalogCommand() *cobra.Command {
	c := a.newCatalog(entryColumns)
	cmd := &cobra.Command{
		Use: "catalog", Short: "Publish APIs that workspaces can enable",
		Long: `Publish APIs in the catalog of an organization, so that its workspaces can enable them
with kedge providers. With --global, platform admins publish for everybody.`,
		Example: "  kedge catalog\n  kedge catalog publish -f entry.yaml\n  kedge catalog delete widgets",
	}
	a.orgFlag(cmd, &c.org)
	cmd.PersistentFlags().BoolVar(&c.global, "global", false, "the entries for everybody, as a platform admin")
	list := &cobra.Command{Use: "list", Short: "List the entries of the organization", Example: "  kedge catalog list\n  kedge catalog list --global -o wide"}
	c.listing(cmd, list)
	cmd.AddCommand(append([]*cobra.Command{list}, c.commands(c.entry)...)...)
	return cmd
}

// entry finds an entry by slug or UUID.
func (c *catalog) entry(ctx context.Context, all client.Catalog, arg string) (rest.Entry, error) {
	return findEntry(all.List(ctx), func(e rest.CatalogEntry) *rest.Entry { return &e.Entry }, arg, "kedge catalog list")
}

// findEntry finds an entry in a list, by slug or UUID.
func findEntry[T any](all iter.Seq2[T, error], entry func(T) *rest.Entry, arg, list string) (rest.Entry, error) {
	for item, err := range all {
		if err != nil {
			return rest.Entry{}, err
		}
		if e := entry(item); e.UUID == arg || e.Slug == arg {
			return *e, nil
		}
	}
	return rest.Entry{}, &noneError{fmt.Sprintf("there is no entry with the slug or the UUID %q; to see what there is, run: %s", arg, list)}
}

// commands are the commands about one entry, which find returns.
func (c *catalog) commands(find func(ctx context.Context, all client.Catalog, arg string) (rest.Entry, error)) []*cobra.Command {
	c.name = func(ctx context.Context, all client.Catalog, arg string) (string, error) {
		e, err := find(ctx, all, arg)
		return e.UUID, err
	}
	return []*cobra.Command{c.getting(&cobra.Command{
		Use: "get SLUG|UUID", Short: "Show an entry", Args: oneArg("the slug or the UUID of an entry"), Example: "  kedge catalog get widgets -o yaml",
	}), c.publishCommand(), c.deleteCommand(find)}
}

func (c *catalog) deleteCommand(find func(ctx context.Context, all client.Catalog, arg string) (rest.Entry, error)) *cobra.Command {
	ask := &consent{app: c.app}
	cmd := &cobra.Command{
		Use: "delete SLUG|UUID", Aliases: []string{"rm"}, Short: "Delete an entry, for good", Args: oneArg("the slug or the UUID of an entry"), ValidArgsFunction: c.complete,
		Long:    "Delete an entry. Workspaces that enabled it keep its API, and can disable it.",
		Example: "  kedge catalog delete widgets",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, all, err := c.open(cmd, nil)
			if err != nil {
				return err
			}
			e, err := find(cmd.Context(), all, args[0])
			if err != nil {
				return err
			}
			if err := ask.agreed(cmd.Context(), fmt.Sprintf("Delete the entry %s (%s)? No workspace can enable it then; where it is enabled, it stays so.", e.Slug, e.DisplayName)); err != nil {
				return err
			}
			if _, err := all.Delete(cmd.Context(), e.UUID); err != nil {
				return err
			}
			fmt.Fprintf(c.Err, "Deleted the entry %s.\n", e.Slug)
			return nil
		},
	}
	return ask.first(cmd)
}

// publication are the flags of kedge catalog publish.
type publication struct {
	rest.CatalogEntryRequest
	file, workspace, backend, icon string
	replace, force                 bool
}

func (c *catalog) publishCommand() *cobra.Command {
	var p publication
	cmd := &cobra.Command{
		Use: "publish -f FILE | --slug SLUG --name NAME --export-workspace UUID|NAME --export-name NAME", Short: "Publish an API in the catalog", Args: noArgs,
		Long: `Publish the API of a provider, a kcp APIExport, in the catalog. The entry is in a file,
a CatalogEntry in YAML or JSON, or in flags, which go before the file. The slug, the
export and the backend of an entry never change; --replace changes the rest of an
entry that exists. A slug that organizations have is refused for a global entry; with
--force it takes the slug, and their entries can no longer be enabled.`,
		Example: `  kedge catalog publish -f config/example-catalog/entry.yaml --global
  kedge catalog publish --slug widgets --name Widgets --export-workspace "My workspace" --export-name widgets.example.org
  kedge catalog publish -f entry.yaml --version v2 --replace`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := exclusive(cmd, "export-path", "export-workspace"); err != nil {
				return err
			}
			if p.force && !c.global {
				return fmt.Errorf("--force is for the entries for everybody: give --global, too; %w", errUsage)
			}
			if err := p.locate(cmd, c); err != nil {
				return err
			}
			spec, err := p.spec(cmd, c.In)
			if err != nil {
				return err
			}
			return c.publish(cmd, spec, p.replace, p.force)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&p.file, "file", "f", "", "file with a CatalogEntry (- for standard input)")
	flags.StringVar(&p.Slug, "slug", "", "short name of the entry, for commands")
	flags.StringVar(&p.DisplayName, "name", "", "name of the entry, for people")
	flags.StringVar(&p.Description, "description", "", "what the API is for")
	flags.StringVar(&p.Version, "version", "", "version of the provider")
	flags.StringVar(&p.APIExport.Path, "export-path", "", "path of the workspace that has the APIExport")
	flags.StringVar(&p.workspace, "export-workspace", "", "UUID or name of the workspace of the organization that has the APIExport, instead of its path")
	flags.StringVar(&p.APIExport.Name, "export-name", "", "name of the APIExport")
	flags.StringVar(&p.backend, "backend-url", "", "https URL of the provider's server")
	flags.StringVar(&p.icon, "icon-url", "", "data: URL of a PNG, WebP or SVG of at most 16 KiB")
	flags.StringSliceVar(&p.MemberResources, "member-resource", nil, "resource that members may write, as RESOURCE or RESOURCE.GROUP, repeatable (default: all)")
	flags.BoolVar(&p.replace, "replace", false, "change the entry with this slug, if there is one")
	flags.BoolVar(&p.force, "force", false, "take the slug of a global entry from the organizations that have it")
	c.output.flag(cmd)
	return cmd
}

// locate sets the path of the workspace that --export-workspace names.
func (p *publication) locate(cmd *cobra.Command, c *catalog) error {
	if p.workspace == "" {
		return nil
	}
	s, err := c.session(cmd.Context())
	if err != nil {
		return err
	}
	t, err := s.workspace(cmd.Context(), c.org, p.workspace)
	if err != nil {
		return err
	}
	w, err := s.api.Org(t.Org).Workspaces().Get(cmd.Context(), t.Workspace)
	if err != nil {
		return err
	}
	return cmd.Flags().Set("export-path", w.WorkspacePath)
}

// spec is what the file and the flags say.
func (p *publication) spec(cmd *cobra.Command, in io.Reader) (rest.CatalogEntryRequest, error) {
	var spec rest.CatalogEntryRequest
	if p.file != "" {
		if err := readEntry(p.file, in, &spec); err != nil {
			return spec, err
		}
	}
	flags := map[string]func(){
		"slug": func() { spec.Slug = p.Slug }, "name": func() { spec.DisplayName = p.DisplayName },
		"description": func() { spec.Description = p.Description }, "version": func() { spec.Version = p.Version },
		"export-path": func() { spec.APIExport.Path = p.APIExport.Path }, "export-name": func() { spec.APIExport.Name = p.APIExport.Name },
		"backend-url":     func() { spec.Backend = &rest.CatalogBackend{URL: p.backend} },
		"icon-url":        func() { spec.UI = &rest.CatalogUI{IconURL: p.icon} },
		"member-resource": func() { spec.MemberResources = p.MemberResources },
	}
	for name, set := range flags {
		if cmd.Flags().Changed(name) {
			set()
		}
	}
	for _, required := range [][2]string{{"slug", spec.Slug}, {"name", spec.DisplayName}, {"export-path", spec.APIExport.Path}, {"export-name", spec.APIExport.Name}} {
		if required[1] == "" {
			return spec, fmt.Errorf("%s needs --%s, or --file with a CatalogEntry that says it; %w", cmd.CommandPath(), required[0], errUsage)
		}
	}
	return spec, nil
}

func readEntry(file string, in io.Reader, spec *rest.CatalogEntryRequest) error {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxEntry+1))
	if err != nil {
		return err
	}
	var object struct {
		APIVersion string                    `json:"apiVersion"`
		Kind       string                    `json:"kind"`
		Metadata   map[string]any            `json:"metadata"`
		Status     map[string]any            `json:"status"`
		Spec       *rest.CatalogEntryRequest `json:"spec"`
	}
	object.Spec = spec
	if len(raw) > maxEntry {
		return fmt.Errorf("--file: %s is larger than an entry can be", file)
	}
	if err := yaml.UnmarshalStrict(raw, &object); err != nil {
		return fmt.Errorf("--file: %s is not a CatalogEntry: %w", file, err)
	}
	if object.Kind != "CatalogEntry" {
		return fmt.Errorf("--file: %s has the kind %q; give a CatalogEntry", file, object.Kind)
	}
	return nil
}

// publish makes an entry or, with replace, changes the one with the slug. force takes the slug from
// organizations.
func (c *catalog) publish(cmd *cobra.Command, spec rest.CatalogEntryRequest, replace, force bool) error {
	_, all, err := c.open(cmd, nil)
	if err != nil {
		return err
	}
	ctx, none, old := cmd.Context(), (*noneError)(nil), ""
	if replace {
		e, err := c.entry(ctx, all, spec.Slug)
		if old = e.UUID; err != nil && !errors.As(err, &none) {
			return err
		}
	}
	var e *rest.CatalogEntry
	switch {
	case old != "":
		e, err = all.Replace(ctx, old, spec)
	case force:
		e, err = all.Create(ctx, spec, client.Force(), client.Once())
	default:
		e, err = all.Create(ctx, spec, client.Once())
	}
	if err != nil {
		return c.notPublished(err, spec.Slug, replace)
	}
	if e.Code == http.StatusAccepted {
		fmt.Fprintf(c.Err, "The entry %s is still being set up; to see how it goes, run: kedge catalog get %s\n", spec.Slug, spec.Slug)
	}
	return c.show(e, entryColumns)
}

// notPublished adds advice to the refusal of a slug that is taken.
func (c *catalog) notPublished(err error, slug string, replace bool) error {
	if !replace && is(err, http.StatusConflict) {
		return fmt.Errorf("%w; to change an entry that is yours, run the command again with --replace, or see kedge catalog get %s", err, slug)
	}
	return err
}
