package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EntrySpec is what a publisher says of a catalog entry.
type EntrySpec struct {
	Slug        string        `json:"slug"`
	DisplayName string        `json:"displayName"`
	Description string        `json:"description,omitempty"`
	Version     string        `json:"version,omitempty"`
	APIExport   ExportRef     `json:"apiExport"`
	Backend     *EntryBackend `json:"backend,omitempty"`
	UI          *EntryUI      `json:"ui,omitempty"`
	// MemberResources are the resources that members may write: "widgets", or
	// "widgets.example.org". Without them it is all.
	MemberResources []string `json:"memberResources,omitempty"`
}

// ExportRef names an APIExport of kcp.
type ExportRef struct {
	Path string `json:"path"`
	Name string `json:"name"`
}

// EntryBackend is where the provider's server listens.
type EntryBackend struct {
	URL string `json:"url"`
}

// EntryUI is how an entry is shown.
type EntryUI struct {
	IconURL string `json:"iconURL,omitempty"`
}

// GroupResource names a resource of an API. The group is empty for the core group.
type GroupResource struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
}

// String is the form in which commands take it.
func (g GroupResource) String() string {
	if g.Group == "" {
		return g.Resource
	}
	return g.Group + "/" + g.Resource
}

// Claim is a permission that a provider asks for.
type Claim struct {
	GroupResource
	Verbs     []string `json:"verbs"`
	Dangerous bool     `json:"dangerous"`
	// State is Accepted, Rejected or Pending in a workspace where the provider is enabled.
	State string `json:"state,omitempty"`
}

// Loss is how many objects of a kind are deleted if a provider is disabled.
type Loss struct {
	GroupResource
	// Count is nil if the provider lets the hub not count.
	Count *int `json:"count,omitempty"`
}

// Entry is a catalog entry.
type Entry struct {
	Tagged
	EntrySpec
	UUID string `json:"uuid"`
	// Scope is Global, Org or Personal.
	Scope      string             `json:"scope"`
	Org        string             `json:"org,omitempty"`
	CreatedAt  time.Time          `json:"createdAt"`
	CreatedBy  string             `json:"createdBy,omitempty"`
	Claims     []Claim            `json:"claims"`
	Resources  []GroupResource    `json:"resources"`
	Phase      string             `json:"phase"`
	Conditions []metav1.Condition `json:"conditions"`
}

// AdminEntry is a catalog entry as platform admins see it.
type AdminEntry struct {
	Entry
	// OrgDisplayName is the name of the organization; empty for a global entry.
	OrgDisplayName string `json:"orgDisplayName,omitempty"`
}

// The states of a provider in a workspace.
const (
	StateDisabled      = "Disabled"
	StateEnabling      = "Enabling"
	StateEnabled       = "Enabled"
	StateClaimsPending = "ClaimsPending"
	StateFailing       = "Failing"
)

// Provider is an entry as one workspace sees it.
type Provider struct {
	Entry
	State   string `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
	// WouldLose is what disabling it deletes.
	WouldLose []Loss `json:"wouldLose,omitempty"`
	DryRun    bool   `json:"dryRun,omitempty"`
}

// Decision answers the claims of a provider, each of them.
type Decision struct {
	AcceptClaims []GroupResource `json:"acceptClaims"`
	RejectClaims []GroupResource `json:"rejectClaims"`
}

// Catalog has the requests about the catalog entries of one organization, or about the global
// ones.
type Catalog struct{ t tenant }

// Catalog returns the requests about the organization's own entries. It sends none.
func (o Org) Catalog() Catalog { return Catalog{tenant{o.c, o.at("", "/catalog", nil)}} }

// List lists the entries.
func (c Catalog) List(ctx context.Context) iter.Seq2[Entry, error] {
	return List[Entry](ctx, c.t.c, c.t.r)
}

// Get returns an entry.
func (c Catalog) Get(ctx context.Context, uuid string) (*Entry, error) {
	return call[Entry](ctx, c.t.c, c.t.at(http.MethodGet, segment(uuid), nil))
}

// Force makes Publish take the slug of a global entry from the organizations that have it.
func Force() Option {
	return func(r *Request) { r.Query = url.Values{"force": {"true"}} }
}

// Publish makes an entry.
func (c Catalog) Publish(ctx context.Context, e EntrySpec, options ...Option) (*Entry, error) {
	return create(ctx, c.t.c, c.t.at(http.MethodPost, "", e), options,
		func(e *Entry) Request { return c.t.at(http.MethodGet, segment(e.UUID), nil) },
		func(e *Entry) bool { return e.Phase == PhaseReady })
}

// Replace replaces what an entry says. The slug, the export and the backend stay as they are.
func (c Catalog) Replace(ctx context.Context, uuid string, e EntrySpec, options ...Option) (*Entry, error) {
	return call[Entry](ctx, c.t.c, c.t.at(http.MethodPut, segment(uuid), e), options...)
}

// Delete deletes an entry. What is enabled stays enabled.
func (c Catalog) Delete(ctx context.Context, uuid string, options ...Option) error {
	return c.t.c.do(ctx, c.t.at(http.MethodDelete, segment(uuid), nil), options...)
}

// Providers lists the entries that the workspace can enable, with their states there.
func (w InWorkspace) Providers(ctx context.Context) iter.Seq2[Provider, error] {
	return List[Provider](ctx, w.c, Request{Path: "/api/providers", Org: w.r.Org, Workspace: w.r.Workspace})
}

// Provider returns an entry with its claims and what disabling it deletes.
func (w InWorkspace) Provider(ctx context.Context, uuid string) (*Provider, error) {
	return call[Provider](ctx, w.c, w.provider(http.MethodGet, uuid, "", nil))
}

func (w InWorkspace) provider(method, uuid, path string, body any) Request {
	return w.at(method, "/providers"+segment(uuid)+path, body)
}

// Enable binds the provider's APIs into the workspace.
func (w InWorkspace) Enable(ctx context.Context, uuid string, d Decision, options ...Option) (*Provider, error) {
	return create(ctx, w.c, w.provider(http.MethodPost, uuid, "/enable", d.Complete()), options,
		func(*Provider) Request { return w.provider(http.MethodGet, uuid, "", nil) },
		func(p *Provider) bool { return p.State != StateEnabling && p.State != StateDisabled })
}

// CheckEnable returns what Enable would do. It changes nothing.
func (w InWorkspace) CheckEnable(ctx context.Context, uuid string, d Decision) (*Provider, error) {
	r := w.provider(http.MethodPost, uuid, "/enable", d.Complete())
	r.Query = url.Values{"dryRun": {"true"}}
	return call[Provider](ctx, w.c, r)
}

// Complete returns the decision with empty lists where there are none, as the hub wants it.
func (d Decision) Complete() Decision {
	return Decision{AcceptClaims: append([]GroupResource{}, d.AcceptClaims...), RejectClaims: append([]GroupResource{}, d.RejectClaims...)}
}

// Disable removes the provider's APIs from the workspace with all objects of them. It returns
// when kcp has removed them, or the context ends.
func (w InWorkspace) Disable(ctx context.Context, uuid string, options ...Option) (*Provider, error) {
	r := w.provider(http.MethodDelete, uuid, "/enable", nil)
	r.Query = url.Values{"confirm": {"true"}}
	p, a, err := answered[Provider](ctx, w.c, r, options...)
	if err != nil || a.Code != http.StatusAccepted || asynchronous(options) {
		return p, err
	}
	seen, err := await(ctx, w.c, w.provider(http.MethodGet, uuid, "", nil), (*Provider).Removed)
	var refused *Error
	if errors.As(err, &refused) && refused.Code() == http.StatusNotFound {
		// The entry was deleted before, and nothing is left of it.
		p.State, p.Message = StateDisabled, ""
		return p, nil
	}
	return seen, err
}

// Removed reports whether nothing of the provider is left in the workspace. While kcp removes its
// objects it is disabled, with a message.
func (p *Provider) Removed() bool { return p.State == StateDisabled && p.Message == "" }
