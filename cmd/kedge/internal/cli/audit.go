package cli

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var auditColumns = table{{"TIME", "time"}, {"STAGE", "stage"}, {"ACTOR", "actor"}, {"ACTION", "action"}, {"OBJECT", "object"}, {"CODE", "code"}, {"FACTS", "facts"},
	{"WORKSPACE", "workspace", wide}, {"ID", "id", wide}}

func (a *app) auditCommand() *cobra.Command {
	var org string
	var query client.AuditQuery
	var output format
	since, until := life(24*time.Hour), life(0)
	cmd := &cobra.Command{
		Use: "audit", Short: "List who changed what in the chosen organization",
		Long: `List who changed what in the chosen organization, and who was refused, the newest
first. For its admins. A change has two events: the intent with what was decided, and
the outcome with the status of the answer. The events are those of all replicas of the hub.`,
		Example: "  kedge audit\n  kedge audit --since 7d --actor bob\n  kedge audit --action members -o wide\n  kedge audit -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, _, err := a.inOrg(cmd.Context(), org)
			if err != nil {
				return err
			}
			query.Since = a.Clock.Now().Add(-time.Duration(since))
			if until != 0 {
				query.Until = a.Clock.Now().Add(-time.Duration(until))
			}
			events := o.Audit(cmd.Context(), query)
			if output.isTable() {
				events = flat(events)
			}
			raw, err := listed(events)
			if err != nil {
				return err
			}
			return a.print(output, raw, auditColumns)
		},
	}
	a.orgFlag(cmd, &org)
	output.flag(cmd)
	flags := cmd.Flags()
	flags.Var(&since, "since", "age of the oldest event, such as 12h or 7d")
	flags.Var(&until, "until", "age of the newest event, such as 12h or 7d (default: now)")
	flags.StringVar(&query.Actor, "actor", "", "name of a person, or UUID of a bot, whose events to list")
	flags.StringVarP(&query.Workspace, "workspace", "w", "", "UUID of a workspace whose events to list")
	flags.StringVar(&query.Action, "action", "", "part of the actions to list, such as members or kubernetes")
	return cmd
}

// flat returns events whose JSON has texts instead of objects.
func flat(events iter.Seq2[rest.AuditEvent, error]) iter.Seq2[rest.AuditEvent, error] {
	return func(yield func(rest.AuditEvent, error) bool) {
		for e, err := range events {
			if err == nil {
				e.Raw, err = flatten(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func flatten(e rest.AuditEvent) ([]byte, error) {
	item := map[string]any{
		"time": e.Time.Local().Format(time.DateTime), "stage": e.Stage, "actor": e.Actor.Kind, "action": e.Action, "object": printable(e.Object),
		"workspace": e.Workspace, "id": e.ID,
	}
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
