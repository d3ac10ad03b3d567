package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var settingColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"WORKSPACES BY", "workspaceCreation"}, {"CATALOG ENTRIES BY", "catalogEntryCreation"},
	{"DEFAULT ACCESS", "defaultAccess"}, {"BILLING", "billing"}}

// settings are the flags of kedge orgs settings.
type settings struct {
	workspaces, entries, access word
	costCenter                  string
	labels                      []string
}

func settingsCommand(k *orgs) *cobra.Command {
	s := settings{
		workspaces: word{words: []string{"members", "admin"}}, entries: word{words: []string{"members", "admin"}},
		access: word{words: []string{"none", "view"}},
	}
	var patch *rest.UpdateOrgRequest
	cmd := &cobra.Command{
		Use: "settings [UUID|NAME]", Short: "Show or change what members of an organization may do, and its billing",
		Long: `Show what members of an organization may do, and its billing. Flags change these
settings first; a setting that no flag names stays as it is.`,
		Example: `  kedge orgs settings
  kedge orgs settings "My organization" --workspace-creation admin --default-access view
  kedge orgs settings --cost-center 4711 --billing-label team=web`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if err := k.oneAtMost(cmd, args); err != nil {
				return err
			}
			patch, err = s.patch(cmd)
			return err
		},
	}
	k.about(cmd, settingColumns, func(ctx context.Context, _ *session, all client.Orgs, uuid string, _ []string) (object, error) {
		if patch == nil {
			return all.Get(ctx, uuid)
		}
		return all.Update(ctx, uuid, *patch)
	})
	flags := cmd.Flags()
	flags.Var(&s.workspaces, "workspace-creation", "who can create workspaces: members, or admin for admins only")
	flags.Var(&s.entries, "catalog-entry-creation", "who can publish catalog entries: members, or admin for admins only")
	flags.Var(&s.access, "default-access", "access of members to workspaces that they are not members of: none or view")
	flags.StringVar(&s.costCenter, "cost-center", "", `cost center for billing ("" removes it)`)
	flags.StringArrayVar(&s.labels, "billing-label", nil, "label for billing, as KEY=VALUE, repeatable; KEY= removes a label")
	return cmd
}

// patch is a merge patch of what the flags name, or nil if they name nothing.
func (s *settings) patch(cmd *cobra.Command) (*rest.UpdateOrgRequest, error) {
	var patch rest.UpdateOrgRequest
	var billing rest.BillingPatch
	labels := map[string]*string{}
	given := func(flag, value string) rest.Field[string] {
		if !cmd.Flags().Changed(flag) {
			return nil
		}
		return rest.Set(value)
	}
	patch.WorkspaceCreation = given("workspace-creation", s.workspaces.value)
	patch.CatalogEntryCreation = given("catalog-entry-creation", s.entries.value)
	patch.DefaultAccess = given("default-access", s.access.value)
	if billing.CostCenter = given("cost-center", s.costCenter); s.costCenter == "" && billing.CostCenter != nil {
		billing.CostCenter = rest.Null[string]()
	}
	for _, label := range s.labels {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--billing-label: give KEY=VALUE, not %q; %w", label, errUsage)
		}
		if labels[key] = &value; value == "" {
			labels[key] = nil
		}
	}
	if len(labels) > 0 {
		billing.Labels = rest.Set(labels)
	}
	if billing.CostCenter != nil || billing.Labels != nil {
		patch.Billing = rest.Set(billing)
	}
	if patch.WorkspaceCreation == nil && patch.CatalogEntryCreation == nil && patch.DefaultAccess == nil && patch.Billing == nil {
		return nil, nil
	}
	return &patch, nil
}
