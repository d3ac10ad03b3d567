package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
)

// Admin has the requests of platform admins.
type Admin struct{ c *Client }

// Admin returns the requests of platform admins. It sends none.
func (c *Client) Admin() Admin { return Admin{c} }

func (Admin) person(method, name, path string, body any) Request {
	return Request{Method: method, Path: "/api/admin/users" + segment(name) + path, Body: body}
}

// filters leaves out what is empty.
func filters(all map[string]string) url.Values {
	query := url.Values{}
	for name, value := range all {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// People lists people. An empty filter selects all: query is a part of the display name,
// registration is Approved, Pending or Rejected.
func (a Admin) People(ctx context.Context, query, registration string) iter.Seq2[AdminPerson, error] {
	return List[AdminPerson](ctx, a.c, Request{Path: "/api/admin/users", Query: filters(map[string]string{"q": query, "registration": registration})})
}

// Person returns a person.
func (a Admin) Person(ctx context.Context, name string) (*AdminPerson, error) {
	return call[AdminPerson](ctx, a.c, a.person(http.MethodGet, name, "", nil))
}

// Memberships lists the memberships of a person, with those in deleted tenants if deleted is true.
func (a Admin) Memberships(ctx context.Context, name string, deleted bool) iter.Seq2[Membership, error] {
	r := a.person("", name, "/memberships", nil)
	if deleted {
		r.Query = url.Values{"deleted": {"true"}}
	}
	return List[Membership](ctx, a.c, r)
}

// UpdatePerson changes the quota and the registration of a person.
func (a Admin) UpdatePerson(ctx context.Context, name string, change AdminPersonPatch, options ...Option) (*AdminPerson, error) {
	return call[AdminPerson](ctx, a.c, a.person(http.MethodPatch, name, "", change), options...)
}

// Sessions lists the logins of a person.
func (a Admin) Sessions(ctx context.Context, name string) iter.Seq2[Session, error] {
	return List[Session](ctx, a.c, a.person("", name, "/sessions", nil))
}

// EndSession ends a login of a person.
func (a Admin) EndSession(ctx context.Context, name, id string) error {
	return a.c.do(ctx, a.person(http.MethodDelete, name, "/sessions"+segment(id), nil))
}

// EndAllSessions signs a person out everywhere.
func (a Admin) EndAllSessions(ctx context.Context, name string) error {
	r := a.person(http.MethodDelete, name, "/sessions", nil)
	r.Query = url.Values{"all": {"true"}}
	return a.c.do(ctx, r)
}

// Orgs lists organizations. An empty filter selects all: query is a part of the display name,
// personal is true or false.
func (a Admin) Orgs(ctx context.Context, query, personal string) iter.Seq2[AdminOrganization, error] {
	return List[AdminOrganization](ctx, a.c, Request{Path: "/api/admin/orgs", Query: filters(map[string]string{"q": query, "personal": personal})})
}

// SetWorkspaceQuota changes how many workspaces an organization can have. 0 restores the default.
func (a Admin) SetWorkspaceQuota(ctx context.Context, org string, limit int, options ...Option) (*AdminOrganization, error) {
	r := Request{Method: http.MethodPatch, Path: "/api/admin/orgs" + segment(org), Body: map[string]int{"workspaceQuota": limit}}
	return call[AdminOrganization](ctx, a.c, r, options...)
}

// DeleteOrg requests the deletion of an organization.
func (a Admin) DeleteOrg(ctx context.Context, org string, options ...Option) (*AdminOrganization, error) {
	return call[AdminOrganization](ctx, a.c, Request{Method: http.MethodDelete, Path: "/api/admin/orgs" + segment(org)}, options...)
}

// Deletions lists what is deleted and not purged yet.
func (a Admin) Deletions(ctx context.Context) iter.Seq2[Deletion, error] {
	return List[Deletion](ctx, a.c, Request{Path: "/api/admin/deletions"})
}

// Catalog returns the requests about the global entries. Get and Delete take the UUID of an entry of
// an organization, too. It sends none.
func (a Admin) Catalog() Catalog { return Catalog{tenant{a.c, Request{Path: "/api/admin/catalog"}}} }

// OrgEntries lists the catalog entries of all organizations.
func (a Admin) OrgEntries(ctx context.Context) iter.Seq2[AdminEntry, error] {
	return List[AdminEntry](ctx, a.c, Request{Path: "/api/admin/catalog", Query: url.Values{"scope": {"org"}}})
}
