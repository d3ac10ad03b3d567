package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// The objects of the API.
type (
	// Orgs are organizations.
	Orgs = Objects[rest.Org, rest.CreateRequest, rest.UpdateOrgRequest]
	// Workspaces are the workspaces of an organization.
	Workspaces = Objects[rest.Workspace, rest.CreateWorkspaceRequest, rest.UpdateWorkspaceRequest]
	// Members are those of an organization or a workspace. Further roles and sudo are for
	// workspaces. A person who is added again with the same role stays as they are.
	Members = Objects[rest.Member, rest.AddWorkspaceMemberRequest, rest.UpdateWorkspaceMemberRequest]
	// Bots are those of a workspace. A new role applies to their living tokens at once.
	Bots = Objects[rest.Bot, rest.CreateBotRequest, rest.UpdateBotRequest]
	// Catalog are the entries of an organization, or the global ones. What is enabled stays enabled
	// without its entry; the slug, the export and the backend of an entry never change.
	Catalog = Objects[rest.CatalogEntry, rest.CatalogEntryRequest, None]
	// Providers are the entries that a workspace can enable, with their states there.
	Providers = Objects[rest.Provider, None, None]
	// BotTokens are the living tokens of a bot, without the tokens themselves.
	BotTokens = Objects[rest.BotToken, None, None]
	// BotTrust are the rules by which jobs get tokens of a bot.
	BotTrust = Objects[rest.BotTrust, rest.AddBotTrustRequest, None]
	// Sessions are logins of a person. The end of all of them ends tokens issued before, too.
	Sessions = Objects[rest.Session, None, None]
)

const mePath = "/api/users/me"

// Me returns the caller.
func (c *Client) Me(ctx context.Context) (*rest.Me, error) {
	return do[rest.Me](ctx, c, Request{Method: http.MethodGet, Path: mePath})
}

// RenameMe changes the caller's display name.
func (c *Client) RenameMe(ctx context.Context, displayName string, options ...Option) (*rest.Me, error) {
	return do[rest.Me](ctx, c, Request{Method: http.MethodPatch, Path: mePath, Body: rest.RenameRequest{DisplayName: rest.Set(displayName)}}, options...)
}

// Memberships lists the caller's memberships, with those in deleted tenants if deleted is true.
func (c *Client) Memberships(ctx context.Context, deleted bool) iter.Seq2[rest.MembershipRow, error] {
	return list[rest.MembershipRow](ctx, c, Request{Path: mePath + "/memberships"}, withDeleted(deleted))
}

func withDeleted(deleted bool) Option {
	if deleted {
		return Query("deleted", "true")
	}
	return Query("deleted", "")
}

// SearchPeople finds people by a part of their name, of at least two characters.
func (c *Client) SearchPeople(ctx context.Context, query string) iter.Seq2[rest.Person, error] {
	return Objects[rest.Person, None, None]{c: c, r: Request{Path: "/api/users"}}.List(ctx, Query("q", query))
}

// DeletePerson requests the deletion of an account. The name me is the caller; other names are for
// platform admins.
func (c *Client) DeletePerson(ctx context.Context, name string, options ...Option) (*rest.UserDeletion, error) {
	return do[rest.UserDeletion](ctx, c, Request{Method: http.MethodDelete, Path: "/api/users" + segment(name)}, options...)
}

// UndeletePerson withdraws the request.
func (c *Client) UndeletePerson(ctx context.Context, name string) (*rest.UserDeletion, error) {
	return do[rest.UserDeletion](ctx, c, Request{Method: http.MethodPost, Path: "/api/users" + segment(name) + "/undelete"})
}

// Sessions returns the requests about the caller's logins. It sends none.
func (c *Client) Sessions() Sessions { return sessions(c, mePath) }

func sessions(c *Client, person string) Sessions {
	return Sessions{c: c, r: Request{Path: person + "/sessions"}, everything: url.Values{"all": {"true"}}}
}

// Credential answers an ExecCredential of kubectl, as JSON.
func (c *Client) Credential(ctx context.Context, question any) ([]byte, error) {
	return c.body(ctx, Request{Method: http.MethodPost, Path: "/api/credentials", Body: question})
}

// Username returns the name that kcp knows the caller by in a logical cluster.
func (c *Client) Username(ctx context.Context, cluster string) (string, error) {
	type review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Status     struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status,omitzero"`
	}
	answer, err := do[review](ctx, c, Request{
		Method: http.MethodPost, Path: "/clusters" + segment(cluster) + "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		Body: review{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
	})
	if err != nil {
		return "", err
	}
	return answer.Status.UserInfo.Username, nil
}

func (c *Client) body(ctx context.Context, r Request) ([]byte, error) {
	a, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	return a.Body, nil
}

// Orgs returns the requests about the caller's organizations. It sends none.
func (c *Client) Orgs() Orgs {
	return Orgs{
		c: c, r: Request{Path: "/api/orgs"}, name: func(o *rest.Org) string { return o.UUID },
		of: func(r *Request, uuid string) { r.Org = uuid },
	}
}

// Tenant has the requests that organizations and workspaces have in common.
type Tenant struct {
	c *Client
	r Request
}

// at returns a request of a method below the tenant.
func (t Tenant) at(method, path string, body any) Request {
	r := t.r
	r.Method, r.Path, r.Body = method, r.Path+path, body
	return r
}

// Members returns the requests about the members. It sends none.
func (t Tenant) Members() Members {
	return Members{c: t.c, r: t.at("", "/members", nil), name: func(m *rest.Member) string { return m.User }}
}

// Leave ends the caller's own membership. While the caller is a member of workspaces in an
// organization it fails without Cascade.
func (t Tenant) Leave(ctx context.Context, options ...Option) (*rest.Receipt, error) {
	return do[rest.Receipt](ctx, t.c, t.at(http.MethodDelete, "/memberships/me", nil), append(options, Representation())...)
}

// Org has the requests about what is in one organization.
type Org struct{ Tenant }

// Org returns the requests about the organization with the UUID. It sends none.
func (c *Client) Org(uuid string) Org {
	return Org{Tenant{c, c.Orgs().at("", uuid, "", nil)}}
}

// Undelete withdraws the request to delete the organization.
func (o Org) Undelete(ctx context.Context) (*rest.Org, error) {
	return do[rest.Org](ctx, o.c, o.at(http.MethodPost, "/undelete", nil))
}

// Workspaces returns the requests about the workspaces that the caller can enter. Admins of the
// organization are admins in every workspace. It sends none.
func (o Org) Workspaces() Workspaces {
	return Workspaces{
		c: o.c, r: o.at("", "/workspaces", nil), name: func(w *rest.Workspace) string { return w.UUID },
		of: func(r *Request, uuid string) { r.Workspace = uuid },
	}
}

// DeletedWorkspaces lists the workspaces that are deleted and not purged yet: for admins of the organization all of them,
// for others those in which they have a membership. An admin, according to the role in it, can undelete one.
func (o Org) DeletedWorkspaces(ctx context.Context) iter.Seq2[rest.Workspace, error] {
	listed := o.Workspaces().List(ctx, withDeleted(true))
	return func(yield func(rest.Workspace, error) bool) {
		for w, err := range listed {
			// A hub of the version before lists the others, which are not deleted.
			if (err != nil || w.DeletionRequestedAt != nil) && !yield(w, err) {
				return
			}
		}
	}
}

// Catalog returns the requests about the organization's own entries. It sends none.
func (o Org) Catalog() Catalog { return catalog(o.c, o.at("", "/catalog", nil)) }

func catalog(c *Client, r Request) Catalog {
	return Catalog{c: c, r: r, name: func(e *rest.CatalogEntry) string { return e.UUID }}
}

// WhyQuery is a question about an action in a workspace.
type WhyQuery struct {
	Verb, Resource, Subresource, Namespace, Name string
	// Group is nil for the group that has the resource in the workspace or in the catalog.
	Group *string
	// User is the name of a person and Bot the UUID of a bot. Without them the question is about the caller.
	User, Bot string
}

// Why says whether somebody may do something in the workspace, and why. Admins may ask about others.
func (w InWorkspace) Why(ctx context.Context, q WhyQuery) (*rest.Why, error) {
	r := w.at(http.MethodGet, "/why", nil)
	if q.Group != nil {
		// An empty group is the core group.
		r.Query = url.Values{"group": {*q.Group}}
	}
	return do[rest.Why](ctx, w.c, r, Query("verb", q.Verb), Query("resource", q.Resource), Query("subresource", q.Subresource),
		Query("namespace", q.Namespace), Query("name", q.Name), Query("user", q.User), Query("bot", q.Bot))
}

// InWorkspace has the requests about what is in one workspace.
type InWorkspace struct{ Tenant }

// Workspace returns the requests about the workspace with the UUID. It sends none.
func (o Org) Workspace(uuid string) InWorkspace {
	return InWorkspace{Tenant{o.c, o.Workspaces().at("", uuid, "", nil)}}
}

// Undelete withdraws the request to delete the workspace.
func (w InWorkspace) Undelete(ctx context.Context) (*rest.Workspace, error) {
	return do[rest.Workspace](ctx, w.c, w.at(http.MethodPost, "/undelete", nil))
}

// Kubeconfig returns a kubeconfig that gets its tokens from kedge credential. It holds none.
func (w InWorkspace) Kubeconfig(ctx context.Context) ([]byte, error) {
	return w.c.body(ctx, w.at(http.MethodGet, "/kubeconfig", nil))
}

// Bots returns the requests about the bots. It sends none.
func (w InWorkspace) Bots() Bots {
	return Bots{c: w.c, r: w.at("", "/serviceaccounts", nil), name: func(b *rest.Bot) string { return b.UUID }}
}

// BotTokens returns the requests about the tokens of a bot. It sends none.
func (w InWorkspace) BotTokens(bot string) BotTokens {
	return BotTokens{c: w.c, r: w.at("", "/serviceaccounts"+segment(bot)+"/tokens", nil)}
}

// BotTrust returns the requests about the jobs that a bot trusts. It sends none.
func (w InWorkspace) BotTrust(bot string) BotTrust {
	r := w.at("", "/serviceaccounts"+segment(bot)+"/trust", nil)
	return BotTrust{c: w.c, r: r, name: func(t *rest.BotTrust) string { return t.ID }}
}

// IssueBotToken issues a token. It is not repeated: the hub answers the same IdempotencyKey with 409,
// and never with the token again.
func (w InWorkspace) IssueBotToken(ctx context.Context, bot string, body rest.IssueBotTokenRequest, options ...Option) (*rest.IssuedBotToken, error) {
	return do[rest.IssuedBotToken](ctx, w.c, w.at(http.MethodPost, "/serviceaccounts"+segment(bot)+"/tokens", body), options...)
}

// RotateBotToken replaces a token. It is not repeated, as IssueBotToken is not.
func (w InWorkspace) RotateBotToken(ctx context.Context, bot, token string, body rest.RotateBotTokenRequest, options ...Option) (*rest.IssuedBotToken, error) {
	r := w.at(http.MethodPost, "/serviceaccounts"+segment(bot)+"/tokens"+segment(token)+"/rotate", body)
	return do[rest.IssuedBotToken](ctx, w.c, r, options...)
}

// Providers returns the requests about the entries that the workspace can enable. It sends none.
func (w InWorkspace) Providers() Providers {
	return Providers{c: w.c, r: Request{Path: "/api/providers", Org: w.r.Org, Workspace: w.r.Workspace}, below: w.r.Path + "/providers"}
}

// enabling is the request to enable or disable a provider.
func (w InWorkspace) enabling(method, uuid string, d any) Request {
	return w.Providers().at(method, uuid, "/enable", d)
}

// DryRun makes Enable change nothing and return what it would do.
func DryRun() Option { return Query("dryRun", "true") }

// Enable binds the provider's APIs into the workspace. It returns when kcp has bound them.
func (w InWorkspace) Enable(ctx context.Context, uuid string, d rest.EnableProviderRequest, options ...Option) (*rest.Provider, error) {
	// The hub wants both lists, also empty ones.
	d.AcceptClaims, d.RejectClaims = append([]rest.GroupResource{}, d.AcceptClaims...), append([]rest.GroupResource{}, d.RejectClaims...)
	return wait(ctx, w.c, w.enabling(http.MethodPost, uuid, d), options,
		func(*rest.Provider) Request { return w.Providers().at("", uuid, "", nil) },
		func(p *rest.Provider) bool { return p.State != rest.StateEnabling && p.State != rest.StateDisabled })
}

// Unconfirmed makes Disable fail, with a cause for each kind of which objects would be lost.
func Unconfirmed() Option { return func(r *Request) { r.Query = nil } }

// Disable removes the provider's APIs from the workspace with all objects of them. It returns when
// kcp has removed them. The result has no JSON if the entry was deleted before: then nothing is left.
func (w InWorkspace) Disable(ctx context.Context, uuid string, options ...Option) (*rest.Provider, error) {
	r := w.enabling(http.MethodDelete, uuid, nil)
	r.Query = url.Values{"confirm": {"true"}}
	p, err := wait(ctx, w.c, r, options, func(*rest.Provider) Request { return w.Providers().at("", uuid, "", nil) }, (*rest.Provider).Removed)
	var refused *Error
	if p != nil && errors.As(err, &refused) && refused.Code() == http.StatusNotFound {
		p.State, p.Message, p.Raw = rest.StateDisabled, "", nil
		return p, nil
	}
	return p, err
}

// Admin has the requests of platform admins.
type Admin struct{ c *Client }

// Admin returns the requests of platform admins. It sends none.
func (c *Client) Admin() Admin { return Admin{c} }

const adminPath = "/api/admin"

// Users returns the requests about people. The list takes q, a part of the display name, and
// registration: Approved, Pending or Rejected. It sends none.
func (a Admin) Users() Objects[rest.AdminUser, None, rest.AdminUpdateUserRequest] {
	return Objects[rest.AdminUser, None, rest.AdminUpdateUserRequest]{c: a.c, r: Request{Path: adminPath + "/users"}}
}

// Memberships lists the memberships of a person, with those in deleted tenants if deleted is true.
func (a Admin) Memberships(ctx context.Context, name string, deleted bool) iter.Seq2[rest.MembershipRow, error] {
	r := a.Users().at("", name, "/memberships", nil)
	return Objects[rest.MembershipRow, None, None]{c: a.c, r: r}.List(ctx, withDeleted(deleted))
}

// Sessions returns the requests about the logins of a person. It sends none.
func (a Admin) Sessions(name string) Sessions { return sessions(a.c, adminPath+"/users"+segment(name)) }

// Orgs returns the requests about organizations. The list takes q, a part of the display name, and
// personal: true or false. It sends none.
func (a Admin) Orgs() Objects[rest.AdminOrg, None, rest.AdminUpdateOrgRequest] {
	return Objects[rest.AdminOrg, None, rest.AdminUpdateOrgRequest]{c: a.c, r: Request{Path: adminPath + "/orgs"}}
}

// UndeleteOrg withdraws the request to delete an organization.
func (a Admin) UndeleteOrg(ctx context.Context, uuid string) (*rest.AdminOrg, error) {
	return do[rest.AdminOrg](ctx, a.c, Request{Method: http.MethodPost, Path: adminPath + "/orgs" + segment(uuid) + "/undelete"})
}

// AddAdmin makes a person admin of an organization without an admin who can act. It is repeatable.
func (a Admin) AddAdmin(ctx context.Context, org string, body rest.AdminAddAdminRequest) (*rest.Member, error) {
	r := Request{Method: http.MethodPost, Path: adminPath + "/orgs" + segment(org) + "/admins", Body: body}
	return do[rest.Member](ctx, a.c, r, IdempotencyKey(uuid.NewString()))
}

// Deletions lists what is deleted and not purged yet.
func (a Admin) Deletions(ctx context.Context) iter.Seq2[rest.Deletion, error] {
	return Objects[rest.Deletion, None, None]{c: a.c, r: Request{Path: adminPath + "/deletions"}}.List(ctx)
}

// Catalog returns the requests about the global entries. Get and Delete take the UUID of an entry of
// an organization, too, and the list takes scope=org for those of all organizations. It sends none.
func (a Admin) Catalog() Catalog { return catalog(a.c, Request{Path: adminPath + "/catalog"}) }
