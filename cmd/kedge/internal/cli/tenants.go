package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var (
	orgColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"ROLE", "role"}, {"PHASE", "phase"}, {"CREATED", "createdAt"}, {"FIRST ADMIN", "firstAdmin"},
		descriptionColumn(), {"PERSONAL", "personal", wide}, {"WORKSPACES", "workspaceQuota", wide}, {"BYTES", "bytes", wide}, {"DEFAULT ACCESS", "defaultAccess", wide}, {"BILLING", "billing", wide}, {"PATH", "workspacePath", wide}}
	workspaceColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, roleColumn(), {"PHASE", "phase"},
		{"CREATED", "createdAt"}, {"CREATED BY", "createdBy"}, {"END", "expiresAt", wide},
		descriptionColumn(), {"MANAGER", "manager", wide}, {"REQUESTS", "requests", wide},
		{"BILLING", "billing", wide}, {"OBJECTS", "objects", wide}, {"BYTES", "bytes", wide},
		{"CRDS", "customResourceDefinitions", wide}, {"APIBINDINGS", "apiBindings", wide}, {"ROLES", "roles", wide},
		{"CLUSTER", "clusterID", wide}, {"URL", "url", wide}, {"PATH", "workspacePath", wide}}
)

// orgAdmins is what people must know who make a workspace.
const orgAdmins = "The admins of the organization are admins in every workspace of it."

// tenants are what the client has of organizations or workspaces. C is the body that creates one, and U that
// which changes one.
type tenants[T object, C, U any] = client.Objects[T, C, U]

// kind is one of the two kinds of tenants: organizations and workspaces.
type kind[T object, C, U any] struct {
	resource[T, tenants[T, C, U]]
	naming
	// inOrg is true for workspaces, which belong to the organization org, or to the chosen one
	// if org is empty.
	inOrg bool
	org   string
	// in returns the tenants; for workspaces, those of an organization.
	in func(s *session, org string) tenants[T, C, U]
	// one returns the requests about one tenant.
	one     func(s *session, t target) tenantOf[T]
	created func(name string) (C, error)
	renamed func(name string) U
	// described is the change of the description.
	described func(text rest.Field[string]) U
}

// with fills in what both kinds have alike.
func (k *kind[T, C, U]) with(a *app, columns table) *kind[T, C, U] {
	k.app, k.columns, k.candidates = a, columns, byDisplayName[T]
	k.open = func(cmd *cobra.Command, _ []string) (*session, tenants[T, C, U], error) {
		s, all, _, err := k.all(cmd.Context())
		return s, all, err
	}
	k.name = func(ctx context.Context, all tenants[T, C, U], arg string) (string, error) {
		t, err := find(k.naming, all.List(ctx), arg)
		return t.UUID, err
	}
	k.chosen = func(ctx context.Context, s *session) (string, error) {
		chosen := s.login.Org
		if k.inOrg {
			// An error is that there is none.
			t, _ := s.workspace(ctx, k.org, "")
			chosen = t.Workspace
		}
		if chosen == "" {
			return "", fmt.Errorf("no %s is chosen; name one, as shown by: %s", k.noun, k.run("list"))
		}
		return chosen, nil
	}
	k.advise = func(err error) error { return ofArgument(err, "displayName", "NEW-NAME") }
	return k
}

// all opens the session and returns the tenants and, for workspaces, the organization.
func (k *kind[T, C, U]) all(ctx context.Context) (s *session, all tenants[T, C, U], org string, err error) {
	if s, err = k.session(ctx); err != nil {
		return nil, all, "", err
	}
	if k.inOrg {
		if org, err = s.organization(ctx, k.org); err != nil {
			return nil, all, "", err
		}
	}
	return s, k.in(s, org), org, nil
}

// at is the target of a tenant.
func (k *kind[T, C, U]) at(org, uuid string) target {
	if k.inOrg {
		return target{org, uuid}
	}
	return target{Org: uuid}
}

// run returns a command for messages.
func (k *kind[T, C, U]) run(subcommand string) string { return k.command + " " + subcommand }

func (k *kind[T, C, U]) listCommand(short string) *cobra.Command {
	var deleted bool
	cmd := &cobra.Command{
		Use: "list", Short: short,
		Example: "  " + k.run("list") + "\n  " + k.run("list --deleted") + "\n  " + k.run("list -o json"),
	}
	k.listing(cmd)
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !deleted {
			return list(cmd, args)
		}
		s, _, org, err := k.all(cmd.Context())
		if err != nil {
			return err
		}
		items, err := k.deleted(cmd.Context(), s, org)
		if err != nil {
			return err
		}
		return k.printValue(k.output, map[string]any{"items": items}, deletedColumns)
	}
	cmd.Flags().BoolVar(&deleted, "deleted", false, "list deleted ones that can be brought back instead")
	return cmd
}

func (k *kind[T, C, U]) createCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a new " + k.noun + " and choose it", Args: oneArg("the new " + k.noun + "'s name"),
		Long:    "Create a new " + k.noun + " and choose it for the commands that follow.",
		Example: "  " + k.run(fmt.Sprintf("create %q", "My "+k.noun)),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := k.created(args[0])
			if err != nil {
				return err
			}
			s, all, org, err := k.all(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(k.Err, "Creating %s %q ...\n", k.noun, args[0])
			o, err := all.Create(cmd.Context(), body, client.Waiting(k.beingMade(k.noun)))
			if err != nil {
				return ofArgument(err, "displayName", "NAME")
			}
			made := as[tenant](*o)
			if made.UUID == "" {
				return errNoHub
			}
			if err := s.choose(cmd.Context(), k.at(org, made.UUID)); err != nil {
				return err
			}
			if k.inOrg {
				fmt.Fprintln(k.Err, orgAdmins)
			}
			return k.show(*o, k.columns)
		},
	}
	if k.inOrg {
		cmd.Long += "\n" + orgAdmins
	}
	k.output.flag(cmd)
	return cmd
}

// beingMade tells people that an object with a UUID is not ready yet, and has the client wait for it.
func (a *app) beingMade(noun string) func(*client.Response) bool {
	return func(answer *client.Response) bool {
		var made tenant
		if json.Unmarshal(answer.Body, &made) != nil || made.UUID == "" {
			return false
		}
		fmt.Fprintf(a.Err, "%s %s is still being made; Ctrl-C stops waiting, not the making ...\n", noun, made.UUID)
		return true
	}
}

func (k *kind[T, C, U]) useCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "use UUID|NAME", Short: "Choose the " + k.noun + " that other commands work in",
		Args: oneArg("the UUID or the name of the " + k.noun), ValidArgsFunction: k.complete,
		Example: "  " + k.run(fmt.Sprintf("use %q", "My "+k.noun)),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, all, org, err := k.all(cmd.Context())
			if err != nil {
				return err
			}
			// A person can work in an organization in which they are a member of workspaces only.
			items, err := s.organizations(cmd.Context())
			if k.inOrg {
				items, err = tenantsOf(all.List(cmd.Context()))
			}
			if err != nil {
				return err
			}
			chosen, err := k.among(items, args[0], "list")
			if err != nil {
				return err
			}
			if err := s.choose(cmd.Context(), k.at(org, chosen.UUID)); err != nil {
				return err
			}
			return k.tell(k.output, fmt.Sprintf("Working in %s %s (%s).", k.noun, chosen.DisplayName, chosen.UUID), chosen)
		},
	}
	k.output.flag(cmd)
	return cmd
}

// oneAtMost accepts at most one argument.
func (k *kind[T, C, U]) oneAtMost(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s takes the UUID or the name of one %s at most; %w", cmd.CommandPath(), k.noun, errUsage)
	}
	return nil
}

func (k *kind[T, C, U]) getCommand() *cobra.Command {
	return k.getting(&cobra.Command{
		Use: "get [UUID|NAME]", Short: "Show one " + k.noun + ", the chosen one unless another is named", Args: k.oneAtMost,
		Example: "  " + k.run("get") + "\n  " + k.run(fmt.Sprintf("get %q -o wide", "My "+k.noun)),
	})
}

func (k *kind[T, C, U]) renameCommand() *cobra.Command {
	return k.about(&cobra.Command{
		Use: "rename UUID|NAME NEW-NAME", Short: "Give one of your " + k.noun + "s another name",
		Long:    "Give one of your " + k.noun + "s another name. Its UUID, and what refers to it, stay as they are.",
		Example: "  " + k.run(fmt.Sprintf("rename %q %q", "My "+k.noun, "Our "+k.noun)),
		Args:    twoArgs("the UUID or the name of the " + k.noun + ", and its new name"),
	}, k.columns, func(ctx context.Context, _ *session, all tenants[T, C, U], uuid string, args []string) (object, error) {
		o, err := all.Update(ctx, uuid, k.renamed(args[1]))
		return *orNone(o), err
	})
}

// descriptionColumn is the column of what a tenant is for, which wide tables have.
func descriptionColumn() [3]string { return [3]string{"DESCRIPTION", "description", wide} }

// roleColumn is the column of the role of the caller. A manager can be without a role.
func roleColumn() [3]string { return [3]string{"ROLE", "role"} }

// description is the flag --description of the creation of a tenant.
type description string

func (d *description) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(d), "description", "", "what it is for, in at most 1024 characters")
}

// field is what the flag says, or nil if it says nothing.
func (d *description) field() rest.Field[string] {
	if *d == "" {
		return nil
	}
	return rest.Set(string(*d))
}

func (k *kind[T, C, U]) describeCommand() *cobra.Command {
	return k.about(&cobra.Command{
		Use: "set-description UUID|NAME TEXT", Short: "Say what one of your " + k.noun + "s is for",
		Long:    "Say what one of your " + k.noun + "s is for, in at most 1024 characters. An empty TEXT takes the description away.",
		Example: "  " + k.run(fmt.Sprintf("set-description %q %q", "My "+k.noun, "The shop of the north")),
		Args:    twoArgs("the UUID or the name of the " + k.noun + ", and a text"),
	}, k.columns.all(), func(ctx context.Context, _ *session, all tenants[T, C, U], uuid string, args []string) (object, error) {
		o, err := all.Update(ctx, uuid, k.described(rest.Set(args[1])))
		return *orNone(o), ofArgument(err, "description", "TEXT")
	})
}

func (k *kind[T, C, U]) leaveCommand(long, example string) *cobra.Command {
	var cascade bool
	cmd := &cobra.Command{
		Use: "leave [UUID|NAME]", Short: "End your own membership", Long: long, Example: example, ValidArgsFunction: k.complete,
		Args: k.oneAtMost,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, all, org, err := k.all(cmd.Context())
			if err != nil {
				return err
			}
			var uuid, called string
			if len(args) == 0 {
				uuid, err = k.chosen(cmd.Context(), s)
				called = uuid
			} else {
				var named tenant
				named, err = find(k.naming, all.List(cmd.Context()), args[0])
				uuid, called = named.UUID, fmt.Sprintf("%s (%s)", named.DisplayName, named.UUID)
			}
			if err != nil {
				return err
			}
			t := k.at(org, uuid)
			receipt, err := k.one(s, t).Leave(cmd.Context(), cascading(cascade)...)
			if err != nil {
				return explained(err, "you are", t.Org)
			}
			left, text := endedIn(t, receipt), "Left %s %s."
			if receipt.Code == http.StatusAccepted {
				text = "Leaving %s %s; the hub is still carrying it out."
			}
			if err := k.tell(k.output, fmt.Sprintf(text, k.noun, called), left); err != nil {
				return err
			}
			k.receipt(receipt)
			return s.forget(cmd.Context(), t)
		},
	}
	k.output.flag(cmd)
	if !k.inOrg {
		cascadeFlag(cmd, &cascade, "also leave the organization's workspaces that you are a member of")
	}
	return cmd
}
