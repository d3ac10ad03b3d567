package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/client"
)

const (
	adminUsers = "/api/admin/users"
	adminOrgs  = "/api/admin/orgs"
)

var (
	adminUserColumns = table{{"NAME", "name"}, {"DISPLAY NAME", "displayName"}, {"EMAIL", "email"}, {"REGISTRATION", "registration"}, {"PHASE", "phase"}, {"CREATED", "createdAt"},
		{"ORGANIZATIONS", "orgQuota", wide}, {"PERSONAL ORGANIZATION", "personalOrg", wide}, {"DELETED", "deletionRequestedAt", wide}}
	adminOrgColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"PHASE", "phase"}, {"CREATED", "createdAt"}, {"CREATED BY", "createdBy"}, {"WORKSPACES", "workspaceQuota"},
		{"PERSONAL", "personal", wide}, {"DELETED", "deletionRequestedAt", wide}, {"PURGE AT", "purgeAt", wide}}
	membershipColumns = table{{"ORGANIZATION", "orgDisplayName"}, {"WORKSPACE", "workspaceDisplayName"}, {"ROLE", "role"}, {"DELETED", "softDeletedAt"},
		{"ORGANIZATION UUID", "orgUUID", wide}, {"WORKSPACE UUID", "workspaceUUID", wide}}
)

// admin are the commands of platform admins.
type admin struct {
	*app
	output format
}

func (a *app) adminCommand() *cobra.Command {
	d := &admin{app: a}
	cmd := &cobra.Command{
		Use: "admin", Short: "Manage people and organizations of the hub, as a platform admin", Args: noArgs,
		Long: `Manage people and organizations of the hub, as a platform admin. These commands give
no access to the contents of workspaces.`,
		Example: "  kedge admin users --registration Pending\n  kedge admin approve bob\n  kedge admin deletions",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(d.usersCommand(), d.registerCommand("approve", "Approved"), d.registerCommand("reject", "Rejected"), d.quotaCommand(),
		d.orgsCommand(), d.catalogCommand(), d.deletionsCommand(), d.sessionsCommand())
	return cmd
}

// list prints a list.
func (d *admin) list(cmd *cobra.Command, r client.Request, columns table) error {
	s, err := d.session(cmd.Context())
	if err != nil {
		return err
	}
	raw, err := listAll(cmd.Context(), s, r)
	if err != nil {
		return d.unknown(err)
	}
	return d.print(d.output, raw, columns)
}

// sendAbout sends a request and prints the answer.
func (d *admin) sendAbout(cmd *cobra.Command, r client.Request, columns table) error {
	s, err := d.session(cmd.Context())
	if err != nil {
		return err
	}
	_, raw, err := s.send(cmd.Context(), r)
	if err != nil {
		return d.unknown(err)
	}
	return d.printAnswer(d.output, raw, columns)
}

// unknown adds advice to an error: how to find people and organizations.
func (d *admin) unknown(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code() == http.StatusNotFound {
		return fmt.Errorf("%w; to see what there is, run: kedge admin users, or kedge admin orgs", err)
	}
	return err
}

// aboutPerson is the request about the person that an argument names.
func aboutPerson(method, user, path string, body any) (client.Request, error) {
	person, err := personAt(user)
	return client.Request{Method: method, Path: adminUsers + "/" + person + path, Body: body}, err
}

// filter is a flag of a list, and the parameter of the request that it sets.
type filter struct{ flag, parameter, usage, value string }

// listing makes a command, and its subcommand list, print what is at a path.
func (d *admin) listing(cmd, list *cobra.Command, path string, columns table, filters ...*filter) *cobra.Command {
	run := func(cmd *cobra.Command, _ []string) error {
		r := client.Request{Path: path, Query: url.Values{}}
		for _, f := range filters {
			if f.value != "" {
				r.Query.Set(f.parameter, f.value)
			}
		}
		return d.list(cmd, r, columns)
	}
	for _, c := range []*cobra.Command{cmd, list} {
		c.Args, c.RunE = noArgs, run
		for _, f := range filters {
			c.Flags().StringVar(&f.value, f.flag, "", f.usage)
		}
		d.output.flag(c)
	}
	cmd.AddCommand(list)
	return cmd
}

func (d *admin) usersCommand() *cobra.Command {
	cmd := d.listing(&cobra.Command{
		Use: "users", Aliases: []string{"user"}, Short: "List people, show one, delete and undelete accounts",
		Example: "  kedge admin users --registration Pending\n  kedge admin users get bob\n  kedge admin users memberships bob\n  kedge admin users delete bob",
	}, &cobra.Command{Use: "list", Short: "List people", Example: "  kedge admin users list --query bob"}, adminUsers, adminUserColumns,
		&filter{flag: "query", parameter: "q", usage: "a part of the display name"},
		&filter{flag: "registration", parameter: "registration", usage: "Approved, Pending or Rejected"})
	cmd.AddCommand(d.personCommand("get USER", "Show a person", "", adminUserColumns),
		d.personCommand("memberships USER", "List the organizations and workspaces that a person is a member of", "/memberships", membershipColumns),
		d.deletePersonCommand(), d.undeletePersonCommand())
	return cmd
}

func (d *admin) personCommand(use, short, path string, columns table) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: oneArg("the name of a person"), ValidArgsFunction: d.completePeople,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := aboutPerson(http.MethodGet, args[0], path, nil)
			switch {
			case err != nil:
				return err
			case path != "":
				return d.list(cmd, r, columns)
			}
			return d.sendAbout(cmd, r, columns)
		},
	}
	cmd.Example = "  kedge admin users " + cmd.Name() + " bob"
	d.output.flag(cmd)
	return cmd
}

func (d *admin) deletePersonCommand() *cobra.Command {
	c := consent{app: d.app}
	cmd := &cobra.Command{
		Use: "delete USER", Short: "Delete an account; it can be brought back for a time", Args: oneArg("the name of a person"), ValidArgsFunction: d.completePeople,
		Example: "  kedge admin users delete bob",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.possible(); err != nil {
				return err
			}
			person, err := personAt(args[0])
			if err != nil {
				return err
			}
			text := fmt.Sprintf("Delete the account %s? Its memberships give no rights then, and its logins end.", args[0])
			if err := c.typed(cmd.Context(), text, "Type "+args[0]+" to go on", args[0]); err != nil {
				return err
			}
			return d.sendAbout(cmd, client.Request{Method: http.MethodDelete, Path: "/api/users/" + person}, deletedPersonColumns)
		},
	}
	c.flag(cmd)
	d.output.flag(cmd)
	return cmd
}

func (d *admin) undeletePersonCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "undelete USER", Short: "Bring back a deleted account", Args: oneArg("the name of a person"), ValidArgsFunction: d.completePeople,
		Example: "  kedge admin users undelete bob",
		RunE: func(cmd *cobra.Command, args []string) error {
			person, err := personAt(args[0])
			if err != nil {
				return err
			}
			return d.sendAbout(cmd, client.Request{Method: http.MethodPost, Path: "/api/users/" + person + "/undelete"}, deletedPersonColumns)
		},
	}
	d.output.flag(cmd)
	return cmd
}

// registerCommand approves or rejects people.
func (d *admin) registerCommand(name, registration string) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " USER", Short: "Admit a person who signed up", Args: oneArg("the name of a person"), ValidArgsFunction: d.completePeople,
		Long:    "Admit a person who signed up and waits for approval, or was rejected before.",
		Example: "  kedge admin users --registration Pending\n  kedge admin " + name + " bob",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := aboutPerson(http.MethodPatch, args[0], "", map[string]string{"registration": registration})
			if err != nil {
				return err
			}
			return d.sendAbout(cmd, r, adminUserColumns)
		},
	}
	if name == "reject" {
		cmd.Short = "Refuse a person, who then can do nothing here"
		cmd.Long = "Refuse a person. Their logins and streams end, and their memberships give no rights."
	}
	d.output.flag(cmd)
	return cmd
}

func (d *admin) quotaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "quota", Short: "Set how many organizations a person, or workspaces an organization, can have", Args: noArgs,
		Example: "  kedge admin quota user bob 20\n  kedge admin quota org ACME default",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	user := d.limitCommand("user USER N|default", "Set how many organizations a person can create", "user bob 20",
		func(_ context.Context, _ *session, arg string) (client.Request, table, error) {
			r, err := aboutPerson(http.MethodPatch, arg, "", nil)
			return r, adminUserColumns, err
		}, "orgQuota")
	user.ValidArgsFunction = d.completePeople
	org := d.limitCommand("org UUID|NAME N|default", "Set how many workspaces an organization can have", "org ACME default",
		func(ctx context.Context, s *session, arg string) (client.Request, table, error) {
			uuid, err := d.org(ctx, s, arg)
			return client.Request{Method: http.MethodPatch, Path: adminOrgs + "/" + uuid}, adminOrgColumns, err
		}, "workspaceQuota")
	org.ValidArgsFunction = d.completeOrgs
	cmd.AddCommand(user, org)
	return cmd
}

func (d *admin) limitCommand(use, short, example string, about func(ctx context.Context, s *session, arg string) (client.Request, table, error), field string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: "  kedge admin quota " + example, Long: short + ". The word default restores what the hub's operator set for all.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				if n, err := strconv.ParseUint(args[1], 10, 31); args[1] == "default" || err == nil && n > 0 {
					return nil
				}
			}
			return fmt.Errorf("%s needs a name, and a number from 1 or the word default; %w", cmd.CommandPath(), errUsage)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := d.session(cmd.Context())
			if err != nil {
				return err
			}
			r, columns, err := about(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			body := map[string]any{field: nil}
			if n, err := strconv.Atoi(args[1]); err == nil {
				body[field] = n
			}
			r.Body = body
			return d.sendAbout(cmd, r, columns.of(wide))
		},
	}
	d.output.flag(cmd)
	return cmd
}
