package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

var (
	offeredColumns = table{{"ID", "id"}, {"ORGANIZATION", "orgDisplayName"}, {"WORKSPACE", "workspaceDisplayName"}, {"ROLE", "role"},
		{"INVITED BY", "invitedBy"}, {"EXPIRES", "expiresAt"}, {"STATE", "state"}}
	sentColumns = table{{"ID", "id"}, {"STATE", "state"}, {"ROLE", "role"}, {"EMAIL", "email"}, {"INVITED BY", "invitedBy"},
		{"EXPIRES", "expiresAt"}, {"ACCEPTED BY", "acceptedBy"}, {"MEMBERSHIP ENDS", "membershipExpiresAt", wide}}
)

// invitationsCommand is kedge invitations.
func (a *app) invitationsCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "invitations", Aliases: []string{"invitation"}, Short: "List the invitations for you, and answer them; list and revoke those to your organization",
		Long: `List the open invitations for your e-mail address, as the identity provider has
verified it. An invitation that you got as a link is not listed; give the link to accept.
To invite somebody, run: kedge members invite`,
		Example: "  kedge invitations\n  kedge invitations accept 'https://hub.example.com/ui/invitations/7c1f5a0e-0b53-5e0c-9d7b-6f1f6b8f2a11#…'\n  kedge invitations list",
	}
	printing(a, cmd, &output, offeredColumns, unchanged, a.offered)
	cmd.AddCommand(a.sentInvitationsCommand(), a.revokeInvitationCommand(), a.acceptInvitationCommand(), a.declineInvitationCommand())
	return cmd
}

// offered lists the invitations for the person.
func (a *app) offered(cmd *cobra.Command, _ []string) (iter.Seq2[rest.OfferedInvitation, error], error) {
	s, err := a.session(cmd.Context())
	if err != nil {
		return nil, err
	}
	return s.api.MyInvitations(cmd.Context()), nil
}

// invitationsTo are the requests about the invitations to a workspace or, without one, to the organization.
func (a *app) invitationsTo(ctx context.Context, org, workspace string) (client.Invitations, error) {
	in, _, err := a.at(ctx, org, workspace)
	return in.Invitations(), err
}

func (a *app) sentInvitationsCommand() *cobra.Command {
	var output format
	var org, workspace string
	cmd := &cobra.Command{
		Use: "list", Short: "List the invitations to the chosen organization, or to a workspace", Args: noArgs,
		Long: `List the invitations to the chosen organization or, with --workspace, to a
workspace, for its admins. Those that ended are listed for a month.`,
		Example: "  kedge invitations list\n  kedge invitations list --workspace Shop",
	}
	printing(a, cmd, &output, sentColumns, unchanged, func(cmd *cobra.Command, _ []string) (iter.Seq2[rest.Invitation, error], error) {
		all, err := a.invitationsTo(cmd.Context(), org, workspace)
		return all.List(cmd.Context()), err
	})
	a.placeFlags(cmd, &org, &workspace)
	return cmd
}

func (a *app) revokeInvitationCommand() *cobra.Command {
	var org, workspace string
	sent := ids(a, func(cmd *cobra.Command, _ []string) (iter.Seq2[rest.Invitation, error], error) {
		all, err := a.invitationsTo(cmd.Context(), org, workspace)
		return all.List(cmd.Context()), err
	}, func(i rest.Invitation) (string, string) { return i.ID, strings.TrimSpace(i.State + " " + i.Email) })
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Take an invitation back", ValidArgsFunction: inOrder(sent), Args: oneArg("the ID of an invitation"),
		Long:    "Take back an invitation to the chosen organization or, with --workspace, to a workspace. Nobody can accept it then.",
		Example: "  kedge invitations revoke 7c1f5a0e-0b53-5e0c-9d7b-6f1f6b8f2a11",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !isUUID(args[0]) {
				return fmt.Errorf("%q is not the ID of an invitation; %w", args[0], errUsage)
			}
			all, err := a.invitationsTo(cmd.Context(), org, workspace)
			if err != nil {
				return err
			}
			if _, err := all.Delete(cmd.Context(), args[0]); err != nil {
				return notFoundAdvice(err, "the invitations, run: kedge invitations list")
			}
			_, err = fmt.Fprintf(a.Err, "Revoked the invitation %s.\n", args[0])
			return err
		},
	}
	a.placeFlags(cmd, &org, &workspace)
	return cmd
}

// completeOffered completes the ID of an invitation for the person.
func (a *app) completeOffered() cobra.CompletionFunc {
	return ids(a, a.offered, func(i rest.OfferedInvitation) (string, string) {
		return i.ID, strings.TrimSuffix(i.OrgDisplayName+", "+i.WorkspaceDisplayName, ", ")
	})
}

// link is the link of an invitation, or its ID alone.
type link struct{ server, id, secret string }

func parseLink(arg string) (link, error) {
	if isUUID(arg) {
		return link{id: arg}, nil
	}
	u, err := url.Parse(arg)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return link{}, fmt.Errorf("this is neither the link of an invitation nor an ID; %w", errUsage)
	}
	id, ok := strings.CutPrefix(u.Path, "/ui/invitations/")
	if !ok || !isUUID(id) || u.Fragment == "" {
		return link{}, fmt.Errorf("the link is not complete; it ends with # and a secret, so put it between quotes; %w", errUsage)
	}
	return link{u.Scheme + "://" + u.Host, id, u.Fragment}, nil
}

// errOtherHub is the error for a link to another hub than that of the login.
var errOtherHub = errors.New("the link is to another hub")

// answering opens the session for the answer to an invitation. It tells people who have not logged in what
// to do: some of them can log in by the link alone.
func (a *app) answering(ctx context.Context, arg string) (*session, link, error) {
	l, err := parseLink(arg)
	if err != nil {
		return nil, l, err
	}
	s, err := a.session(ctx)
	if err == nil && l.server != "" && l.server != s.login.Server {
		err = fmt.Errorf("%w: you are logged in to %s", errOtherHub, s.login.Server)
	}
	if err != nil {
		err = l.inBrowser(err)
	}
	return s, l, err
}

// inBrowser adds advice to an error of somebody who is not logged in.
func (l link) inBrowser(err error) error {
	if l.server == "" {
		return err
	}
	return fmt.Errorf("%w\nOpen the link in a browser and accept it there; then run: kedge login --server %s", err, l.server)
}

// refused adds advice to the error of an answer.
func (l link) refused(err error) error {
	if is(err, http.StatusUnauthorized) {
		return l.inBrowser(err)
	}
	return err
}

func (a *app) acceptInvitationCommand() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "accept URL|ID", Short: "Accept an invitation", ValidArgsFunction: inOrder(a.completeOffered()), Args: oneArg("the link of an invitation"),
		Long: `Accept an invitation, as the person who is logged in. Put the link between quotes.
An invitation that kedge invitations lists can be accepted by its ID.`,
		Example: "  kedge invitations accept 'https://hub.example.com/ui/invitations/7c1f5a0e-0b53-5e0c-9d7b-6f1f6b8f2a11#…'",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, l, err := a.answering(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			m, err := s.api.AcceptInvitation(cmd.Context(), l.id, l.secret)
			if err != nil {
				return l.refused(err)
			}
			next := "kedge orgs use " + m.OrgUUID
			if m.WorkspaceUUID != "" {
				next = "kedge workspaces use " + m.WorkspaceUUID + " --org " + m.OrgUUID
			}
			text := "You are a member now, as %s. To work there, run: %s\n"
			if m.Code == http.StatusAccepted {
				text = "The hub is still making you a member, as %s; in a moment you can work there: %s\n"
			}
			fmt.Fprintf(a.Err, text, m.Role, next)
			return a.print(output, m.Raw, table{{"ORGANIZATION", "orgUUID"}, {"WORKSPACE", "workspaceUUID"}, {"ROLE", "role"}, {"SINCE", "since"}})
		},
	}
	output.flag(cmd)
	return cmd
}

func (a *app) declineInvitationCommand() *cobra.Command {
	return &cobra.Command{
		Use: "decline URL|ID", Short: "Decline an invitation", ValidArgsFunction: inOrder(a.completeOffered()), Args: oneArg("the link of an invitation"),
		Long:    "Decline an invitation. Nobody can accept it then.",
		Example: "  kedge invitations decline 7c1f5a0e-0b53-5e0c-9d7b-6f1f6b8f2a11",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, l, err := a.answering(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := s.api.DeclineInvitation(cmd.Context(), l.id, l.secret); err != nil {
				return l.refused(err)
			}
			_, err = fmt.Fprintf(a.Err, "Declined the invitation %s.\n", l.id)
			return err
		},
	}
}

// inviteCommand is the command that invites to what the members are of.
func (m *members) inviteCommand() *cobra.Command {
	var body rest.CreateInvitationRequest
	var expires, membership life
	var output format
	as := role("member")
	cmd := &cobra.Command{
		Use: "invite", Short: "Invite somebody by a link, whether the hub knows them or not", Args: noArgs,
		Long: "Invite somebody to the chosen " + m.noun + `. The link that is printed works once; send it to the
person. With --email it works for that address only, as the identity provider has verified
it, and the person finds the invitation in the portal and with kedge invitations, too.
The hub sends no mail.`,
		Example: "  " + m.command + " invite\n  " + m.command + " invite --email jane@example.com --role admin --expires-in 2d\n  " + m.command + " invite --membership-expires-in 90d",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if expires != 0 {
				at := metav1.NewTime(time.Now().Add(time.Duration(expires)))
				body.ExpiresAt = &at
			}
			if membership != 0 {
				at := metav1.NewTime(time.Now().Add(time.Duration(membership)))
				body.MembershipExpiresAt = &at
			}
			body.Role = rest.Role(as.value)
			in, _, err := m.in(cmd.Context())
			if err != nil {
				return err
			}
			made, err := in.Invite(cmd.Context(), body)
			if err != nil {
				return err
			}
			if output.isTable() {
				fmt.Fprintf(m.Err, "Send this link to the person. It works once, until %s, and nobody can read it again:\n", when(&made.ExpiresAt))
				_, err = fmt.Fprintln(m.Out, made.URL)
				return err
			}
			return m.print(output, made.Raw, sentColumns)
		},
	}
	cmd.Flags().Var(as, "role", strings.Join(as.words, ", "))
	cmd.Flags().StringVar(&body.Email, "email", "", "the verified e-mail address that the person must have")
	cmd.Flags().StringVar(&body.Note, "note", "", "a text for the person, at most 500 characters")
	cmd.Flags().Var(&expires, "expires-in", "how long the link works, such as 12h or 2d; at most 30d (default 7d)")
	cmd.Flags().Var(&membership, "membership-expires-in", "time after which the membership ends, such as 90d or 12h (default: it does not end by time)")
	output.flag(cmd)
	return cmd
}
