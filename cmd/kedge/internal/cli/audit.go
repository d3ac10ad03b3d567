package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var auditColumns = table{
	{"TIME", "time"}, {"STAGE", "stage"}, {"ACTOR", "actor"}, {"ACTION", "action"}, {"OBJECT", "object"}, {"CODE", "code"}, {"FACTS", "facts"},
	{"WORKSPACE", "workspace", wide}, {"ID", "id", wide},
}

// auditExport is the media type of a format of -o that the hub writes. It is empty for the others.
func auditExport(format string) string {
	return map[string]string{"csv": client.CSV, "ndjson": client.NDJSON}[format]
}

// auditFlags are the flags of commands that list events.
type auditFlags struct {
	output       format
	since, until moment
	query        client.AuditQuery
}

func newAuditFlags() *auditFlags {
	return &auditFlags{output: format{word{"table", []string{"table", wide, "json", "yaml", "name", "csv", "ndjson"}}}, since: moment{age: life(24 * time.Hour)}}
}

// add adds the flags to a command.
func (f *auditFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.VarP(&f.output, "output", "o", "how to print: table, wide, json, yaml, name, csv or ndjson")
	flags.Var(&f.since, "since", "age or time of the oldest event, such as 12h, 7d or 2026-03-01T00:00:00Z")
	flags.Var(&f.until, "until", "age or time of the newest event (default: now)")
	flags.StringVar(&f.query.Actor, "actor", "", "name of a person, or UUID of a bot, whose events to list")
	flags.StringVar(&f.query.Action, "action", "", "part of the actions to list, such as members or kubernetes")
	flags.StringVar(&f.query.Object, "object", "", "name of an affected object, such as that of a person")
	flags.StringVar(&f.query.Code, "code", "", "status of the answers to list, such as 403, or 4xx")
}

// at is the query of the flags.
func (f *auditFlags) at(now time.Time) client.AuditQuery {
	q := f.query
	q.Since, q.Until = f.since.before(now), f.until.before(now)
	return q
}

func (a *app) auditCommand() *cobra.Command {
	var org, workspace string
	f := newAuditFlags()
	cmd := &cobra.Command{
		Use: "audit", Short: "List who changed what in the chosen organization",
		Long: `List who changed what in the chosen organization, and who was refused, the newest
first. For its admins, and with --workspace for those of the workspace. The other members
see that a platform admin made somebody admin of the organization. A change has two
events: the intent with what was decided, and the outcome with the status of the answer.
The events are those of all replicas of the hub.`,
		Example: "  kedge audit\n  kedge audit --since 7d --actor bob\n  kedge audit --action members --code 4xx -o wide\n" +
			"  kedge audit --since 2026-03-01T00:00:00Z -o csv > march.csv",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			o, _, err := a.inOrg(ctx, org)
			if err != nil {
				return err
			}
			query := f.at(a.Clock.Now())
			if workspace == "" {
				return a.printAudit(ctx, o.Tenant, query, f.output)
			}
			w, t, err := a.inWorkspace(ctx, org, workspace)
			if err != nil {
				return err
			}
			// Admins of the organization see those of deleted workspaces, too.
			query.Workspace = t.Workspace
			if err = a.printAudit(ctx, o.Tenant, query, f.output); is(err, http.StatusForbidden) {
				query.Workspace = ""
				err = a.printAudit(ctx, w.Tenant, query, f.output)
			}
			return err
		},
	}
	a.orgFlag(cmd, &org)
	f.add(cmd)
	cmd.Flags().StringVarP(&workspace, "workspace", "w", "", "UUID or name of a workspace whose events to list")
	a.completeWorkspace(cmd, &org)
	return cmd
}

func (a *app) printAudit(ctx context.Context, of client.Tenant, query client.AuditQuery, output format) error {
	if mediaType := auditExport(output.value); mediaType != "" {
		return of.ExportAudit(ctx, query, mediaType, a.Out)
	}
	return printList(a, output, of.Audit(ctx, query), auditColumns,
		func(e rest.AuditEvent) ([]byte, error) { return flatten(e, nil) })
}

// moment is the value of a flag that takes a time or an age.
type moment struct {
	at  time.Time
	age life
}

func (m *moment) String() string {
	if !m.at.IsZero() {
		return m.at.Format(time.RFC3339)
	}
	return m.age.String()
}

// Type implements pflag.Value.
func (m *moment) Type() string { return "time" }

// Set implements pflag.Value.
func (m *moment) Set(s string) error {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		*m = moment{at: at}
		return nil
	}
	*m = moment{}
	if m.age.Set(s) != nil {
		return errors.New("give an age such as 12h or 7d, or a time such as 2026-03-01T00:00:00Z")
	}
	return nil
}

// before is the time that is meant. It is zero without a value.
func (m *moment) before(now time.Time) time.Time {
	if m.age != 0 {
		return now.Add(-time.Duration(m.age))
	}
	return m.at
}

// flatten returns an event with texts instead of objects, and with further fields.
func flatten(e rest.AuditEvent, further map[string]any) ([]byte, error) {
	item := map[string]any{
		"time": e.Time.Local().Format(time.DateTime), "stage": e.Stage, "actor": e.Actor.Kind, "action": e.Action, "object": printable(e.Object),
		"workspace": e.Workspace, "id": e.ID,
	}
	maps.Copy(item, further)
	if name := e.Actor.User + e.Actor.Bot; name != "" {
		item["actor"] = name
	}
	if e.Code != 0 {
		item["code"] = e.Code
	}
	if r := e.Resource; r != nil {
		item["object"] = printable(strings.Join(slices.DeleteFunc([]string{r.Resource, r.Subresource, r.Namespace, r.Name}, func(s string) bool { return s == "" }), "/"))
	}
	if e.Facts != nil {
		var facts bytes.Buffer
		encoder := json.NewEncoder(&facts)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(e.Facts); err != nil {
			return nil, err
		}
		item["facts"] = printable(strings.TrimSpace(facts.String()))
	}
	return json.Marshal(item)
}
