package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var usageColumns = table{
	{"FROM", "from"}, {"OBJECTS", "objects"}, {"BYTES", "bytes"}, {"READS", "read"}, {"WRITES", "write"}, {"WATCHES", "watch"},
	{"BYTES OUT", "bytesOut"}, {"PEOPLE", "people"}, {"BOTS", "bots"}, {"STREAM SECONDS", "streamSeconds"},
	{"MEMBERS", "members", wide}, {"WORKSPACES", "workspaces", wide}, {"ENTRIES", "entries", wide},
}

// What is used of the limits of an organization or of a workspace.
var (
	orgLimitColumns       = table{{"ALL WORKSPACES", "workspaceQuota"}, {"BYTES STORED", "bytes"}}
	workspaceLimitColumns = table{{"OBJECTS", "objects"}, {"BYTES STORED", "bytes"}, {"CRDS", "customResourceDefinitions"},
		{"APIBINDINGS", "apiBindings"}, {"ROLES", "roles"}, {"BYTES OF THE ORGANIZATION", "orgBytes"}}
)

// printLimits prints what an organization, or a workspace of it, uses now, of which limit.
func (a *app) printLimits(ctx context.Context, output format, t target) error {
	s, err := a.session(ctx)
	if err != nil {
		return err
	}
	if t.Workspace == "" {
		o, err := s.api.Orgs().Get(ctx, t.Org)
		if err != nil {
			return err
		}
		return a.print(output, o.Raw, orgLimitColumns)
	}
	w, err := s.api.Org(t.Org).Workspaces().Get(ctx, t.Workspace)
	if err != nil {
		return err
	}
	return a.print(output, w.Raw, workspaceLimitColumns)
}

func (a *app) usageCommand() *cobra.Command {
	var org, workspace string
	var query client.UsageQuery
	output := format{word{"table", []string{"table", wide, "json", "yaml", "csv"}}}
	step := word{"hour", []string{"hour", "day"}}
	since, until := moment{}, moment{}
	cmd := &cobra.Command{
		Use: "usage", Short: "List what the workspaces of the chosen organization use",
		Long: `List what the workspaces of the chosen organization use by hour or day of UTC, the oldest
first: what they store, requests to kcp, the bytes of its answers, distinct people and bots,
and the time for which watches and other streams were open. For its admins, and with
--workspace for those of the workspace. The running hour is at most a minute old. An hour or
day without anything is not listed. Before the list a table shows what is used now, as
USED/LIMIT.`,
		Example: "  kedge usage\n  kedge usage --since 30d --step day -o wide\n  kedge usage --workspace dev -o csv > dev.csv",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			query.From, query.To, query.Step = since.before(a.Clock.Now()), until.before(a.Clock.Now()), step.value
			in, t, err := a.at(ctx, org, workspace)
			if err != nil {
				return err
			}
			if output.value == "csv" {
				return in.ExportUsage(ctx, query, a.Out)
			}
			if output.isTable() {
				if err := a.printLimits(ctx, output, t); err != nil {
					return err
				}
				fmt.Fprintln(a.Out)
			}
			return printList(a, output, in.Usage(ctx, query), usageColumns,
				func(i rest.UsageItem) ([]byte, error) { return flattenUsage(i, nil) })
		},
	}
	a.orgFlag(cmd, &org)
	flags := cmd.Flags()
	flags.VarP(&output, "output", "o", "how to print: table, wide, json, yaml or csv")
	flags.StringVarP(&workspace, "workspace", "w", "", "UUID or name of a workspace whose usage to list")
	a.completeWorkspace(cmd, &org)
	flags.Var(&since, "since", "age or time of the first hour or day, such as 12h, 30d or 2026-03-01T00:00:00Z (default: 24 hours or 30 days)")
	flags.Var(&until, "until", "age or time of the last one (default: now)")
	flags.Var(&step, "step", "length of a line: hour or day")
	return cmd
}

// flattenUsage returns an item without objects, with further fields.
func flattenUsage(i rest.UsageItem, further map[string]any) ([]byte, error) {
	flat := map[string]any{
		"from": i.From.UTC().Format(time.RFC3339), "objects": i.Objects, "bytes": i.Bytes,
		"read": i.Requests.Read, "write": i.Requests.Write, "watch": i.Requests.Watch, "bytesOut": i.BytesOut, "people": i.People, "bots": i.Bots, "streamSeconds": i.StreamSeconds,
	}
	maps.Copy(flat, further)
	if s := i.Size; s != nil {
		flat["members"], flat["workspaces"], flat["entries"] = s.Members, s.Workspaces, s.Entries
	}
	return json.Marshal(flat)
}
