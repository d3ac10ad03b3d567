package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// members are the commands for members of an organization or a workspace.
type members struct {
	resource[rest.Member, client.Members]
	noun, command string
	// inWorkspace is true for members of a workspace. They can have further roles and sudo,
	// and their removal has nothing to cascade to.
	inWorkspace bool
	// in opens the session and returns the requests about what they are members of.
	in func(ctx context.Context) (client.Tenant, target, error)
}

func orgMemberColumns() table {
	return table{{"USER", "user"}, {"DISPLAY NAME", "displayName"}, {"ROLE", "role"}, {"SINCE", "since"}, {"PHASE", "phase"},
		{"ACTIVE", "active"}, endColumn(), throughColumn()}
}

// throughColumn says by what the parts of a membership are there: by hand, by a request or by a group.
func throughColumn() [3]string { return [3]string{"THROUGH", "sources", wide} }

// membersCommand is kedge members, about the chosen organization.
func (a *app) membersCommand() *cobra.Command {
	var org string
	m := &members{noun: "organization", command: "kedge members"}
	m.app = a
	m.columns = orgMemberColumns()
	m.in = func(ctx context.Context) (client.Tenant, target, error) { return a.at(ctx, org, "") }
	cmd := m.root()
	a.orgFlag(cmd, &org)
	return cmd
}

// workspaceMembersCommand is kedge workspaces members, about the chosen workspace.
func (a *app) workspaceMembersCommand(org *string) *cobra.Command {
	var workspace string
	m := &members{noun: "workspace", command: "kedge workspaces members", inWorkspace: true}
	m.app = a
	m.columns = table{{"USER", "user"}, {"DISPLAY NAME", "displayName"}, {"ROLE", "role"}, {"MANAGER", "manager"},
		{"SCOPE", "scope"}, {"ROLES", "roles"}, {"SUDO", "sudo"}, {"SINCE", "since"}, {"PHASE", "phase"}, {"ACTIVE", "active"}, endColumn(), throughColumn()}
	m.in = func(ctx context.Context) (client.Tenant, target, error) {
		w, t, err := a.inWorkspace(ctx, *org, workspace)
		return w.Tenant, t, err
	}
	cmd := m.root()
	a.workspaceFlag(cmd, org, &workspace)
	return cmd
}

func (m *members) root() *cobra.Command {
	m.open = func(cmd *cobra.Command, _ []string) (*session, client.Members, error) {
		in, _, err := m.in(cmd.Context())
		return nil, in.Members(), err
	}
	m.candidates = byName(func(member rest.Member) (string, string) { return member.User, member.DisplayName })
	cmd := &cobra.Command{
		Use: "members", Aliases: []string{"member"}, Short: "List the people in the chosen " + m.noun + ", add and remove them, and set their roles",
		Long: "List the people in the chosen " + m.noun + ", add and remove them, and set their roles.\n" +
			"People are named as kedge users search shows them, never by display name or email.",
		Example: "  " + m.command + "\n  " + m.command + " add bob\n  " + m.command + " set-role bob admin\n  " + m.command + " remove bob",
	}
	list := &cobra.Command{
		Use: "list", Short: "List the people in the chosen " + m.noun,
		Example: "  " + m.command + " list\n  " + m.command + " list -o json",
	}
	m.listing(cmd, list)
	cmd.AddCommand(list, m.addCommand(), m.inviteCommand(), m.setRoleCommand(), m.setExpiryCommand(), m.removeCommand())
	return cmd
}

// role is the value of --role.
func role(value string) *word { return &word{value, []string{"admin", "member", "viewer"}} }

// managerRole is the word for a manager without a role.
const managerRole = "manager"

// roleOf is the value of a role: a workspace has managers, too.
func (m *members) roleOf(value string) *word {
	w := role(value)
	if m.inWorkspace {
		w.words = append(w.words, managerRole)
	}
	return w
}

// grant is what a membership gives in addition to its role.
type grant struct {
	roles         []string
	sudo, manager bool
}

func (g *grant) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&g.roles, "roles", nil, `further roles of the workspace, separated by commas: ROLE, or NAMESPACE/ROLE for a role in one namespace ("" for none)`)
	cmd.Flags().BoolVar(&g.manager, "manager", false,
		"let the person manage the workspace and its members beside the role (the role manager: without any right to what is in it)")
	cmd.Flags().BoolVar(&g.sudo, "sudo", false, "allow the person to act as admin of the workspace in single requests of kubectl (--as, --as-group)")
}

// named are the further roles that --roles names.
func (g *grant) named() []rest.RoleRef {
	named := make([]rest.RoleRef, 0, len(g.roles))
	for _, role := range g.roles {
		role = strings.TrimSpace(role)
		if namespace, name, ok := strings.Cut(role, "/"); ok {
			named = append(named, rest.RoleRef{Name: name, Namespace: namespace})
			continue
		}
		named = append(named, rest.RoleRef{Name: role})
	}
	return named
}

func (m *members) addCommand() *cobra.Command {
	var given grant
	var expires life
	as := m.roleOf("member")
	cmd := &cobra.Command{
		Use: "add USER", Short: "Make somebody a member", Args: oneArg("the name of a person"),
		Long: "Make somebody a member of the chosen " + m.noun + `. Adding somebody again who has the same
role changes nothing and is no error; to change a role, use set-role.`,
		Example: "  kedge users search bob\n  " + m.command + " add bob\n  " + m.command + " add bob --role admin",
		RunE: func(cmd *cobra.Command, args []string) error {
			user := args[0]
			all, t, err := m.named(cmd, user)
			if err != nil {
				return err
			}
			body := rest.AddWorkspaceMemberRequest{
				UserRef: rest.UserRef{Name: user}, Role: rest.Role(as.value), Manager: given.manager, Roles: given.named(), Sudo: given.sudo,
			}
			if as.value == managerRole {
				body.Role, body.Manager = "", true
			}
			if expires > 0 {
				body.ExpiresAt = rest.Set(time.Now().Add(time.Duration(expires)).UTC().Format(time.RFC3339))
			}
			added, err := all.Create(cmd.Context(), body, client.Once())
			if err != nil {
				return m.notAdded(err, t, user, as.value)
			}
			if added.Code == http.StatusOK {
				fmt.Fprintf(m.Err, "%s is a member already.\n", user)
			}
			return m.show(added, m.columns)
		},
	}
	cmd.Flags().Var(as, "role", strings.Join(as.words, ", "))
	cmd.Flags().Var(&expires, "expires-in", "time after which the membership ends, such as 90d or 12h (default: it does not end by time)")
	if m.inWorkspace {
		cmd.Example += "\n  " + m.command + " add bob --roles view,auditor --sudo"
		given.flags(cmd)
	}
	m.output.flag(cmd)
	return cmd
}

// notAdded adds advice to an error: the person is a member already, or is not known.
func (m *members) notAdded(err error, t target, user, as string) error {
	var refused *client.Error
	switch {
	case !errors.As(err, &refused):
	case refused.Code() == http.StatusConflict:
		at := " --org " + t.Org
		if m.inWorkspace {
			at += " --workspace " + t.Workspace
		}
		return fmt.Errorf("%w\nTo change what a member may do, run: %s set-role %s %s%s", err, m.command, user, as, at)
	case about(refused, "userRef.name") != "":
		return fmt.Errorf("there is no person of the name %q; to find people, run: kedge users search %s; to invite somebody who has not signed in yet, run: %s invite",
			user, user, m.command)
	}
	return err
}

// named opens the session for a command about one person.
func (m *members) named(cmd *cobra.Command, user string) (client.Members, target, error) {
	if err := checkPerson(user); err != nil {
		return client.Members{}, target{}, err
	}
	in, t, err := m.in(cmd.Context())
	return in.Members(), t, err
}

// memberAnd checks the arguments of a command that takes the name of a member and a value. noun is that of
// the value, what describes it.
func memberAnd(noun, what string, check func(string) error) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return fmt.Errorf("%s needs the name of a member and %s; %w", cmd.CommandPath(), what, errUsage)
		}
		if err := check(args[1]); err != nil {
			return fmt.Errorf("invalid %s %q: %w; %w", noun, args[1], err, errUsage)
		}
		return nil
	}
}

func (m *members) setRoleCommand() *cobra.Command {
	var given grant
	cmd := &cobra.Command{
		Use: "set-role USER ROLE", Short: "Make a member " + strings.Join(m.roleOf("").words, ", "),
		Aliases: []string{"set"}, ValidArgsFunction: inOrder(m.complete, completeRole(m.roleOf(""))),
		Long:    "Set a member's role in the chosen " + m.noun + ": " + strings.Join(m.roleOf("").words, ", ") + ".",
		Example: "  " + m.command + " set-role bob admin\n  " + m.command + " set-role bob member",
		Args:    memberAnd("role", "a role, "+strings.Join(m.roleOf("").words, ", "), func(role string) error { return m.roleOf("").Set(role) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, t, err := m.named(cmd, args[0])
			if err != nil {
				return err
			}
			// Flags that are not given leave what there is.
			body := rest.UpdateWorkspaceMemberRequest{Role: rest.Set(rest.Role(args[1]))}
			if args[1] == managerRole {
				body.Role, body.Manager = rest.Null[rest.Role](), rest.Set(true)
			} else if cmd.Flags().Changed("manager") {
				body.Manager = rest.Set(given.manager)
			}
			if cmd.Flags().Changed("roles") {
				body.Roles = rest.Set(given.named())
			}
			if cmd.Flags().Changed("sudo") {
				body.Sudo = rest.Set(given.sudo)
			}
			changed, err := all.Update(cmd.Context(), args[0], body, client.Representation())
			if err != nil {
				return m.unknown(explained(err, args[0]+" is", t.Org))
			}
			if err := m.show(changed, m.columns); err != nil {
				return err
			}
			m.receipt(changed.Receipt)
			return nil
		},
	}
	if m.inWorkspace {
		cmd.Long += "\nWithout --manager, --roles and --sudo, these rights stay as they are. Managers manage the\nworkspace " +
			"and its members, but for admins, and have no right to what is in it."
		cmd.Example += "\n  " + m.command + ` set-role bob member --roles "" --sudo=false`
		given.flags(cmd)
	}
	m.output.flag(cmd)
	return cmd
}

func (m *members) removeCommand() *cobra.Command {
	var cascade bool
	cmd := &cobra.Command{
		Use: "remove USER", Aliases: []string{"rm"}, Short: "End somebody's membership", Args: oneArg("the name of a member"), ValidArgsFunction: m.complete,
		Long:    "End somebody's membership in the chosen " + m.noun + ".",
		Example: "  " + m.command + " remove bob",
		RunE: func(cmd *cobra.Command, args []string) error {
			all, t, err := m.named(cmd, args[0])
			if err != nil {
				return err
			}
			receipt, err := all.End(cmd.Context(), args[0], cascading(cascade)...)
			if err != nil {
				return m.notRemoved(explained(err, args[0]+" is", t.Org), t)
			}
			gone := endedIn(t, receipt)
			gone.User = args[0]
			text := fmt.Sprintf("Removed %s from the %s.", args[0], m.noun)
			if gone.Phase != "" {
				text = fmt.Sprintf("The removal of %s is still being carried out; to see who is left, run: %s list", args[0], m.command)
			}
			if err := m.tell(m.output, text, gone); err != nil {
				return err
			}
			m.receipt(receipt)
			return nil
		},
	}
	m.output.flag(cmd)
	if !m.inWorkspace {
		cmd.Long += ` While they are a member of workspaces in
it, that needs --cascade, which removes them there, too. The only admin cannot
be removed.`
		cmd.Example += "\n  " + m.command + " remove bob --cascade"
		cascadeFlag(cmd, &cascade, "also remove them from the organization's workspaces")
	}
	return cmd
}

// notRemoved adds advice to an error: callers who may not remove others can leave.
func (m *members) notRemoved(err error, t target) error {
	var refused *client.Error
	if errors.As(err, &refused) && strings.Contains(refused.ErrStatus.Message, "/memberships/me") {
		leave := "kedge orgs leave " + t.Org
		if m.inWorkspace {
			leave = "kedge workspaces leave " + t.Workspace + " --org " + t.Org
		}
		return fmt.Errorf("%w; to leave, run: %s", err, leave)
	}
	return m.unknown(err)
}

// unknown adds advice to an error: how to list the members.
func (m *members) unknown(err error) error {
	return notFoundAdvice(err, "who is a member, run: "+m.command+" list")
}

func cascadeFlag(cmd *cobra.Command, cascade *bool, usage string) {
	cmd.Flags().BoolVar(cascade, "cascade", false, usage)
}

// ended is a removed membership in the terms of the API. Without a user it is the caller's. The
// phase is Terminating while the removal is in progress.
type ended struct {
	User          string `json:"user,omitempty"`
	OrgUUID       string `json:"orgUUID"`
	WorkspaceUUID string `json:"workspaceUUID,omitempty"`
	Phase         string `json:"phase,omitempty"`
	// Receipt is as the hub sent it. A hub of an earlier version sends none.
	Receipt json.RawMessage `json:"receipt,omitempty"`
}

// endedIn is a membership that was removed.
func endedIn(t target, receipt *rest.Receipt) ended {
	gone := ended{OrgUUID: t.Org, WorkspaceUUID: t.Workspace, Receipt: receipt.Raw}
	if receipt.Code == http.StatusAccepted {
		gone.Phase = "Terminating"
	}
	return gone
}

// cascading is the option of --cascade.
func cascading(cascade bool) []client.Option {
	if cascade {
		return []client.Option{client.Cascade()}
	}
	return nil
}
