package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
)

// tenant has the requests that organizations and workspaces have in common.
type tenant struct {
	c *Client
	r Request
}

// at returns a request of a method below the tenant.
func (t tenant) at(method, path string, body any) Request {
	r := t.r
	r.Method, r.Path, r.Body = method, r.Path+path, body
	return r
}

// Members lists the members.
func (t tenant) Members(ctx context.Context) iter.Seq2[Member, error] {
	return List[Member](ctx, t.c, t.at("", "/members", nil))
}

// Member returns a member.
func (t tenant) Member(ctx context.Context, user string) (*Member, error) {
	return call[Member](ctx, t.c, t.at(http.MethodGet, "/members"+segment(user), nil))
}

// AddMember makes a person a member. A member who has the same role stays as they are. Roles and
// sudo of m are for workspaces.
func (t tenant) AddMember(ctx context.Context, user string, m MemberPatch, options ...Option) (*Member, error) {
	body := struct {
		UserRef map[string]string `json:"userRef"`
		MemberPatch
	}{map[string]string{"name": user}, m}
	return create(ctx, t.c, t.at(http.MethodPost, "/members", body), options,
		func(m *Member) Request { return t.at(http.MethodGet, "/members"+segment(m.User), nil) },
		func(m *Member) bool { return m.Phase == PhaseReady })
}

// ChangeMember changes the role of a member.
func (t tenant) ChangeMember(ctx context.Context, user string, change MemberPatch, options ...Option) (*Member, error) {
	return call[Member](ctx, t.c, t.at(http.MethodPatch, "/members"+segment(user), change), options...)
}

func (t tenant) remove(ctx context.Context, path string, cascade bool, options []Option) error {
	r := t.at(http.MethodDelete, path, nil)
	if cascade {
		r.Query = url.Values{"cascade": {"true"}}
	}
	return t.c.do(ctx, r, options...)
}

// Org has the requests about one organization.
type Org struct{ tenant }

// Org returns the requests about the organization with the UUID. It sends none.
func (c *Client) Org(uuid string) Org {
	return Org{tenant{c, Request{Path: "/api/orgs" + segment(uuid), Org: uuid}}}
}

// Orgs lists the caller's organizations.
func (c *Client) Orgs(ctx context.Context) iter.Seq2[Organization, error] {
	return List[Organization](ctx, c, Request{Path: "/api/orgs"})
}

// CreateOrg makes an organization, and the caller its admin.
func (c *Client) CreateOrg(ctx context.Context, displayName string, options ...Option) (*Organization, error) {
	return create(ctx, c, Request{Path: "/api/orgs", Body: named(displayName)}, options,
		func(o *Organization) Request { return c.Org(o.UUID).r },
		func(o *Organization) bool { return o.Phase == PhaseReady })
}

// Get returns the organization.
func (o Org) Get(ctx context.Context) (*Organization, error) {
	return call[Organization](ctx, o.c, o.at(http.MethodGet, "", nil))
}

// Update changes the organization.
func (o Org) Update(ctx context.Context, change OrganizationPatch, options ...Option) (*Organization, error) {
	return call[Organization](ctx, o.c, o.at(http.MethodPatch, "", change), options...)
}

// Delete requests the deletion of the organization with all its workspaces.
func (o Org) Delete(ctx context.Context, options ...Option) (*Organization, error) {
	return call[Organization](ctx, o.c, o.at(http.MethodDelete, "", nil), options...)
}

// Undelete withdraws the request.
func (o Org) Undelete(ctx context.Context) (*Organization, error) {
	return call[Organization](ctx, o.c, o.at(http.MethodPost, "/undelete", nil))
}

// RemoveMember ends a membership. While the person is a member of workspaces in the organization
// it fails, unless cascade is true.
func (o Org) RemoveMember(ctx context.Context, user string, cascade bool, options ...Option) error {
	return o.remove(ctx, "/members"+segment(user), cascade, options)
}

// Leave ends the caller's own membership, likewise.
func (o Org) Leave(ctx context.Context, cascade bool) error {
	return o.remove(ctx, "/memberships/me", cascade, nil)
}

// Workspaces lists the workspaces that the caller can enter.
func (o Org) Workspaces(ctx context.Context) iter.Seq2[Workspace, error] {
	return List[Workspace](ctx, o.c, o.at("", "/workspaces", nil))
}

// CreateWorkspace makes a workspace. Admins of the organization are admins in every workspace.
func (o Org) CreateWorkspace(ctx context.Context, displayName string, options ...Option) (*Workspace, error) {
	return create(ctx, o.c, o.at(http.MethodPost, "/workspaces", named(displayName)), options,
		func(w *Workspace) Request { return o.Workspace(w.UUID).r },
		func(w *Workspace) bool { return w.Phase == PhaseReady })
}
