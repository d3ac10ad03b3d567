package access

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Records are the records of access. Without a Workspace the question is about the Organization and all that is in it.
type Records interface {
	AccessAt(ctx context.Context, org, workspace string, at time.Time) (tenancy.PastAccess, error)
}

// Handler serves who had access to an Organization and to a Workspace.
type Handler struct {
	api.Deps
	// Records is nil without a database.
	Records Records
	// LimitReads limits the reads of a person, a middleware of httpmw.
	LimitReads func(http.Handler) http.Handler
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.With(h.LimitReads, h.Scopes.Org).Get("/orgs/{org}/access", httpapi.Handle(h.get))
	r.With(h.LimitReads, h.Scopes.Workspace).Get("/orgs/{org}/workspaces/{ws}/access", httpapi.Handle(h.get))
}

func (h *Handler) get(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := mayRead(scope); err != nil {
		return err
	}
	if h.Records == nil {
		return wire.NoRecords()
	}
	at, err := query.Past(r, "at", h.Clock.Now())
	if err != nil {
		return err
	}
	workspace := ""
	if scope.Workspace != nil {
		workspace = scope.Workspace.UUID
	}
	found, err := h.Records.AccessAt(r.Context(), scope.Org.UUID(), workspace, at)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, wire.PastAccess(at, found))
}

// mayRead is the rule of both routes.
func mayRead(scope *tenancy.Scope) error {
	if scope.Workspace != nil {
		return scope.RequireWorkspaceAdmin("read who had access to it")
	}
	return scope.RequireOrgAdmin("read who had access to it")
}
