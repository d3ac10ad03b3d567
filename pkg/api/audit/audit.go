package audit

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/faroshq/kedge-hub/apis/tenancy/v1alpha1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// awaitTimeout is the time that an answer waits for the events of this replica.
const awaitTimeout = 2 * time.Second

// Records are the events of all replicas.
type Records interface {
	// Await returns when the events that this replica has written are in the answers, or when ctx ends.
	Await(ctx context.Context)
	Events(ctx context.Context, q audit.Query) (audit.Page, error)
	Freshness(ctx context.Context) ([]audit.Freshness, error)
}

// Handler serves the audit events of an Organization, of a Workspace and of the whole hub.
type Handler struct {
	api.Deps
	// Records is nil without a database.
	Records Records
	// LimitReads limits the reads of a person, a middleware of httpmw.
	LimitReads func(http.Handler) http.Handler
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.With(h.LimitReads, h.Scopes.Org).Get("/orgs/{org}/audit", httpapi.Handle(h.ofOrg))
	r.With(h.LimitReads, h.Scopes.Workspace).Get("/orgs/{org}/workspaces/{ws}/audit", httpapi.Handle(h.ofWorkspace))
	r.With(httpmw.RequireAuditor, h.LimitReads).Get("/admin/audit", httpapi.Handle(h.ofPlatform))
}

// asked is a query with the form of its answer, and the rule that an answer that takes long asks again.
type asked struct {
	audit.Query
	form     form
	stillMay func(*http.Request) error
}

// rule judges who may read.
type rule func(*tenancy.Scope) error

// ofOrg answers admins with all events, and the other members with those by which a platform admin made somebody admin.
func (h *Handler) ofOrg(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	may, events := mayRead, audit.OfOrg
	refusal := may(scope)
	if refusal != nil {
		may, events = mayReadRescues, audit.RescuesOf
	}
	f, err := h.admit(r, scope, may)
	if err != nil {
		return err
	}
	if f.Workspace != "" && refusal != nil {
		// An empty list would say that nothing happened there.
		return refusal
	}
	return h.answer(w, r, asked{events(scope.Org.UUID(), f), ofTenant(), h.still(may)})
}

func (h *Handler) ofWorkspace(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	f, err := h.admit(r, scope, mayRead)
	if err != nil {
		return err
	}
	return h.answer(w, r, asked{audit.OfWorkspace(scope.Org.UUID(), scope.Workspace.UUID, f), ofTenant(), h.still(mayRead)})
}

// ofPlatform answers auditors with the events of the whole hub.
func (h *Handler) ofPlatform(w http.ResponseWriter, r *http.Request) error {
	if h.Records == nil {
		return wire.NoRecords()
	}
	f, err := filterOf(r)
	if err != nil {
		return err
	}
	org, err := query.UUID(r, "org", "an organization")
	if err != nil {
		return err
	}
	// Who is an auditor depends on the credential and on flags.
	stillMay := func(r *http.Request) error { return httpmw.CallerOf(r).Valid() }
	return h.answer(w, r, asked{audit.OfPlatform(org, f), ofPlatform(), stillMay})
}

// admit returns the filter of a request that may be answered.
func (h *Handler) admit(r *http.Request, scope *tenancy.Scope, may rule) (audit.Filter, error) {
	if err := may(scope); err != nil {
		return audit.Filter{}, err
	}
	if h.Records == nil {
		return audit.Filter{}, wire.NoRecords()
	}
	return filterOf(r)
}

// mayRead is the rule for all events of a tenant.
func mayRead(scope *tenancy.Scope) error { return scope.RequireAdmin("read its audit log") }

// mayReadRescues is the rule for what every member of an Organization sees. Guests in a Workspace are no members.
func mayReadRescues(scope *tenancy.Scope) error {
	if scope.OrgRole.AtLeast(v1alpha1.RoleViewer) {
		return nil
	}
	return mayRead(scope)
}

// still judges again what a rule has judged, for an answer that takes long.
func (h *Handler) still(may rule) func(*http.Request) error {
	return func(r *http.Request) error {
		if err := httpmw.CallerOf(r).Valid(); err != nil {
			return err
		}
		scope := *httpmw.ScopeOf(r)
		rows := h.Scopes.Tenants.Index(scope.User)
		scope.OrgRole = tenancy.OrgRole(rows, scope.Org.UUID())
		if scope.Workspace != nil {
			scope.WorkspaceRole = tenancy.WorkspaceRole(rows, scope.Org.UUID(), scope.Workspace.UUID, scope.Org.Spec.DefaultAccess)
		}
		return may(&scope)
	}
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request, q asked) error {
	w.Header().Set("Vary", "Accept")
	if encode := q.form.encoderOf(r); encode != nil {
		return h.export(w, r, q, encode)
	}
	return h.list(w, r, q)
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request, q asked) (err error) {
	if q.Limit, err = paging.Limit(r); err != nil {
		return err
	}
	if q.After, err = after(r); err != nil {
		return err
	}
	if q.After == nil {
		h.await(r.Context())
	}
	page, err := h.Records.Events(r.Context(), q.Query)
	if err != nil {
		return err
	}
	replicas, err := h.Records.Freshness(r.Context())
	if err != nil {
		return err
	}
	next := ""
	if page.Next != nil {
		next = paging.Token(r, page.Next.String(), "")
	}
	return httpapi.Write(w, http.StatusOK, q.form.list(page.Events, next, wire.Replicas(h.Clock.Now(), replicas)))
}

// await waits for what this replica has written a moment ago.
func (h *Handler) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	h.Records.Await(ctx)
}

// after returns the position in ?continue=. It is nil for the first page.
func after(r *http.Request) (*audit.Position, error) {
	text, _, given, err := paging.After(r)
	if err != nil || !given {
		return nil, err
	}
	p, ok := audit.ParsePosition(text)
	if !ok {
		return nil, errs.InvalidField("query:continue", "is not one that this list returned; begin again without it")
	}
	return &p, nil
}
