package client

import (
	"context"
	"iter"
	"net/http"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// AccessRequests are the requests for rights in an organization or a workspace that the caller made, or may decide about.
type AccessRequests = Objects[rest.AccessRequest, None, None]

// AccessRequests returns the requests about the requests for rights. It sends none.
func (t Tenant) AccessRequests() AccessRequests {
	return AccessRequests{c: t.c, r: t.at("", "/requests", nil), name: func(r *rest.AccessRequest) string { return r.ID }}
}

// The decisions about a request for rights.
const (
	Approve  = "approve"
	Deny     = "deny"
	Withdraw = "withdraw"
	Revoke   = "revoke"
)

// DecideAccessRequest makes a decision about a request for rights.
func (t Tenant) DecideAccessRequest(ctx context.Context, id, decision, note string, options ...Option,
) (*rest.AccessRequest, error) {
	r := t.at(http.MethodPost, "/requests"+segment(id)+"/"+decision, rest.DecideAccessRequest{Note: note})
	return do[rest.AccessRequest](ctx, t.c, r, options...)
}

// Ask asks for rights in a workspace of the organization.
func (o Org) Ask(ctx context.Context, body rest.CreateOrgAccessRequest, options ...Option) (*rest.AccessRequest, error) {
	return do[rest.AccessRequest](ctx, o.c, o.at(http.MethodPost, "/requests", body), options...)
}

// RequestableWorkspaces lists the workspaces in which every member of the organization may ask for rights.
func (o Org) RequestableWorkspaces(ctx context.Context) iter.Seq2[rest.RequestableWorkspace, error] {
	return list[rest.RequestableWorkspace](ctx, o.c, o.at("", "/requests/workspaces", nil))
}

// Ask asks for rights in the workspace.
func (w InWorkspace) Ask(ctx context.Context, body rest.CreateAccessRequest, options ...Option) (*rest.AccessRequest, error) {
	return do[rest.AccessRequest](ctx, w.c, w.at(http.MethodPost, "/requests", body), options...)
}
