package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

var accessColumns = table{
	{"NAME", "name"}, {"WORKSPACE", "workspace"}, {"ROLE", "role"}, {"ALSO", "also"}, {"THROUGH", "through"}, {"SINCE", "since"}, {"EXPIRES", "expires"},
	{"IN EVERY WORKSPACE", "every", wide}, {"TOKENS", "tokens", wide},
}

func (a *app) accessCommand() *cobra.Command {
	var org, workspace string
	var at moment
	var output format
	cmd := &cobra.Command{
		Use: "access", Short: "List who has, or had, access to the chosen organization",
		Long: `List who has, or had at a moment, access to the chosen organization and to what is in
it, or to one workspace with --workspace, and through what: for the admins of the
organization, and for those of the workspace. The list of a workspace has everybody, with
the admins of the organization; in that of an organization -o wide shows what a membership
in it gives in every workspace.`,
		Example: "  kedge access\n  kedge access --at 2026-03-03T12:00:00Z -w Shop\n  kedge access --at 30d -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in, _, err := a.at(cmd.Context(), org, workspace)
			if err != nil {
				return err
			}
			past, err := in.Access(cmd.Context(), at.before(a.Clock.Now()))
			if err != nil {
				return err
			}
			return a.printAccess(past, output)
		},
	}
	a.orgFlag(cmd, &org)
	output.flag(cmd)
	flags := cmd.Flags()
	flags.Var(&at, "at", "age or time of the moment, such as 30d or 2026-03-03T12:00:00Z (default: now)")
	flags.StringVarP(&workspace, "workspace", "w", "", "UUID or name of the workspace to ask about")
	a.completeWorkspace(cmd, &org)
	return cmd
}

func (a *app) printAccess(past *rest.PastAccess, output format) error {
	for _, warning := range accessWarnings(past) {
		fmt.Fprintln(a.Err, "kedge:", printable(warning))
	}
	if !output.isTable() {
		return a.print(output, past.Raw, accessColumns)
	}
	items := make([]map[string]any, 0, len(past.Items))
	for _, h := range past.Items {
		items = append(items, flatHolder(h))
	}
	return a.printValue(output, map[string]any{"items": items}, accessColumns)
}

// lookedLately is the time before the moment that is asked for at which the hub at least looked.
const lookedLately = time.Minute

// accessWarnings say what the list does not.
func accessWarnings(past *rest.PastAccess) (all []string) {
	switch {
	case past.Message != "":
		all = append(all, past.Message)
	case !past.Active:
		all = append(all, "nobody had access: it did not exist then, or was deleted")
	}
	if past.AsOf != nil && past.At.Sub(*past.AsOf) > lookedLately {
		all = append(all, "the hub recorded nothing from "+past.AsOf.Format(time.RFC3339)+" on until after this moment; what changed in between is not known")
	}
	return all
}

// flatHolder returns an item whose JSON has no objects.
func flatHolder(h rest.AccessHolder) map[string]any {
	item := map[string]any{"name": printable(h.User), "workspace": h.Workspace, "role": h.Role, "uuid": h.Bot + h.User}
	if h.Bot != "" {
		item["name"] = printable("bot " + h.DisplayName)
	}
	var also []string
	for _, flag := range []struct {
		name string
		set  bool
	}{{"manager", h.Manager}, {"sudo", h.Sudo}} {
		if flag.set {
			also = append(also, flag.name)
		}
	}
	for _, r := range h.Roles {
		also = append(also, strings.Trim(r.Namespace+"/"+r.Name, "/"))
	}
	item["also"] = strings.Join(also, ",")
	item["through"], item["every"] = sourcesText(h.Through), sourcesText(h.EveryWorkspace)
	if len(h.Through) > 0 {
		item["since"] = h.Through[0].Since.UTC().Format(time.RFC3339)
		if end := h.Through[0].ExpiresAt; end != nil {
			item["expires"] = end.UTC().Format(time.RFC3339)
		}
	}
	var tokens []string
	for _, t := range h.Tokens {
		name := t.Name
		if name == "" {
			name = t.ID
		}
		tokens = append(tokens, printable(name))
	}
	item["tokens"] = strings.Join(tokens, ",")
	return item
}

// sourcesText are the sources of access, that in effect first.
func sourcesText(sources []rest.PastSource) string {
	var all []string
	for _, s := range sources {
		text := printable(s.Through)
		if s.Role != "" {
			text += " (" + printable(string(s.Role)) + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}
