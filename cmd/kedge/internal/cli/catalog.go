package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/faroshq/kedge-hub/pkg/client"
)

var entryColumns = table{{"SLUG", "slug"}, {"DISPLAY NAME", "displayName"}, {"SCOPE", "scope"}, {"VERSION", "version"}, {"PHASE", "phase"}, {"CREATED", "createdAt"}, {"CREATED BY", "createdBy"},
	{"UUID", "uuid", wide}, {"EXPORT PATH", "apiExport", wide}}

// maxEntry is the maximum size of a file with an entry, in bytes.
const maxEntry = 64 << 10

// catalog are the commands for the entries of an organization, or for the global ones.
type catalog struct {
	*app
	org    string
	global bool
	// everywhere is set for kedge admin catalog, which finds the entries of organizations, too.
	everywhere bool
	output     format
}

func (a *app) catalogCommand() *cobra.Command {
	c := &catalog{app: a}
	cmd := &cobra.Command{
		Use: "catalog", Short: "Publish APIs that workspaces can enable", Args: noArgs, RunE: c.runList,
		Long: `Publish APIs in the catalog of an organization, so that its workspaces can enable them
with kedge providers. With --global, platform admins publish for everybody.`,
		Example: "  kedge catalog\n  kedge catalog publish -f entry.yaml\n  kedge catalog delete widgets",
	}
	a.orgFlag(cmd, &c.org)
	cmd.PersistentFlags().BoolVar(&c.global, "global", false, "the entries for everybody, as a platform admin")
	list := &cobra.Command{Use: "list", Short: "List the entries of the organization", Args: noArgs, RunE: c.runList, Example: "  kedge catalog list\n  kedge catalog list --global -o wide"}
	c.output.flag(cmd)
	c.output.flag(list)
	cmd.AddCommand(list, c.getCommand(), c.publishCommand(), c.deleteCommand())
	return cmd
}

// open opens the session and returns the path of the entries.
func (c *catalog) open(cmd *cobra.Command) (*session, client.Request, error) {
	if err := exclusive(cmd, "global", "org"); err != nil {
		return nil, client.Request{}, err
	}
	s, err := c.session(cmd.Context())
	if err != nil || c.global {
		return s, client.Request{Path: "/api/admin/catalog"}, err
	}
	org, err := s.organization(cmd.Context(), c.org)
	r := organizationAt(org)
	r.Path += "/catalog"
	return s, r, err
}

// entry returns the path of the entry with a slug or a UUID.
func (c *catalog) entry(cmd *cobra.Command, arg string) (*session, client.Request, client.Entry, error) {
	s, r, err := c.open(cmd)
	if err != nil {
		return nil, r, client.Entry{}, err
	}
	e, err := findEntry(cmd.Context(), s, r, arg)
	var none *noneError
	if c.everywhere && errors.As(err, &none) {
		e, err = findOrgEntry(cmd.Context(), s, r, arg)
	}
	if err != nil {
		return nil, r, client.Entry{}, err
	}
	r.Path += "/" + e.UUID
	return s, r, e, nil
}

// findEntry finds an entry in the list at r, by slug or UUID.
func findEntry(ctx context.Context, s *session, r client.Request, arg string) (client.Entry, error) {
	for e, err := range client.List[client.Entry](ctx, s, r) {
		if err != nil {
			return client.Entry{}, err
		}
		if e.UUID == arg || e.Slug == arg {
			return e, nil
		}
	}
	list := "kedge catalog list"
	if r.Workspace != "" {
		list = "kedge providers list"
	}
	return client.Entry{}, &noneError{fmt.Sprintf("there is no entry with the slug or the UUID %q; to see what there is, run: %s", arg, list)}
}

func (c *catalog) runList(cmd *cobra.Command, _ []string) error {
	s, r, err := c.open(cmd)
	if err != nil {
		return err
	}
	raw, err := listAll(cmd.Context(), s, r)
	if err != nil {
		return err
	}
	return c.print(c.output, raw, entryColumns)
}

func (c *catalog) getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get SLUG|UUID", Short: "Show an entry", Args: oneArg("the slug or the UUID of an entry"), ValidArgsFunction: c.complete,
		Example: "  kedge catalog get widgets -o yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, r, _, err := c.entry(cmd, args[0])
			if err != nil {
				return err
			}
			r.Method = http.MethodGet
			_, raw, err := s.send(cmd.Context(), r)
			if err != nil {
				return err
			}
			return c.printEntry(c.output, raw, entryColumns)
		},
	}
	c.output.flag(cmd)
	return cmd
}

func (c *catalog) deleteCommand() *cobra.Command {
	ask := consent{app: c.app}
	cmd := &cobra.Command{
		Use: "delete SLUG|UUID", Aliases: []string{"rm"}, Short: "Delete an entry, for good", Args: oneArg("the slug or the UUID of an entry"), ValidArgsFunction: c.complete,
		Long:    "Delete an entry. Workspaces that enabled it keep its API, and can disable it.",
		Example: "  kedge catalog delete widgets",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := ask.possible(); err != nil {
				return err
			}
			s, r, e, err := c.entry(cmd, args[0])
			if err != nil {
				return err
			}
			if err := ask.agreed(cmd.Context(), fmt.Sprintf("Delete the entry %s (%s)? No workspace can enable it then; where it is enabled, it stays so.", e.Slug, e.DisplayName)); err != nil {
				return err
			}
			r.Method = http.MethodDelete
			if _, _, err := s.send(cmd.Context(), r); err != nil {
				return err
			}
			fmt.Fprintf(c.Err, "Deleted the entry %s.\n", e.Slug)
			return nil
		},
	}
	ask.flag(cmd)
	return cmd
}

// publication are the flags of kedge catalog publish.
type publication struct {
	client.EntrySpec
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
	target, err := s.workspace(cmd.Context(), c.org, p.workspace)
	if err != nil {
		return err
	}
	var w client.Workspace
	if err := s.into(cmd.Context(), &w, target); err != nil {
		return err
	}
	return cmd.Flags().Set("export-path", w.WorkspacePath)
}

// spec is what the file and the flags say.
func (p *publication) spec(cmd *cobra.Command, in io.Reader) (client.EntrySpec, error) {
	var spec client.EntrySpec
	if p.file != "" {
		if err := readEntry(p.file, in, &spec); err != nil {
			return spec, err
		}
	}
	flags := map[string]func(){
		"slug": func() { spec.Slug = p.Slug }, "name": func() { spec.DisplayName = p.DisplayName },
		"description": func() { spec.Description = p.Description }, "version": func() { spec.Version = p.Version },
		"export-path": func() { spec.APIExport.Path = p.APIExport.Path }, "export-name": func() { spec.APIExport.Name = p.APIExport.Name },
		"backend-url":     func() { spec.Backend = &client.EntryBackend{URL: p.backend} },
		"icon-url":        func() { spec.UI = &client.EntryUI{IconURL: p.icon} },
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

func readEntry(file string, in io.Reader, spec *client.EntrySpec) error {
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
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]any    `json:"metadata"`
		Status     map[string]any    `json:"status"`
		Spec       *client.EntrySpec `json:"spec"`
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
func (c *catalog) publish(cmd *cobra.Command, spec client.EntrySpec, replace, force bool) error {
	s, r, err := c.open(cmd)
	if err != nil {
		return err
	}
	at := r
	r.Method, r.Body = http.MethodPost, spec
	if force {
		r.Query = url.Values{"force": {"true"}}
	}
	if replace {
		e, err := findEntry(cmd.Context(), s, at, spec.Slug)
		var none *noneError
		switch {
		case err == nil:
			r.Method, r.Path, r.Query = http.MethodPut, r.Path+"/"+e.UUID, nil
		case !errors.As(err, &none):
			return err
		}
	}
	code, raw, err := s.send(cmd.Context(), r)
	if err != nil {
		return c.notPublished(err, spec.Slug, replace)
	}
	if code == http.StatusAccepted {
		fmt.Fprintf(c.Err, "The entry %s is still being set up; to see how it goes, run: kedge catalog get %s\n", spec.Slug, spec.Slug)
	}
	return c.printEntry(c.output, raw, entryColumns)
}

// notPublished adds advice to the refusal of a slug that is taken.
func (c *catalog) notPublished(err error, slug string, replace bool) error {
	var refused *client.Error
	if !replace && errors.As(err, &refused) && refused.Code() == http.StatusConflict {
		return fmt.Errorf("%w; to change an entry that is yours, run the command again with --replace, or see kedge catalog get %s", err, slug)
	}
	return err
}

// printEntry prints an entry and, in a table, what it asks for.
func (a *app) printEntry(f format, raw []byte, columns table) error {
	if err := a.print(f, raw, columns); err != nil || f != "table" && f != wide {
		return err
	}
	var p client.Provider
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return a.describe(p)
}

// complete completes the slug of an entry.
func (c *catalog) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.candidates(cmd, func(ctx context.Context, _ *session) ([]cobra.Completion, error) {
		s, r, err := c.open(cmd)
		if err != nil {
			return nil, err
		}
		return slugs(ctx, s, r)
	})
}

func slugs(ctx context.Context, s *session, r client.Request) ([]cobra.Completion, error) {
	var found []cobra.Completion
	for e, err := range client.List[client.Entry](ctx, s, r) {
		if err != nil {
			return nil, err
		}
		found = append(found, cobra.CompletionWithDesc(e.Slug, e.DisplayName))
	}
	return found, nil
}
