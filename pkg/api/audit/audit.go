package audit

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
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

// Handler serves the audit events of an Organization and of a Workspace.
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
}

func (h *Handler) ofOrg(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	f, err := h.admit(r, scope)
	if err != nil {
		return err
	}
	return h.answer(w, r, audit.OfOrg(scope.Org.UUID(), f))
}

func (h *Handler) ofWorkspace(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	f, err := h.admit(r, scope)
	if err != nil {
		return err
	}
	if f.Workspace != "" {
		return errs.InvalidField("query:workspace", "must not be given, because the path names the workspace")
	}
	return h.answer(w, r, audit.OfWorkspace(scope.Org.UUID(), scope.Workspace.UUID, f))
}

// admit returns the filter of a request that may be answered.
func (h *Handler) admit(r *http.Request, scope *tenancy.Scope) (audit.Filter, error) {
	if err := mayRead(scope); err != nil {
		return audit.Filter{}, err
	}
	if h.Records == nil {
		return audit.Filter{}, wire.NoRecords()
	}
	return filterOf(r)
}

// mayRead is the rule of both routes.
func mayRead(scope *tenancy.Scope) error {
	if scope.Workspace != nil {
		return scope.RequireWorkspaceAdmin("read its audit log")
	}
	return scope.RequireOrgAdmin("read its audit log")
}

// stillMay judges again what mayRead has judged, for an answer that takes long.
func (h *Handler) stillMay(r *http.Request) error {
	if err := httpmw.CallerOf(r).Valid(); err != nil {
		return err
	}
	scope := *httpmw.ScopeOf(r)
	rows := h.Scopes.Tenants.Index(scope.User)
	scope.OrgRole = tenancy.OrgRole(rows, scope.Org.UUID())
	if scope.Workspace != nil {
		scope.WorkspaceRole = tenancy.WorkspaceRole(rows, scope.Org.UUID(), scope.Workspace.UUID, scope.Org.Spec.DefaultAccess)
	}
	return mayRead(&scope)
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request, q audit.Query) error {
	w.Header().Set("Vary", "Accept")
	if encode := encoderOf(r); encode != nil {
		return h.export(w, r, q, encode)
	}
	return h.list(w, r, q)
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request, q audit.Query) (err error) {
	if q.Limit, err = paging.Limit(r); err != nil {
		return err
	}
	if q.After, err = after(r); err != nil {
		return err
	}
	if q.After == nil {
		h.await(r.Context())
	}
	page, err := h.Records.Events(r.Context(), q)
	if err != nil {
		return err
	}
	replicas, err := h.Records.Freshness(r.Context())
	if err != nil {
		return err
	}
	answer := rest.AuditEventList{Replicas: wire.Replicas(h.Clock.Now(), replicas)}
	answer.Items = make([]rest.AuditEvent, 0, len(page.Events))
	for _, e := range page.Events {
		answer.Items = append(answer.Items, viewOf(e))
	}
	if page.Next != nil {
		answer.Continue = paging.Token(r, page.Next.String(), "")
	}
	return httpapi.Write(w, http.StatusOK, answer)
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

// viewOf is an event as admins of tenants see it: without network addresses, issuers and sessions.
func viewOf(e audit.Event) rest.AuditEvent {
	return rest.AuditEvent{
		ID: e.ID, Time: e.Time, Stage: string(e.Stage), Action: e.Action, Workspace: e.Workspace, Cluster: e.Cluster, Object: e.Object, Code: e.Code,
		Actor: rest.AuditActor{Kind: e.Actor.Kind, User: e.Actor.User, Bot: e.Actor.Bot, Token: e.Actor.Token},
		Facts: e.Facts, Resource: e.Resource,
	}
}
