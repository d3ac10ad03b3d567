package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/client"
)

var (
	// deletedColumns are the columns of a list, deletionColumns those of the answer to a
	// deletion.
	deletedColumns  = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"ROLE", "role"}, {"DELETED", "deletionRequestedAt"}, {"PURGE AT", "purgeAt"}}
	deletionColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"DELETED", "deletionRequestedAt"}, {"PURGE AT", "purgeAt"}}
)

func (k *kind) deleteCommand(long string) *cobra.Command {
	c := consent{app: k.app}
	cmd := &cobra.Command{
		Use: "delete UUID|NAME", Short: "Delete one of your " + k.noun + "s; it can be brought back for a time", Long: long,
		Args: oneArg("the UUID or the name of the " + k.noun), ValidArgsFunction: k.complete,
		Example: "  " + k.run(fmt.Sprintf("delete %q", "My "+k.noun)) + "\n  " + k.run("delete --yes 231a151a-434e-4623-ad6e-69406abb9387"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.possible(); err != nil {
				return err
			}
			s, r, err := k.all(cmd.Context())
			if err != nil {
				return err
			}
			t, err := s.find(cmd.Context(), k.naming, r, args[0])
			if err != nil {
				return k.deletedBefore(cmd.Context(), s, r, args[0], err)
			}
			text := fmt.Sprintf("Delete %s %s? Nobody can use it then. It can be brought back until the\n"+
				"hub purges what was deleted, after 30 days where its operator has not chosen otherwise.", k.noun, t)
			if err := c.typed(cmd.Context(), text, "Type its name or its UUID to go on", t.DisplayName, t.UUID); err != nil {
				return err
			}
			target := one(r, t.UUID)
			target.Method = http.MethodDelete
			_, raw, err := s.send(cmd.Context(), target)
			if err != nil {
				return err
			}
			fmt.Fprintf(k.Err, "Deleted %s %s. %s\n", k.noun, t, untilPurge(purgeAtOf(raw), k.undeleteOf(target)))
			if err := k.printAnswer(k.output, raw, deletionColumns); err != nil {
				return err
			}
			return s.forget(cmd.Context(), target)
		},
	}
	c.flag(cmd)
	k.output.flag(cmd)
	return cmd
}

// deletedBefore turns a NotFound error into success if the object is deleted already, usually by
// an earlier attempt of the same command.
func (k *kind) deletedBefore(ctx context.Context, s *session, r client.Request, arg string, notFound error) error {
	var none *noneError
	if !errors.As(notFound, &none) {
		return notFound
	}
	items, err := k.deleted(ctx, s, r)
	if err != nil {
		return notFound
	}
	t, err := k.among(items, arg, "list --deleted")
	if err != nil {
		return notFound
	}
	fmt.Fprintf(k.Err, "The %s %s is deleted already. %s\n", k.noun, t, untilPurge(t.PurgeAt, k.undeleteOf(one(r, t.UUID))))
	return k.printTenant(t, deletionColumns)
}

func (k *kind) undeleteCommand(long string) *cobra.Command {
	c := consent{app: k.app}
	cmd := &cobra.Command{
		Use: "undelete UUID|NAME", Short: "Bring back a deleted " + k.noun, Long: long,
		Args:    oneArg("the UUID or the name of the deleted " + k.noun),
		Example: "  " + k.run("list --deleted") + "\n  " + k.run(fmt.Sprintf("undelete %q", "My "+k.noun)) + "\n  " + k.run("undelete --yes 231a151a-434e-4623-ad6e-69406abb9387"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.possible(); err != nil {
				return err
			}
			s, r, err := k.all(cmd.Context())
			if err != nil {
				return err
			}
			t, live, err := k.findDeleted(cmd.Context(), s, r, args[0])
			if err != nil {
				return err
			}
			if live {
				fmt.Fprintf(k.Err, "The %s %s is not deleted.\n", k.noun, t)
				return k.printTenant(t, k.columns)
			}
			if err := c.agreed(cmd.Context(), fmt.Sprintf("Bring back %s %s? Its members can use it again then.", k.noun, t)); err != nil {
				return err
			}
			target := one(r, t.UUID)
			target.Method, target.Path = http.MethodPost, target.Path+"/undelete"
			_, raw, err := s.send(cmd.Context(), target)
			if err != nil {
				return err
			}
			fmt.Fprintf(k.Err, "The %s %s is back.\n", k.noun, t)
			return k.printAnswer(k.output, raw, k.columns)
		},
	}
	c.flag(cmd)
	k.output.flag(cmd)
	return cmd
}

// findDeleted finds the object of an undelete. live is true if it is not deleted. A UUID that is
// in no list is accepted: an admin of the organization can undelete a workspace that they are not
// a member of.
func (k *kind) findDeleted(ctx context.Context, s *session, r client.Request, arg string) (t tenant, live bool, err error) {
	items, err := k.deleted(ctx, s, r)
	if err != nil {
		return t, false, err
	}
	var none *noneError
	if t, err = k.among(items, arg, "list --deleted"); !errors.As(err, &none) {
		return t, false, err
	}
	found, findErr := s.find(ctx, k.naming, r, arg)
	switch {
	case findErr == nil:
		return found, true, nil
	case !errors.As(findErr, &none):
		return t, false, findErr
	case isUUID(arg):
		return tenant{UUID: arg}, false, nil
	}
	none.text = fmt.Sprintf("there is no deleted %s with the name %q that you are a member of; to see what there is, run: %s", k.noun, arg, k.run("list --deleted"))
	return t, false, none
}

// deleted returns the caller's soft-deleted tenants of this kind.
func (k *kind) deleted(ctx context.Context, s *session, r client.Request) ([]tenant, error) {
	_, raw, err := s.send(ctx, client.Request{Method: http.MethodGet, Path: "/api/users/me/memberships", Query: url.Values{"deleted": {"true"}}})
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			OrgUUID              string `json:"orgUUID"`
			OrgDisplayName       string `json:"orgDisplayName"`
			WorkspaceUUID        string `json:"workspaceUUID"`
			WorkspaceDisplayName string `json:"workspaceDisplayName"`
			Role                 string `json:"role"`
			SoftDeletedAt        string `json:"softDeletedAt"`
			PurgeAt              string `json:"purgeAt"`
		} `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	items := []tenant{}
	for _, e := range list.Items {
		ofOrg := e.WorkspaceUUID == ""
		switch {
		case e.SoftDeletedAt == "", k.inOrg && e.OrgUUID != r.Org:
		case ofOrg && k.inOrg:
			// Its workspaces count as deleted too, but cannot be undeleted alone.
			return nil, fmt.Errorf("organization %q is deleted; first run: kedge orgs undelete %s", e.OrgDisplayName, e.OrgUUID)
		case ofOrg:
			items = append(items, tenant{UUID: e.OrgUUID, DisplayName: e.OrgDisplayName, Role: e.Role, DeletionRequestedAt: e.SoftDeletedAt, PurgeAt: e.PurgeAt})
		case k.inOrg:
			items = append(items, tenant{UUID: e.WorkspaceUUID, DisplayName: e.WorkspaceDisplayName, Role: e.Role, DeletionRequestedAt: e.SoftDeletedAt, PurgeAt: e.PurgeAt})
		}
	}
	return items, nil
}

// undeleteOf returns the command that undeletes a target, independent of the chosen organization.
func (k *kind) undeleteOf(target client.Request) string {
	if target.Workspace == "" {
		return k.run("undelete " + target.Org)
	}
	return k.run("undelete " + target.Workspace + " --org " + target.Org)
}

// purgeAtOf is the time at which the hub purges the object of an answer, or empty.
func purgeAtOf(raw []byte) string {
	var answer struct {
		PurgeAt string `json:"purgeAt"`
	}
	if json.Unmarshal(raw, &answer) != nil {
		return ""
	}
	return answer.PurgeAt
}

// untilPurge tells the user how, and until when, a deleted object can be undeleted.
func untilPurge(at, command string) string {
	if at == "" {
		return "It can be brought back with: " + command
	}
	return "Until " + at + " it can be brought back with: " + command
}

func (k *kind) printTenant(t tenant, columns table) error {
	raw, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return k.print(k.output, raw, columns)
}
