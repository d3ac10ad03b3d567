package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/client"
)

// adminEntryColumns are entryColumns with the organization.
var adminEntryColumns = table{{"SLUG", "slug"}, {"DISPLAY NAME", "displayName"}, {"SCOPE", "scope"}, {"ORGANIZATION", "orgDisplayName"}, {"PHASE", "phase"}, {"CREATED", "createdAt"},
	{"CREATED BY", "createdBy"}, {"UUID", "uuid"}, {"ORGANIZATION UUID", "org", wide}, {"EXPORT PATH", "apiExport", wide}}

// inOrgs selects the entries of all organizations.
func inOrgs() url.Values { return url.Values{"scope": {"org"}} }

func (d *admin) catalogCommand() *cobra.Command {
	c := &catalog{app: d.app, global: true, everywhere: true}
	cmd := d.listing(&cobra.Command{
		Use: "catalog", Short: "List, publish and delete catalog entries, also those of organizations",
		Long: `List, publish and delete the catalog entries for everybody. The entries of organizations
are listed with --scope org, and can be deleted.`,
		Example: "  kedge admin catalog --scope org\n  kedge admin catalog publish -f entry.yaml --force\n  kedge admin catalog delete 1781b49f-55f1-5980-a3d4-e2c16492068b",
	}, &cobra.Command{Use: "list", Short: "List entries", Example: "  kedge admin catalog list --scope org"}, "/api/admin/catalog", adminEntryColumns,
		&filter{flag: "scope", parameter: "scope", usage: "global for the entries for everybody (default), org for those of all organizations"},
		&filter{flag: "query", parameter: "q", usage: "a part of the display name"})
	for _, sub := range []*cobra.Command{c.getCommand(), c.publishCommand(), c.deleteCommand()} {
		sub.Example = strings.NewReplacer("kedge catalog", "kedge admin catalog", " --global", "").Replace(sub.Example)
		cmd.AddCommand(sub)
	}
	return cmd
}

// findOrgEntry finds an entry of an organization by UUID, or by slug if one organization alone has
// the slug. r is the list of the global entries.
func findOrgEntry(ctx context.Context, s *session, r client.Request, arg string) (found client.Entry, err error) {
	r.Query = inOrgs()
	matches := 0
	for e, err := range client.List[client.AdminEntry](ctx, s, r) {
		switch {
		case err != nil:
			return client.Entry{}, err
		case e.UUID == arg:
			return e.Entry, nil
		case e.Slug == arg:
			found = e.Entry
			matches++
		}
	}
	switch matches {
	case 0:
		return client.Entry{}, &noneError{fmt.Sprintf("there is no entry with the slug or the UUID %q; to see what there is, run: kedge admin catalog list, and again with --scope org", arg)}
	case 1:
		return found, nil
	}
	return client.Entry{}, fmt.Errorf("%d organizations have an entry with the slug %q; give its UUID, as shown by: kedge admin catalog list --scope org", matches, arg)
}
