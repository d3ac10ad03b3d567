package cli

import (
	"context"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var settingColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"WORKSPACES BY", "workspaceCreation"}, {"CATALOG ENTRIES BY", "catalogEntryCreation"},
	{"DEFAULT ACCESS", "defaultAccess"}, {"BILLING", "billing"}}

// settings are the flags of kedge orgs settings.
type settings struct {
	workspaces, entries, access word
	billing                     billing
	apply                       bool
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
settings first; a setting that no flag names stays as it is. A workspace takes the
billing that the organization has when it is created; --apply-to-workspaces gives
it to those that are there.`,
		Example: `  kedge orgs settings
  kedge orgs settings "My organization" --workspace-creation admin --default-access view
  kedge orgs settings --cost-center 4711 --billing-label team=web
  kedge orgs settings --cost-center 4711 --apply-to-workspaces`,
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
		if s.apply {
			return all.Update(ctx, uuid, *patch, client.Query("applyToWorkspaces", "true"))
		}
		return all.Update(ctx, uuid, *patch)
	})
	flags := cmd.Flags()
	flags.Var(&s.workspaces, "workspace-creation", "who can create workspaces: members, or admin for admins only")
	flags.Var(&s.entries, "catalog-entry-creation", "who can publish catalog entries: members, or admin for admins only")
	flags.Var(&s.access, "default-access", "access of members to workspaces that they are not members of: none or view")
	s.billing.flags(cmd)
	flags.BoolVar(&s.apply, "apply-to-workspaces", false, "give the billing of the organization to all workspaces in it")
	return cmd
}

// patch is a merge patch of what the flags name, or nil if they name nothing.
func (s *settings) patch(cmd *cobra.Command) (*rest.UpdateOrgRequest, error) {
	var patch rest.UpdateOrgRequest
	given := func(flag, value string) rest.Field[string] {
		if !cmd.Flags().Changed(flag) {
			return nil
		}
		return rest.Set(value)
	}
	patch.WorkspaceCreation = given("workspace-creation", s.workspaces.value)
	patch.CatalogEntryCreation = given("catalog-entry-creation", s.entries.value)
	patch.DefaultAccess = given("default-access", s.access.value)
	billing, err := s.billing.patch()
	if err != nil {
		return nil, err
	}
	patch.Billing = billing
	if patch.WorkspaceCreation == nil && patch.CatalogEntryCreation == nil && patch.DefaultAccess == nil && patch.Billing == nil && !s.apply {
		return nil, nil
	}
	return &patch, nil
}
