package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

func adminAuditColumns() table {
	return slices.Concat(auditColumns, table{{"ORGANIZATION", "org", wide}, {"PEER", "peer", wide}, {"ISSUER", "issuer", wide}, {"SESSION", "session", wide}})
}

func adminUsageColumns() table {
	return slices.Concat(table{{"ORGANIZATION", "orgDisplayName"}}, usageColumns, table{{"TO", "to", wide}, {"ORGANIZATION UUID", "org", wide}})
}

// tenantFlags name an organization, and a workspace by its UUID: auditors cannot list those.
type tenantFlags struct{ org, workspace string }

func (t *tenantFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.org, "org", "", "UUID or name of an organization (default: all)")
	cmd.Flags().StringVarP(&t.workspace, "workspace", "w", "", "UUID of a workspace")
}

// open opens the session, and replaces the name of the organization by its UUID.
func (d *admin) open(ctx context.Context, t *tenantFlags) (client.Admin, error) {
	s, err := d.session(ctx)
	if err != nil {
		return client.Admin{}, err
	}
	if t.workspace != "" && !isUUID(t.workspace) {
		return client.Admin{}, fmt.Errorf("--workspace: give the UUID of a workspace, not %q; %w", t.workspace, errUsage)
	}
	if t.org != "" {
		t.org, err = d.orgs.name(ctx, s.api.Admin().Orgs(), t.org)
	}
	return s.api.Admin(), err
}

func (d *admin) auditCommand() *cobra.Command {
	var in tenantFlags
	f := newAuditFlags()
	cmd := &cobra.Command{
		Use: "audit", Short: "List who changed what in the whole hub",
		Long: `List who changed what in the whole hub, and who was refused, the newest first, for auditors
and platform admins. It has the events that admins of an organization are not shown, and with
-o wide the network addresses, identity providers and sessions of the actors.`,
		Example: "  kedge admin audit\n  kedge admin audit --since 7d --actor bob -o wide\n  kedge admin audit --org ACME --code 4xx\n" +
			"  kedge admin audit --since 2026-03-01T00:00:00Z -o csv > march.csv",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			api, err := d.open(ctx, &in)
			if err != nil {
				return err
			}
			query := f.at(d.Clock.Now())
			query.Workspace = in.workspace
			if mediaType := auditExport(f.output.value); mediaType != "" {
				return api.ExportAudit(ctx, in.org, query, mediaType, d.Out)
			}
			events := api.Audit(ctx, in.org, query)
			return printList(d.app, f.output, events, adminAuditColumns(), func(e rest.AdminAuditEvent) ([]byte, error) {
				return flatten(e.AuditEvent, map[string]any{"org": e.Org, "peer": e.Peer, "issuer": e.Issuer, "session": e.Session})
			})
		},
	}
	in.add(cmd)
	f.add(cmd)
	return cmd
}

func (d *admin) usageCommand() *cobra.Command {
	var in tenantFlags
	output := format{word{"table", []string{"table", wide, "json", "yaml", "csv"}}}
	step := word{"hour", []string{"hour", "day"}}
	since, until := moment{}, moment{}
	cmd := &cobra.Command{
		Use: "usage", Short: "List what the organizations of the hub use",
		Long: `List what the organizations of the hub use, for auditors and platform admins: a line for each
organization that used anything, which adds up whole days of UTC, or with --org the hours or
days of one, as kedge usage shows them to its admins.`,
		Example: "  kedge admin usage\n  kedge admin usage --since 90d -o csv > quarter.csv\n  kedge admin usage --org ACME --step day",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if in.org == "" && (in.workspace != "" || cmd.Flags().Changed("step")) {
				return fmt.Errorf("%s: --workspace and --step need --org; %w", cmd.CommandPath(), errUsage)
			}
			api, err := d.open(ctx, &in)
			if err != nil {
				return err
			}
			query := client.AdminUsageQuery{Org: in.org, Workspace: in.workspace}
			query.From, query.To = since.before(d.Clock.Now()), until.before(d.Clock.Now())
			if in.org != "" {
				query.Step = step.value
			}
			if output.value == "csv" {
				return api.ExportUsage(ctx, query, d.Out)
			}
			return printList(d.app, output, api.Usage(ctx, query), adminUsageColumns(), func(i rest.AdminUsageItem) ([]byte, error) {
				return flattenUsage(i.UsageItem, map[string]any{
					"org": i.Org, "orgDisplayName": printable(i.OrgDisplayName), "to": i.To.UTC().Format(time.RFC3339),
				})
			})
		},
	}
	in.add(cmd)
	flags := cmd.Flags()
	flags.VarP(&output, "output", "o", "how to print: table, wide, json, yaml or csv")
	flags.Var(&since, "since", "age or time of the beginning, such as 30d or 2026-03-01T00:00:00Z (default: 30 days, or 24 hours)")
	flags.Var(&until, "until", "age or time of the end (default: now)")
	flags.Var(&step, "step", "length of a line with --org: hour or day")
	return cmd
}

var billingColumns = table{
	{"ORGANIZATION", "orgDisplayName"}, {"WORKSPACE", "workspaceDisplayName"}, {"COST CENTER", "costCenter"}, {"PHASE", "phase"}, {"FROM", "from"}, {"TO", "to"},
	{"PATH", "workspacePath", wide}, {"ORGANIZATION UUID", "org", wide}, {"WORKSPACE UUID", "workspace", wide},
}

func (d *admin) billingCommand() *cobra.Command {
	var in tenantFlags
	var query client.BillingQuery
	output := format{word{"table", []string{"table", wide, "json", "yaml", "csv"}}}
	since, until := moment{}, moment{}
	cmd := &cobra.Command{
		Use: "billing", Short: "List what bills for workspaces depend on",
		Long: `List what bills for workspaces depend on, the newest first, for auditors and platform admins: a
line for each time during which the names, the cost center, the billing labels and the phase of
a workspace were the same. Deleted workspaces are billed until they are purged.`,
		Example: "  kedge admin billing --org ACME\n  kedge admin billing --cost-center 4711 --since 30d -o csv > billing.csv",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			api, err := d.open(ctx, &in)
			if err != nil {
				return err
			}
			query.Org, query.Workspace = in.org, in.workspace
			query.From, query.To = since.before(d.Clock.Now()), until.before(d.Clock.Now())
			if output.value == "csv" {
				return api.ExportBilling(ctx, query, d.Out)
			}
			return printList(d.app, output, api.Billing(ctx, query), billingColumns, nil)
		},
	}
	in.add(cmd)
	flags := cmd.Flags()
	flags.VarP(&output, "output", "o", "how to print: table, wide, json, yaml or csv")
	flags.StringVar(&query.CostCenter, "cost-center", "", "cost center whose workspaces to list")
	flags.Var(&since, "since", "age or time from which on to list, such as 30d or 2026-03-01T00:00:00Z (default: ever)")
	flags.Var(&until, "until", "age or time until which to list (default: now)")
	return cmd
}

func (d *admin) accessCommand() *cobra.Command {
	var in tenantFlags
	var at moment
	var output format
	cmd := &cobra.Command{
		Use: "access --org UUID|NAME", Short: "List who has, or had, access to an organization",
		Long: `List who has, or had at a moment, access to an organization and to what is in it, or to one
workspace with --workspace, for auditors and platform admins, as kedge access shows it to its
admins.`,
		Example: "  kedge admin access --org ACME\n  kedge admin access --org ACME --at 2026-03-03T12:00:00Z -o wide",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if in.org == "" {
				return fmt.Errorf("%s needs --org; %w", cmd.CommandPath(), errUsage)
			}
			api, err := d.open(ctx, &in)
			if err != nil {
				return err
			}
			past, err := api.Access(ctx, in.org, in.workspace, at.before(d.Clock.Now()))
			if err != nil {
				return err
			}
			return d.printAccess(past, output)
		},
	}
	in.add(cmd)
	cmd.Flag("org").Usage = "UUID or name of the organization"
	output.flag(cmd)
	cmd.Flags().Var(&at, "at", "age or time of the moment, such as 30d or 2026-03-03T12:00:00Z (default: now)")
	return cmd
}
