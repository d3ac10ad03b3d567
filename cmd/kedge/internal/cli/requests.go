package cli

import (
	"context"
	"fmt"
	"iter"
	"net/http"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var requestColumns = table{{"ID", "id"}, {"STATE", "state"}, {"USER", "user"}, {"WORKSPACE", "workspace"}, {"KIND", "kind"}, {"FOR", "for"},
	{"REASON", "reason"}, {"DECIDED BY", "decidedBy"}, {"ENDS", "endsAt"}, {"CREATED", "createdAt", wide}, {"NOTE", "note", wide}}

// requestsCommand is kedge requests.
func (a *app) requestsCommand() *cobra.Command {
	var output format
	var org, workspace string
	cmd := &cobra.Command{
		Use: "requests", Aliases: []string{"request"}, Short: "Ask for more rights in a workspace for a while, and decide about what others ask for",
		Long: `List the requests for rights in the chosen organization that you made, and those that you
may decide about: as an admin of their workspace, or, for the role member, as a manager of it.
With --workspace it is those in one workspace.`,
		Example: "  kedge requests\n  kedge requests create sudo --workspace Shop --reason 'The queue is stuck'\n" +
			"  kedge requests approve 7c1f5a0e-0b53-5e0c-9d7b-6f1f6b8f2a11",
	}
	printing(a, cmd, &output, requestColumns, unchanged, func(cmd *cobra.Command, _ []string) (iter.Seq2[rest.AccessRequest, error], error) {
		in, _, err := a.at(cmd.Context(), org, workspace)
		return in.AccessRequests().List(cmd.Context()), err
	})
	a.placeFlags(cmd, &org, &workspace)
	cmd.AddCommand(a.createRequestCommand(), a.requestableCommand())
	for _, d := range []struct{ decision, short, long, done string }{
		{
			client.Approve, "Approve a request", "Approve a request, as an admin of its workspace, or, for the role member, as a manager.\n" +
				"What it asks for is there from now on, and ends by itself.\nNobody approves a request of their own.", "Approved",
		},
		{client.Deny, "Deny a request", "Deny a request, as an admin of its workspace, or, for the role member, as a manager.", "Denied"},
		{client.Withdraw, "Withdraw a request of yours", "Withdraw a request of yours. What an approved one gave ends.", "Withdrew"},
		{
			client.Revoke, "End what a request gave", "End what an approved request gave before its time, as an admin of its workspace,\n" +
				"or, for the role member, as a manager.", "Revoked",
		},
	} {
		cmd.AddCommand(a.decideRequestCommand(d.decision, d.short, d.long, d.done))
	}
	return cmd
}

func (a *app) createRequestCommand() *cobra.Command {
	var output format
	var org, workspace string
	var body rest.CreateAccessRequest
	cmd := &cobra.Command{
		Use: "create sudo|admin|member", Short: "Ask for rights in a workspace", Args: oneArg("what you ask for: sudo, admin or member"),
		ValidArgs: []string{"sudo", "admin", "member"},
		Long: `Ask for sudo, or for the role admin or member, in a workspace. Its admins, and its managers about
the role member, decide within a day, and what they approve ends by itself. In a workspace that you are not in, give its UUID:
kedge requests workspaces lists those that let you ask.`,
		Example: "  kedge requests create sudo --workspace Shop --for 30m --reason 'The queue is stuck'",
		RunE: func(cmd *cobra.Command, args []string) error {
			body.Kind = args[0]
			if body.Kind != "sudo" && body.Kind != "admin" && body.Kind != "member" {
				return fmt.Errorf("%q is none of sudo, admin and member; %w", body.Kind, errUsage)
			}
			if err := needReason(cmd, body.Reason); err != nil {
				return err
			}
			made, err := a.ask(cmd.Context(), org, workspace, body)
			if err != nil {
				return err
			}
			return a.print(output, made.Raw, requestColumns)
		},
	}
	cmd.Flags().StringVar(&body.For, "for", "", "how long the rights are to last from the approval on, 1m to 12h (default 1h)")
	cmd.Flags().StringVar(&body.Reason, "reason", "", "why, at most 500 characters; it is in the audit log (required)")
	output.flag(cmd)
	a.placeFlags(cmd, &org, &workspace)
	return cmd
}

// ask asks for rights in a workspace. The route of the workspace refuses those who are not in it, as it does for one
// that is missing; that of the organization takes the UUID of one that lets its members ask.
func (a *app) ask(ctx context.Context, org, workspace string, body rest.CreateAccessRequest) (*rest.AccessRequest, error) {
	w, t, err := a.inWorkspace(ctx, org, workspace)
	if err != nil {
		return nil, err
	}
	made, err := w.Ask(ctx, body)
	if !isUUID(workspace) || !is(err, http.StatusForbidden) {
		return made, err
	}
	o, _, openErr := a.inOrg(ctx, t.Org)
	if openErr != nil {
		return nil, openErr
	}
	made, orgErr := o.Ask(ctx, rest.CreateOrgAccessRequest{Workspace: workspace, CreateAccessRequest: body})
	if is(orgErr, http.StatusForbidden) {
		// The caller is not in the organization either. The first refusal is about the workspace.
		return nil, err
	}
	return made, notFoundAdvice(orgErr, "the workspaces that let you ask, run: kedge requests workspaces")
}

func (a *app) requestableCommand() *cobra.Command {
	var output format
	var org string
	cmd := &cobra.Command{
		Use: "workspaces", Short: "List the workspaces in which every member of the organization may ask for rights", Args: noArgs,
		Long:    "List the workspaces of the chosen organization in which every member of it may ask for rights.",
		Example: "  kedge requests workspaces",
	}
	printing(a, cmd, &output, table{{"UUID", "uuid"}, {"DISPLAY NAME", "displayName"}}, unchanged, func(cmd *cobra.Command, _ []string) (iter.Seq2[rest.RequestableWorkspace, error], error) {
		o, _, err := a.inOrg(cmd.Context(), org)
		if err != nil {
			return nil, err
		}
		return o.RequestableWorkspaces(cmd.Context()), nil
	})
	a.orgFlag(cmd, &org)
	return cmd
}

func (a *app) decideRequestCommand(decision, short, long, done string) *cobra.Command {
	var output format
	var org, workspace, note string
	cmd := &cobra.Command{
		Use: decision + " ID", Short: short, Args: oneArg("the ID of a request"), Long: long,
		Example: "  kedge requests " + decision + " 7c1f5a0e-0b53-5e0c-9d7b-6f1f6b8f2a11",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !isUUID(args[0]) {
				return fmt.Errorf("%q is not the ID of a request; %w", args[0], errUsage)
			}
			decided, err := a.decideRequest(cmd.Context(), org, workspace, args[0], decision, note)
			if err != nil {
				return notFoundAdvice(err, "the requests, run: kedge requests")
			}
			fmt.Fprintf(a.Err, "%s the request %s.\n", done, args[0])
			a.receipt(decided.Receipt)
			return a.print(output, decided.Raw, requestColumns)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what to say about it, at most 500 characters")
	output.flag(cmd)
	a.placeFlags(cmd, &org, &workspace)
	return cmd
}

func (a *app) decideRequest(ctx context.Context, org, workspace, id, decision, note string) (*rest.AccessRequest, error) {
	in, _, err := a.at(ctx, org, workspace)
	if err != nil {
		return nil, err
	}
	return in.DecideAccessRequest(ctx, id, decision, note, client.Representation())
}
