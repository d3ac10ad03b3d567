package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// adminEntryColumns are entryColumns with the organization.
var adminEntryColumns = table{{"SLUG", "slug"}, {"DISPLAY NAME", "displayName"}, {"SCOPE", "scope"}, {"ORGANIZATION", "orgDisplayName"}, {"PHASE", "phase"}, {"CREATED", "createdAt"},
	{"CREATED BY", "createdBy"}, {"UUID", "uuid"}, {"ORGANIZATION UUID", "org", wide}, {"EXPORT PATH", "apiExport", wide}}

func (d *admin) catalogCommand() *cobra.Command {
	c := d.newCatalog(adminEntryColumns)
	c.global, c.advise = true, adviseAdmin
	cmd := &cobra.Command{
		Use: "catalog", Short: "List, publish and delete catalog entries, also those of organizations",
		Long: `List, publish and delete the catalog entries for everybody. The entries of organizations
are listed with --scope org, and can be deleted.`,
		Example: "  kedge admin catalog --scope org\n  kedge admin catalog publish -f entry.yaml --force\n  kedge admin catalog delete 1781b49f-55f1-5980-a3d4-e2c16492068b",
	}
	list := &cobra.Command{Use: "list", Short: "List entries", Example: "  kedge admin catalog list --scope org"}
	c.filters = []*filter{{flag: "scope", parameter: "scope", usage: "global for the entries for everybody (default), org for those of all organizations"},
		{flag: "query", parameter: "q", usage: "a part of the display name"}}
	c.listing(cmd, list)
	cmd.AddCommand(list)
	for _, sub := range c.commands(c.entryAnywhere) {
		sub.Example = strings.NewReplacer("kedge catalog", "kedge admin catalog", " --global", "").Replace(sub.Example)
		cmd.AddCommand(sub)
	}
	return cmd
}

// entryAnywhere finds a global entry or, if there is none, one of an organization: by UUID, or by slug
// if one organization alone has the slug.
func (c *catalog) entryAnywhere(ctx context.Context, all client.Catalog, arg string) (found rest.Entry, err error) {
	var none *noneError
	if found, err = c.entry(ctx, all, arg); !errors.As(err, &none) {
		return found, err
	}
	matches := 0
	for e, err := range all.List(ctx, client.Query("scope", "org")) {
		switch {
		case err != nil:
			return rest.Entry{}, err
		case e.UUID == arg:
			return e.Entry, nil
		case e.Slug == arg:
			found = e.Entry
			matches++
		}
	}
	switch matches {
	case 0:
		return rest.Entry{}, &noneError{fmt.Sprintf("there is no entry with the slug or the UUID %q; to see what there is, run: kedge admin catalog list, and again with --scope org", arg)}
	case 1:
		return found, nil
	}
	return rest.Entry{}, fmt.Errorf("%d organizations have an entry with the slug %q; give its UUID, as shown by: kedge admin catalog list --scope org", matches, arg)
}
