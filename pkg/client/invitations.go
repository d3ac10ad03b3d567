package client

import (
	"context"
	"iter"
	"net/http"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// Invitations are those to an organization or a workspace. Their links are not among them.
type Invitations = Objects[rest.Invitation, None, None]

// invitationHeader is the header with the secret of an invitation.
const invitationHeader = "X-Kedge-Invitation"

// Invitations returns the requests about the invitations to the tenant. Delete revokes one. It sends none.
func (t Tenant) Invitations() Invitations {
	return Invitations{c: t.c, r: t.at("", "/invitations", nil), name: func(i *rest.Invitation) string { return i.ID }}
}

// Invite invites somebody to the tenant. The answer is the only one that has the link.
func (t Tenant) Invite(ctx context.Context, body rest.CreateInvitationRequest, options ...Option) (*rest.CreatedInvitation, error) {
	return do[rest.CreatedInvitation](ctx, t.c, t.at(http.MethodPost, "/invitations", body), options...)
}

// MyInvitations lists the open invitations for the caller's verified address.
func (c *Client) MyInvitations(ctx context.Context) iter.Seq2[rest.OfferedInvitation, error] {
	return list[rest.OfferedInvitation](ctx, c, Request{Path: mePath + "/invitations"})
}

// invitation returns a request about an invitation. The secret is empty for one by e-mail.
func invitation(method, id, path, secret string) Request {
	r := Request{Method: method, Path: "/api/invitations" + segment(id) + path}
	if secret != "" {
		header(invitationHeader, secret)(&r)
	}
	return r
}

// Invitation reads an invitation.
func (c *Client) Invitation(ctx context.Context, id, secret string) (*rest.OfferedInvitation, error) {
	return do[rest.OfferedInvitation](ctx, c, invitation(http.MethodGet, id, "", secret))
}

// AcceptInvitation makes the caller a member by an invitation.
func (c *Client) AcceptInvitation(ctx context.Context, id, secret string) (*rest.AcceptedInvitation, error) {
	return do[rest.AcceptedInvitation](ctx, c, invitation(http.MethodPost, id, "/accept", secret))
}

// DeclineInvitation declines an invitation.
func (c *Client) DeclineInvitation(ctx context.Context, id, secret string) error {
	_, err := do[None](ctx, c, invitation(http.MethodPost, id, "/decline", secret))
	return err
}
