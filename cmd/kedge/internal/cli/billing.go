package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// billing are the flags of billing.
type billing struct {
	costCenter string
	labels     []string
	set        *pflag.FlagSet
}

// flags adds the flags to a command.
func (b *billing) flags(cmd *cobra.Command) {
	b.set = cmd.Flags()
	b.set.StringVar(&b.costCenter, "cost-center", "", `cost center for billing ("" removes it)`)
	b.set.StringArrayVar(&b.labels, "billing-label", nil, "label for billing, as KEY=VALUE, repeatable; KEY= removes a label")
}

// patch is a merge patch of what the flags name, or nil if they name nothing.
func (b *billing) patch() (rest.Field[rest.BillingPatch], error) {
	var patch rest.BillingPatch
	if b.set.Changed("cost-center") {
		if patch.CostCenter = rest.Set(b.costCenter); b.costCenter == "" {
			patch.CostCenter = rest.Null[string]()
		}
	}
	labels := map[string]*string{}
	for _, label := range b.labels {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--billing-label: give KEY=VALUE, not %q; %w", label, errUsage)
		}
		if labels[key] = &value; value == "" {
			labels[key] = nil
		}
	}
	if len(labels) > 0 {
		patch.Labels = rest.Set(labels)
	}
	if patch.CostCenter == nil && patch.Labels == nil {
		return nil, nil
	}
	return rest.Set(patch), nil
}

// setWorkspaceBillingCommand is kedge workspaces set-billing.
func setWorkspaceBillingCommand(k *kind[rest.Workspace, rest.CreateWorkspaceRequest, rest.UpdateWorkspaceRequest]) *cobra.Command {
	var b billing
	cmd := k.about(&cobra.Command{
		Use: "set-billing UUID|NAME", Short: "Change the cost center and the billing labels of a workspace",
		Long: `Change the billing of a workspace. What no flag names stays as it is. A new workspace
has the billing that its organization has at that time.`,
		Example: "  kedge workspaces set-billing \"My workspace\" --cost-center 4711\n" +
			"  kedge workspaces set-billing \"My workspace\" --billing-label team=web --billing-label stage=",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s needs the UUID or the name of the workspace; %w", cmd.CommandPath(), errUsage)
			}
			patch, err := b.patch()
			if err == nil && patch == nil {
				err = fmt.Errorf("%s needs --cost-center or --billing-label; %w", cmd.CommandPath(), errUsage)
			}
			return err
		},
	}, k.columns.all(), func(ctx context.Context, _ *session, all client.Workspaces, uuid string, _ []string) (object, error) {
		patch, err := b.patch()
		if err != nil {
			return nil, err
		}
		o, err := all.Update(ctx, uuid, rest.UpdateWorkspaceRequest{Billing: patch})
		return *orNone(o), err
	})
	b.flags(cmd)
	return cmd
}
