package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

var (
	// deletedColumns are the columns of a list, deletionColumns those of the answer to a
	// deletion.
	deletedColumns  = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"ROLE", "role"}, {"DELETED", "deletionRequestedAt"}, {"PURGE AT", "purgeAt"}}
	deletionColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"DELETED", "deletionRequestedAt"}, {"PURGE AT", "purgeAt"}}
)

func (k *kind[T, C, U]) deleteCommand(long string) *cobra.Command {
	c := &consent{app: k.app}
	cmd := &cobra.Command{
		Use: "delete UUID|NAME", Short: "Delete one of your " + k.noun + "s; it can be brought back for a time", Long: long,
		Args: oneArg("the UUID or the name of the " + k.noun), ValidArgsFunction: k.complete,
		Example: "  " + k.run(fmt.Sprintf("delete %q", "My "+k.noun)) + "\n  " + k.run("delete --yes 231a151a-434e-4623-ad6e-69406abb9387"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, all, org, err := k.all(cmd.Context())
			if err != nil {
				return err
			}
			t, err := find(k.naming, all.List(cmd.Context()), args[0])
			if err != nil {
				return k.deletedBefore(cmd.Context(), s, org, args[0], err)
			}
			text := fmt.Sprintf("Delete %s %s? Nobody can use it then. It can be brought back until the\n"+
				"hub purges what was deleted, after 30 days where its operator has not chosen otherwise.", k.noun, t)
			if err := c.typed(cmd.Context(), text, "Type its name or its UUID to go on", t.DisplayName, t.UUID); err != nil {
				return err
			}
			gone, err := all.Delete(cmd.Context(), t.UUID)
			if err != nil {
				return err
			}
			at := k.at(org, t.UUID)
			fmt.Fprintf(k.Err, "Deleted %s %s. %s\n", k.noun, t, untilPurge(as[tenant](*gone).PurgeAt, k.undeleteOf(at)))
			if err := k.show(*gone, deletionColumns); err != nil {
				return err
			}
			return s.forget(cmd.Context(), at)
		},
	}
	k.output.flag(cmd)
	return c.first(cmd)
}

// deletedBefore turns a NotFound error into success if the object is deleted already, usually by
// an earlier attempt of the same command.
func (k *kind[T, C, U]) deletedBefore(ctx context.Context, s *session, org, arg string, notFound error) error {
	var none *noneError
	if !errors.As(notFound, &none) {
		return notFound
	}
	items, err := k.deleted(ctx, s, org)
	if err != nil {
		return notFound
	}
	t, err := k.among(items, arg, "list --deleted")
	if err != nil {
		return notFound
	}
	fmt.Fprintf(k.Err, "The %s %s is deleted already. %s\n", k.noun, t, untilPurge(t.PurgeAt, k.undeleteOf(k.at(org, t.UUID))))
	return k.printValue(k.output, t, deletionColumns)
}

func (k *kind[T, C, U]) undeleteCommand(long string) *cobra.Command {
	c := &consent{app: k.app}
	cmd := &cobra.Command{
		Use: "undelete UUID|NAME", Short: "Bring back a deleted " + k.noun, Long: long,
		Args: oneArg("the UUID or the name of the deleted " + k.noun), ValidArgsFunction: k.completeDeleted,
		Example: "  " + k.run("list --deleted") + "\n  " + k.run(fmt.Sprintf("undelete %q", "My "+k.noun)) + "\n  " + k.run("undelete --yes 231a151a-434e-4623-ad6e-69406abb9387"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, all, org, err := k.all(cmd.Context())
			if err != nil {
				return err
			}
			t, live, err := k.findDeleted(cmd.Context(), s, all, org, args[0])
			if err != nil {
				return err
			}
			if live {
				fmt.Fprintf(k.Err, "The %s %s is not deleted.\n", k.noun, t)
				return k.printValue(k.output, t, k.columns)
			}
			if err := c.agreed(cmd.Context(), fmt.Sprintf("Bring back %s %s? Its members can use it again then.", k.noun, t)); err != nil {
				return err
			}
			back, err := k.one(s, k.at(org, t.UUID)).Undelete(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(k.Err, "The %s %s is back.\n", k.noun, t)
			return k.show(*back, k.columns)
		},
	}
	k.output.flag(cmd)
	return c.first(cmd)
}

// completeDeleted offers what the caller can undelete.
func (k *kind[T, C, U]) completeDeleted(
	cmd *cobra.Command, args []string, _ string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	return k.offer(cmd, func(ctx context.Context) ([]cobra.Completion, error) {
		if len(args) > 0 {
			return nil, nil
		}
		s, _, org, err := k.all(ctx)
		if err != nil {
			return nil, err
		}
		items, err := k.deleted(ctx, s, org)
		return completionsOf(slices.DeleteFunc(items, func(t tenant) bool { return t.Role != string(rest.RoleAdmin) })), err
	})
}

// findDeleted finds the object of an undelete. live is true if it is not deleted. A UUID that is
// in no list is accepted: a hub of the version before lists no workspace to an admin of the organization
// who is not a member of it, and lets them undelete it.
func (k *kind[T, C, U]) findDeleted(ctx context.Context, s *session, all tenants[T, C, U], org, arg string) (t tenant, live bool, err error) {
	items, err := k.deleted(ctx, s, org)
	if err != nil {
		return t, false, err
	}
	var none *noneError
	if t, err = k.among(items, arg, "list --deleted"); !errors.As(err, &none) {
		return t, false, err
	}
	found, findErr := find(k.naming, all.List(ctx), arg)
	switch {
	case findErr == nil:
		return found, true, nil
	case !errors.As(findErr, &none):
		return t, false, findErr
	case isUUID(arg):
		return tenant{UUID: arg}, false, nil
	}
	none.text = fmt.Sprintf("there is no deleted %s with the name %q; to see what there is, run: %s",
		k.noun, arg, k.run("list --deleted"))
	return t, false, none
}

// deleted returns the soft-deleted tenants of this kind that the caller is a member of; org is the organization of workspaces.
// Its admins also get the workspaces that they are not a member of, and admin is their role in each.
func (k *kind[T, C, U]) deleted(ctx context.Context, s *session, org string) ([]tenant, error) {
	items := []tenant{}
	for e, err := range s.api.Memberships(ctx, true) {
		if err != nil {
			return nil, err
		}
		ofOrg := e.WorkspaceUUID == ""
		t := tenant{
			UUID: e.WorkspaceUUID, DisplayName: e.WorkspaceDisplayName, Role: string(e.Role),
			DeletionRequestedAt: when(e.SoftDeletedAt), PurgeAt: when(e.PurgeAt),
		}
		if ofOrg {
			t.UUID, t.DisplayName = e.OrgUUID, e.OrgDisplayName
		}
		switch {
		case e.SoftDeletedAt == nil, k.inOrg && e.OrgUUID != org:
		case ofOrg && k.inOrg:
			// Its workspaces count as deleted too, but cannot be undeleted alone.
			return nil, fmt.Errorf("organization %q is deleted; first run: kedge orgs undelete %s", e.OrgDisplayName, e.OrgUUID)
		case ofOrg != k.inOrg:
			items = append(items, t)
		}
	}
	if !k.inOrg {
		return items, nil
	}
	listed, err := tenantsOf(s.api.Org(org).DeletedWorkspaces(ctx))
	if err != nil {
		return nil, err
	}
	items = slices.DeleteFunc(items, func(t tenant) bool {
		return slices.ContainsFunc(listed, func(l tenant) bool { return l.UUID == t.UUID })
	})
	return append(items, listed...), nil
}

// when is a time as the hub writes it.
func when(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// undeleteOf returns the command that undeletes a target, independent of the chosen organization.
func (k *kind[T, C, U]) undeleteOf(at target) string {
	if at.Workspace == "" {
		return k.run("undelete " + at.Org)
	}
	return k.run("undelete " + at.Workspace + " --org " + at.Org)
}

// untilPurge tells the user how, and until when, a deleted object can be undeleted.
func untilPurge(at, command string) string {
	if at == "" {
		return "It can be brought back with: " + command
	}
	return "Until " + at + " it can be brought back with: " + command
}
