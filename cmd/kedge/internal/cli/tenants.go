package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/faroshq/kedge-hub/pkg/client"
)

var (
	orgColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"ROLE", "role"}, {"PHASE", "phase"}, {"CREATED", "createdAt"}, {"FIRST ADMIN", "firstAdmin"},
		{"PERSONAL", "personal", wide}, {"WORKSPACES", "workspaceQuota", wide}, {"DEFAULT ACCESS", "defaultAccess", wide}, {"PATH", "workspacePath", wide}}
	workspaceColumns = table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}, {"ROLE", "role"}, {"PHASE", "phase"}, {"CREATED", "createdAt"}, {"CREATED BY", "createdBy"},
		{"CLUSTER", "clusterID", wide}, {"URL", "url", wide}, {"PATH", "workspacePath", wide}}
)

// orgAdmins is what people must know who make a workspace.
const orgAdmins = "The admins of the organization are admins in every workspace of it."

// pollEvery is the interval at which an object in creation is polled.
const pollEvery = 500 * time.Millisecond

// kind is one of the two kinds of tenants: organizations and workspaces.
type kind struct {
	*app
	naming
	columns table
	// inOrg is true for workspaces, which belong to the organization org, or to the chosen one
	// if org is empty.
	inOrg  bool
	org    string
	output format
}

// all opens the session and returns the target of the list.
func (k *kind) all(ctx context.Context) (*session, client.Request, error) {
	s, err := k.session(ctx)
	if err != nil || !k.inOrg {
		return s, client.Request{Path: "/api/orgs"}, err
	}
	org, err := s.organization(ctx, k.org)
	if err != nil {
		return nil, client.Request{}, err
	}
	return s, workspacesOf(org), nil
}

// run returns a command for messages.
func (k *kind) run(subcommand string) string { return k.command + " " + subcommand }

func (k *kind) runList(cmd *cobra.Command, _ []string) error {
	s, r, err := k.all(cmd.Context())
	if err != nil {
		return err
	}
	raw, err := listAll(cmd.Context(), s, r)
	if err != nil {
		return err
	}
	return k.print(k.output, raw, k.columns)
}

func (k *kind) listCommand(short string) *cobra.Command {
	var deleted bool
	cmd := &cobra.Command{
		Use: "list", Short: short, Args: noArgs,
		Example: "  " + k.run("list") + "\n  " + k.run("list --deleted") + "\n  " + k.run("list -o json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !deleted {
				return k.runList(cmd, args)
			}
			s, r, err := k.all(cmd.Context())
			if err != nil {
				return err
			}
			items, err := k.deleted(cmd.Context(), s, r)
			if err != nil {
				return err
			}
			raw, err := json.Marshal(map[string]any{"items": items})
			if err != nil {
				return err
			}
			return k.print(k.output, raw, deletedColumns)
		},
	}
	cmd.Flags().BoolVar(&deleted, "deleted", false, "list your deleted ones that can be brought back instead")
	k.output.flag(cmd)
	return cmd
}

func (k *kind) createCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a new " + k.noun + " and choose it", Args: oneArg("the new " + k.noun + "'s name"),
		Long:    "Create a new " + k.noun + " and choose it for the commands that follow.",
		Example: "  " + k.run(fmt.Sprintf("create %q", "My "+k.noun)),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, r, err := k.all(cmd.Context())
			if err != nil {
				return err
			}
			raw, made, err := k.create(cmd.Context(), s, r, args[0])
			if err != nil {
				return err
			}
			if err := s.choose(cmd.Context(), one(r, made.UUID)); err != nil {
				return err
			}
			if k.inOrg {
				fmt.Fprintln(k.Err, orgAdmins)
			}
			return k.print(k.output, raw, k.columns)
		},
	}
	if k.inOrg {
		cmd.Long += "\n" + orgAdmins
	}
	k.output.flag(cmd)
	return cmd
}

func (k *kind) useCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "use UUID|NAME", Short: "Choose the " + k.noun + " that other commands work in",
		Args: oneArg("the UUID or the name of the " + k.noun), ValidArgsFunction: k.complete,
		Example: "  " + k.run(fmt.Sprintf("use %q", "My "+k.noun)),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, r, err := k.all(cmd.Context())
			if err != nil {
				return err
			}
			chosen, err := k.reachable(cmd.Context(), s, r, args[0])
			if err != nil {
				return err
			}
			if err := s.choose(cmd.Context(), one(r, chosen.UUID)); err != nil {
				return err
			}
			return k.tell(k.output, fmt.Sprintf("Working in %s %s (%s).", k.noun, chosen.DisplayName, chosen.UUID), chosen)
		},
	}
	k.output.flag(cmd)
	return cmd
}

// reachable finds a tenant that the person can work in: also an organization in which they are a
// member of workspaces only.
func (k *kind) reachable(ctx context.Context, s *session, r client.Request, arg string) (tenant, error) {
	if k.inOrg {
		return s.find(ctx, k.naming, r, arg)
	}
	orgs, err := s.organizations(ctx)
	if err != nil {
		return tenant{}, err
	}
	return k.among(orgs, arg, "list")
}

// create creates a tenant and waits until it is ready.
func (k *kind) create(ctx context.Context, s *session, r client.Request, name string) ([]byte, tenant, error) {
	var made tenant
	r.Method, r.Body = http.MethodPost, map[string]string{"displayName": name}
	fmt.Fprintf(k.Err, "Creating %s %q ...\n", k.noun, name)
	code, raw, err := s.send(ctx, r)
	if err != nil {
		return nil, made, ofArgument(err, "displayName", "NAME")
	}
	if err := json.Unmarshal(raw, &made); err != nil || made.UUID == "" {
		return nil, made, errNoHub
	}
	poll := one(r, made.UUID)
	poll.Method, poll.Body = http.MethodGet, nil
	for code == http.StatusAccepted && made.Phase != "Ready" {
		fmt.Fprintf(k.Err, "%s %s is still being made; Ctrl-C stops waiting, not the making ...\n", k.noun, made.UUID)
		select {
		case <-ctx.Done():
			return nil, made, ctx.Err()
		case <-time.After(pollEvery):
		}
		_, answer, err := s.send(ctx, poll)
		var status *client.Error
		if errors.As(err, &status) && status.Code() == http.StatusForbidden {
			// The creator's membership may not exist yet.
			continue
		}
		if err != nil {
			return nil, made, err
		}
		raw = answer
		if err := json.Unmarshal(raw, &made); err != nil {
			return nil, made, err
		}
	}
	return raw, made, nil
}

// listAll reads every page of a list.
func listAll(ctx context.Context, s *session, r client.Request) ([]byte, error) {
	items, err := client.Collect(client.List[json.RawMessage](ctx, s, r))
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"items": items})
}
