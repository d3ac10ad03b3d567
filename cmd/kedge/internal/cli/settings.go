package cli

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

var settingColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"WORKSPACES BY", "workspaceCreation"}, {"CATALOG ENTRIES BY", "catalogEntryCreation"},
	{"DEFAULT ACCESS", "defaultAccess"}, {"BILLING", "billing"}}

func (k *kind) getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get [UUID|NAME]", Short: "Show one " + k.noun + ", the chosen one unless another is named",
		Args: k.oneAtMost, ValidArgsFunction: k.complete,
		Example: "  " + k.run("get") + "\n  " + k.run(fmt.Sprintf("get %q -o wide", "My "+k.noun)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return k.sendTo(cmd, args, http.MethodGet, nil, k.columns)
		},
	}
	k.output.flag(cmd)
	return cmd
}

// sendTo sends a request to the tenant that the argument names, or the chosen one, and prints the
// answer.
func (k *kind) sendTo(cmd *cobra.Command, args []string, method string, body any, columns table) error {
	s, r, _, err := k.selected(cmd, args)
	if err != nil {
		return err
	}
	r.Method, r.Body = method, body
	_, raw, err := s.send(cmd.Context(), r)
	if err != nil {
		return ofArgument(err, "displayName", "NEW-NAME")
	}
	return k.print(k.output, raw, columns)
}

func (k *kind) renameCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rename UUID|NAME NEW-NAME", Short: "Give one of your " + k.noun + "s another name", ValidArgsFunction: k.complete,
		Long:    "Give one of your " + k.noun + "s another name. Its UUID, and what refers to it, stay as they are.",
		Example: "  " + k.run(fmt.Sprintf("rename %q %q", "My "+k.noun, "Our "+k.noun)),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s needs the UUID or the name of the %s, and its new name; %w", cmd.CommandPath(), k.noun, errUsage)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return k.sendTo(cmd, args[:1], http.MethodPatch, map[string]string{"displayName": args[1]}, k.columns)
		},
	}
	k.output.flag(cmd)
	return cmd
}

// choice is the value of a flag that is one of two words.
type choice struct{ value, first, second string }

func (c *choice) String() string { return c.value }

// Type implements pflag.Value.
func (c *choice) Type() string { return c.first + "|" + c.second }

// Set implements pflag.Value.
func (c *choice) Set(s string) error {
	if s != c.first && s != c.second {
		return fmt.Errorf("give %s or %s", c.first, c.second)
	}
	c.value = s
	return nil
}

// settings are the flags of kedge orgs settings.
type settings struct {
	workspaces, entries, access choice
	costCenter                  string
	labels                      []string
}

func (k *kind) settingsCommand() *cobra.Command {
	s := settings{
		workspaces: choice{first: "members", second: "admin"}, entries: choice{first: "members", second: "admin"},
		access: choice{first: "none", second: "view"},
	}
	cmd := &cobra.Command{
		Use: "settings [UUID|NAME]", Short: "Show or change what members of an organization may do, and its billing",
		Long: `Show what members of an organization may do, and its billing. Flags change these
settings first; a setting that no flag names stays as it is.`,
		Example: `  kedge orgs settings
  kedge orgs settings "My organization" --workspace-creation admin --default-access view
  kedge orgs settings --cost-center 4711 --billing-label team=web`,
		Args: k.oneAtMost, ValidArgsFunction: k.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			patch, err := s.patch(cmd)
			if err != nil {
				return err
			}
			if len(patch) == 0 {
				return k.sendTo(cmd, args, http.MethodGet, nil, settingColumns)
			}
			return k.sendTo(cmd, args, http.MethodPatch, patch, settingColumns)
		},
	}
	flags := cmd.Flags()
	flags.Var(&s.workspaces, "workspace-creation", "who can create workspaces: members, or admin for admins only")
	flags.Var(&s.entries, "catalog-entry-creation", "who can publish catalog entries: members, or admin for admins only")
	flags.Var(&s.access, "default-access", "access of members to workspaces that they are not members of: none or view")
	flags.StringVar(&s.costCenter, "cost-center", "", `cost center for billing ("" removes it)`)
	flags.StringArrayVar(&s.labels, "billing-label", nil, "label for billing, as KEY=VALUE, repeatable; KEY= removes a label")
	k.output.flag(cmd)
	return cmd
}

// patch is a merge patch of what the flags name.
func (s *settings) patch(cmd *cobra.Command) (map[string]any, error) {
	patch, billing, labels := map[string]any{}, map[string]any{}, map[string]any{}
	for flag, to := range map[string]struct {
		field string
		value *choice
	}{
		"workspace-creation":     {"workspaceCreation", &s.workspaces},
		"catalog-entry-creation": {"catalogEntryCreation", &s.entries},
		"default-access":         {"defaultAccess", &s.access},
	} {
		if cmd.Flags().Changed(flag) {
			patch[to.field] = to.value.value
		}
	}
	orNull := func(value string) any {
		if value == "" {
			return nil
		}
		return value
	}
	if cmd.Flags().Changed("cost-center") {
		billing["costCenter"] = orNull(s.costCenter)
	}
	for _, label := range s.labels {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--billing-label: give KEY=VALUE, not %q; %w", label, errUsage)
		}
		labels[key] = orNull(value)
	}
	if len(labels) > 0 {
		billing["labels"] = labels
	}
	if len(billing) > 0 {
		patch["billing"] = billing
	}
	return patch, nil
}
