package cli

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var (
	adminUserColumns = table{{"NAME", "name"}, {"DISPLAY NAME", "displayName"}, {"EMAIL", "email"}, {"REGISTRATION", "registration"}, {"PHASE", "phase"}, {"CREATED", "createdAt"},
		{"ORGANIZATIONS", "orgQuota", wide}, {"PERSONAL ORGANIZATION", "personalOrg", wide}, {"REASON", "rejectionReason", wide}, {"DELETED", "deletionRequestedAt", wide}}
	adminOrgColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"PHASE", "phase"}, {"CREATED", "createdAt"}, {"CREATED BY", "createdBy"}, {"WORKSPACES", "workspaceQuota"},
		{"BILLING", "billing"}, {"PERSONAL", "personal", wide}, {"STORAGE", "storage", wide}, {"DELETED", "deletionRequestedAt", wide}, {"PURGE AT", "purgeAt", wide}}
	membershipColumns = table{{"ORGANIZATION", "orgDisplayName"}, {"WORKSPACE", "workspaceDisplayName"}, {"ROLE", "role"}, {"DELETED", "softDeletedAt"},
		{"ORGANIZATION UUID", "orgUUID", wide}, {"WORKSPACE UUID", "workspaceUUID", wide}}
)

// person is the argument of commands about a person.
func person(cmd *cobra.Command, args []string) error {
	return oneArg("the name of a person")(cmd, args)
}

type (
	adminUsers = client.Objects[rest.AdminUser, client.None, rest.AdminUpdateUserRequest]
	adminOrgs  = client.Objects[rest.AdminOrg, client.None, rest.AdminUpdateOrgRequest]
)

// admin are the commands of platform admins.
type admin struct {
	*app
	output format
	users  resource[rest.AdminUser, adminUsers]
	orgs   resource[rest.AdminOrg, adminOrgs]
}

// adviseAdmin adds advice to an error: how to find people and organizations.
func adviseAdmin(err error) error {
	return notFoundAdvice(err, "what there is, run: kedge admin users, or kedge admin orgs")
}

func (a *app) adminCommand() *cobra.Command {
	d := &admin{app: a}
	d.users = resource[rest.AdminUser, adminUsers]{
		app: a, columns: adminUserColumns, check: checkPerson, advise: adviseAdmin,
		candidates: byName(func(u rest.AdminUser) (string, string) { return u.Name, u.DisplayName }),
		open: func(cmd *cobra.Command, _ []string) (*session, adminUsers, error) {
			s, err := a.session(cmd.Context())
			if err != nil {
				return nil, adminUsers{}, err
			}
			return s, s.api.Admin().Users(), nil
		},
	}
	d.orgs = resource[rest.AdminOrg, adminOrgs]{
		app: a, columns: adminOrgColumns, advise: adviseAdmin, candidates: byDisplayName[rest.AdminOrg],
		open: func(cmd *cobra.Command, _ []string) (*session, adminOrgs, error) {
			s, err := a.session(cmd.Context())
			if err != nil {
				return nil, adminOrgs{}, err
			}
			return s, s.api.Admin().Orgs(), nil
		},
		// Of all organizations that the hub has.
		name: func(ctx context.Context, all adminOrgs, arg string) (string, error) {
			if isUUID(arg) {
				return arg, nil
			}
			t, err := find(naming{"organization", "kedge admin orgs", "CREATED BY"}, all.List(ctx, client.Query("q", arg)), arg)
			return t.UUID, err
		},
	}
	cmd := &cobra.Command{
		Use: "admin", Short: "Manage people and organizations of the hub, as a platform admin, or audit it",
		Long: `Manage people and organizations of the hub, as a platform admin. These commands give
no access to the contents of workspaces. Auditors of the hub can list people and organizations,
what happened, who had access, what was used, and what bills depend on.`,
		Example: "  kedge admin users --registration Pending\n  kedge admin approve bob\n  kedge admin deletions",
	}
	cmd.AddCommand(d.usersCommand(), d.registerCommand("approve", "Approved"), d.registerCommand("reject", "Rejected"), d.quotaCommand(),
		d.orgsCommand(), d.catalogCommand(), d.deletionsCommand(), d.sessionsCommand(),
		d.auditCommand(), d.usageCommand(), d.billingCommand(), d.accessCommand())
	return cmd
}

func (d *admin) usersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "users", Aliases: []string{"user"}, Short: "List people, show one, delete and undelete accounts",
		Example: "  kedge admin users --registration Pending\n  kedge admin users get bob\n  kedge admin users memberships bob\n  kedge admin users delete bob",
	}
	list := &cobra.Command{Use: "list", Short: "List people", Example: "  kedge admin users list --query bob"}
	d.users.filters = []*filter{{flag: "query", parameter: "q", usage: "a part of the display name"},
		{flag: "registration", parameter: "registration", usage: "Approved, Pending or Rejected"}}
	d.users.listing(cmd, list)
	cmd.AddCommand(list, d.users.getting(&cobra.Command{Use: "get USER", Short: "Show a person", Args: person, Example: "  kedge admin users get bob"}),
		d.membershipsCommand(), d.deletePersonCommand(),
		d.users.about(&cobra.Command{
			Use: "undelete USER", Short: "Bring back a deleted account", Args: person, Example: "  kedge admin users undelete bob",
		}, deletedPersonColumns, func(ctx context.Context, s *session, _ adminUsers, name string, _ []string) (object, error) {
			return s.api.UndeletePerson(ctx, name)
		}))
	return cmd
}

// listing makes a command print a list of platform admins.
func listing[T object](d *admin, cmd *cobra.Command, columns table,
	list func(s *session, args []string) (iter.Seq2[T, error], error),
) *cobra.Command {
	printing(d.app, cmd, &d.output, columns, adviseAdmin, func(cmd *cobra.Command, args []string) (iter.Seq2[T, error], error) {
		s, err := d.session(cmd.Context())
		if err != nil {
			return nil, err
		}
		return list(s, args)
	})
	return cmd
}

func (d *admin) membershipsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "memberships USER", Short: "List the organizations and workspaces that a person is a member of", Args: person, ValidArgsFunction: d.users.complete,
		Example: "  kedge admin users memberships bob",
	}
	return listing(d, cmd, membershipColumns, func(s *session, args []string) (iter.Seq2[rest.MembershipRow, error], error) {
		return s.api.Admin().Memberships(cmd.Context(), args[0], false), checkPerson(args[0])
	})
}

func (d *admin) deletePersonCommand() *cobra.Command {
	c := &consent{app: d.app}
	cmd := &cobra.Command{Use: "delete USER", Short: "Delete an account; it can be brought back for a time", Args: person, Example: "  kedge admin users delete bob"}
	d.users.about(cmd, deletedPersonColumns, func(ctx context.Context, s *session, _ adminUsers, name string, _ []string) (object, error) {
		text := fmt.Sprintf("Delete the account %s? Its memberships give no rights then, and its logins end.", name)
		if err := c.typed(ctx, text, "Type "+name+" to go on", name); err != nil {
			return nil, err
		}
		return s.api.DeletePerson(ctx, name)
	})
	return c.first(cmd)
}

// registerCommand approves or rejects people.
func (d *admin) registerCommand(name, registration string) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: name + " USER", Short: "Admit a person who signed up", Args: person,
		Long:    "Admit a person who signed up and waits for approval, or was rejected before.",
		Example: "  kedge admin users --registration Pending\n  kedge admin " + name + " bob",
	}
	if name == "reject" {
		cmd.Short = "Refuse a person, who then can do nothing here"
		cmd.Long = "Refuse a person. Their logins and streams end, and their memberships give no rights."
		cmd.Example += "\n  kedge admin reject bob --reason \"use your account at work\""
		cmd.Flags().StringVar(&reason, "reason", "", "why, at most 512 characters; the person is shown it")
	}
	return d.users.about(cmd, adminUserColumns, func(ctx context.Context, _ *session, all adminUsers, name string, _ []string) (object, error) {
		update := rest.AdminUpdateUserRequest{Registration: rest.Set(registration)}
		if reason != "" {
			update.RejectionReason = rest.Set(reason)
		}
		o, err := all.Update(ctx, name, update, client.Representation())
		changed := *orNone(o)
		d.receipt(changed.Receipt)
		return changed, err
	})
}

func (d *admin) quotaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "quota",
		Short: "Set how many organizations a person, or workspaces an organization, can have, " +
			"and what an organization can store",
		Example: "  kedge admin quota user bob 20\n  kedge admin quota org ACME default\n  kedge admin quota storage ACME bytes 10Gi",
	}
	cmd.AddCommand(
		d.users.about(limitCommand("user USER N|default", "Set how many organizations a person can create", "user bob 20"), adminUserColumns.all(),
			func(ctx context.Context, _ *session, all adminUsers, name string, args []string) (object, error) {
				return all.Update(ctx, name, rest.AdminUpdateUserRequest{OrgQuota: limit(args[1])})
			}),
		d.orgs.about(limitCommand("org UUID|NAME N|default", "Set how many workspaces an organization can have", "org ACME default"), adminOrgColumns.all(),
			func(ctx context.Context, _ *session, all adminOrgs, uuid string, args []string) (object, error) {
				return all.Update(ctx, uuid, rest.AdminUpdateOrgRequest{WorkspaceQuota: limit(args[1])})
			}),
		d.orgs.about(storageCommand(), adminOrgColumns.all(),
			func(ctx context.Context, _ *session, all adminOrgs, uuid string, args []string) (object, error) {
				return all.Update(ctx, uuid, rest.AdminUpdateOrgRequest{Storage: rest.Set(storageLimits()[args[1]](args[2]))})
			}))
	return cmd
}

// storageLimits are the limits of what an organization stores, by name: each makes the request that sets it.
func storageLimits() map[string]func(value string) rest.StorageLimitsPatch {
	size := func(value string) rest.Field[string] {
		if value == "default" {
			return rest.Null[string]()
		}
		return rest.Set(value)
	}
	number := func(value string) rest.Field[int64] {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return rest.Null[int64]()
		}
		return rest.Set(n)
	}
	return map[string]func(value string) rest.StorageLimitsPatch{
		"bytes":             func(v string) rest.StorageLimitsPatch { return rest.StorageLimitsPatch{Bytes: size(v)} },
		"workspace-bytes":   func(v string) rest.StorageLimitsPatch { return rest.StorageLimitsPatch{WorkspaceBytes: size(v)} },
		"workspace-objects": func(v string) rest.StorageLimitsPatch { return rest.StorageLimitsPatch{WorkspaceObjects: number(v)} },
		"workspace-crds":    func(v string) rest.StorageLimitsPatch { return rest.StorageLimitsPatch{WorkspaceCRDs: number(v)} },
		"workspace-apibindings": func(v string) rest.StorageLimitsPatch {
			return rest.StorageLimitsPatch{WorkspaceAPIBindings: number(v)}
		},
		"workspace-roles": func(v string) rest.StorageLimitsPatch { return rest.StorageLimitsPatch{WorkspaceRoles: number(v)} },
	}
}

func storageCommand() *cobra.Command {
	names := strings.Join(slices.Sorted(maps.Keys(storageLimits())), ", ")
	return &cobra.Command{
		Use: "storage UUID|NAME LIMIT VALUE|default", Short: "Set how much an organization, or each of its workspaces, can store",
		Long: "Set how much an organization, or each of its workspaces, can store. The limits are " + names +
			". Sizes are such as 10Gi. The word default restores what the hub's operator set for all.",
		Example: "  kedge admin quota storage ACME bytes 10Gi\n  kedge admin quota storage ACME workspace-objects default",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 3 || storageLimits()[args[1]] == nil {
				return fmt.Errorf("%s needs a name, a limit (%s), and a value or the word default; %w", cmd.CommandPath(), names, errUsage)
			}
			if _, err := strconv.ParseUint(args[2], 10, 31); err != nil && args[2] != "default" && !strings.HasSuffix(args[1], "bytes") {
				return fmt.Errorf("%s needs a number or the word default for %s; %w", cmd.CommandPath(), args[1], errUsage)
			}
			return nil
		},
	}
}

func limitCommand(use, short, example string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  kedge admin quota " + example, Long: short + ". The word default restores what the hub's operator set for all.",
		Args: needs("a name, and a number from 1 or the word default", func(args []string) bool {
			if len(args) != 2 {
				return false
			}
			n, err := strconv.ParseUint(args[1], 10, 31)
			return args[1] == "default" || err == nil && n > 0
		}),
	}
}

// limit is the quota that an argument gives, which limitCommand has checked.
func limit(arg string) rest.Field[int32] {
	n, err := strconv.ParseInt(arg, 10, 32)
	if err != nil {
		return rest.Null[int32]()
	}
	return rest.Set(int32(n))
}
