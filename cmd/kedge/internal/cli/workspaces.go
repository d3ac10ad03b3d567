package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

func (a *app) workspacesCommand() *cobra.Command {
	ttl := life(0)
	var billed billing
	var described description
	k := (&kind[rest.Workspace, rest.CreateWorkspaceRequest, rest.UpdateWorkspaceRequest]{
		naming: workspaces(), inOrg: true,
		created: func(name string) (in rest.CreateWorkspaceRequest, err error) {
			in.DisplayName, in.Description = name, described.field()
			if ttl > 0 {
				in.ExpiresAt = rest.Set(time.Now().Add(time.Duration(ttl)).UTC().Format(time.RFC3339))
			}
			in.Billing, err = billed.patch()
			return in, err
		},
		in:  func(s *session, org string) client.Workspaces { return s.api.Org(org).Workspaces() },
		one: func(s *session, t target) tenantOf[rest.Workspace] { return s.in(t) },
		described: func(text rest.Field[string]) rest.UpdateWorkspaceRequest {
			return rest.UpdateWorkspaceRequest{Description: text}
		},
		renamed: func(name string) rest.UpdateWorkspaceRequest {
			return rest.UpdateWorkspaceRequest{DisplayName: rest.Set(name)}
		},
	}).with(a, workspaceColumns)
	k.warn = func(w rest.Workspace) {
		if w.ExpiresAt != nil && time.Until(w.ExpiresAt.Time) < soonWithin {
			fmt.Fprintf(a.Err, "Warning: the workspace %s %s and is deleted then; to give it more time, run: kedge workspaces set-expiry %s WHEN\n",
				printable(w.DisplayName), endIn(when(w.ExpiresAt), time.Now()), w.UUID)
		}
	}
	cmd := &cobra.Command{
		Use: "workspaces", Aliases: []string{"workspace", "ws"},
		Short: "List, create, rename, leave and delete workspaces, manage their members, and choose the one to work in",
		Long:  "Work with the workspaces of an organization. " + orgAdmins,
		Example: `  kedge workspaces
  kedge workspaces create "My workspace"
  kedge workspaces use "My workspace"
  kedge workspaces members add bob`,
	}
	create := k.createCommand()
	create.Flags().Var(&ttl, "ttl", "time after which the workspace is deleted by itself, such as 8h or 30d (default: never)")
	billed.flags(create)
	described.flag(create)
	create.Example += "\n  kedge workspaces create --ttl 8h \"Preview of 4711\"\n  kedge workspaces create --cost-center 4711 \"Shop\""
	a.orgFlag(cmd, &k.org)
	k.listing(cmd)
	cmd.AddCommand(
		k.listCommand("List the workspaces that you can enter"),
		k.getCommand(), create, k.useCommand(), k.renameCommand(), k.describeCommand(),
		setWorkspaceEndCommand(k), setWorkspaceRequestsCommand(k), setWorkspaceBillingCommand(k),
		k.leaveCommand("Leave a workspace, the chosen one unless another is named.", `  kedge workspaces leave
  kedge workspaces leave "My workspace"`),
		k.deleteCommand(`Delete a workspace with all its contents. Nobody can use it from then on.
Until the time that is printed, kedge workspaces undelete brings it back.`),
		k.undeleteCommand(`Bring back a workspace that was deleted, with all that was in it. Name it by its
UUID or, while that is unique, by its name; kedge workspaces list --deleted shows
those that you are a member of and, to an admin of the organization, all others.`),
		a.workspaceMembersCommand(&k.org),
	)
	return cmd
}

// setWorkspaceEndCommand is kedge workspaces set-expiry.
func setWorkspaceEndCommand(k *kind[rest.Workspace, rest.CreateWorkspaceRequest, rest.UpdateWorkspaceRequest]) *cobra.Command {
	return k.about(&cobra.Command{
		Use: "set-expiry UUID|NAME WHEN", Short: "Have a workspace end by time, or not any more",
		Long: `Set the end of a workspace: a time, a duration from now that is at least a minute, or never.
At its end the workspace is deleted by itself. For a short time an undelete brings it back.`,
		Example: "  kedge workspaces set-expiry \"My workspace\" 8h\n  kedge workspaces set-expiry \"My workspace\" never",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s needs the UUID or the name of the workspace and when it ends; %w", cmd.CommandPath(), errUsage)
			}
			if _, err := parseEnd(args[1], time.Now()); err != nil {
				return fmt.Errorf("invalid end %q: %w; %w", args[1], err, errUsage)
			}
			return nil
		},
	}, k.columns.all(), func(ctx context.Context, _ *session, all client.Workspaces, uuid string, args []string) (object, error) {
		end, err := parseEnd(args[1], time.Now())
		if err != nil {
			return nil, err
		}
		o, err := all.Update(ctx, uuid, rest.UpdateWorkspaceRequest{ExpiresAt: end})
		return *orNone(o), err
	})
}

// setWorkspaceRequestsCommand is kedge workspaces set-requests.
func setWorkspaceRequestsCommand(k *kind[rest.Workspace, rest.CreateWorkspaceRequest, rest.UpdateWorkspaceRequest]) *cobra.Command {
	return k.about(&cobra.Command{
		Use: "set-requests UUID|NAME none|members", Short: "Say who may ask for rights in a workspace",
		Long: `Let members of the organization who are not in a workspace ask for rights in it (members),
or only those who are in it (none).`,
		Example: "  kedge workspaces set-requests \"My workspace\" members",
		Args: needs("the UUID or the name of the workspace, and none or members", func(args []string) bool {
			return len(args) == 2 && (args[1] == "none" || args[1] == "members")
		}),
	}, k.columns.all(), func(ctx context.Context, _ *session, all client.Workspaces, uuid string, args []string) (object, error) {
		o, err := all.Update(ctx, uuid, rest.UpdateWorkspaceRequest{Requests: rest.Set(args[1])})
		return *orNone(o), err
	})
}
