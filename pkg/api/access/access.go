package access

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Records are the records of access. Without a Workspace the question is about the Organization and all that is in it.
type Records interface {
	AccessAt(ctx context.Context, org, workspace string, at time.Time) (tenancy.PastAccess, error)
}

// Handler serves who had access to an Organization and to a Workspace, to their admins and to auditors.
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
	r.With(httpmw.RequireAuditor, h.LimitReads).Get("/admin/access", httpapi.Handle(h.ofPlatform))
}

func (h *Handler) get(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := scope.RequireAdmin("read who had access to it"); err != nil {
		return err
	}
	return h.answer(w, r, scope.Org.UUID(), scope.WorkspaceUUID())
}

// ofPlatform answers auditors. The Organization may be purged.
func (h *Handler) ofPlatform(w http.ResponseWriter, r *http.Request) error {
	org, err := query.UUID(r, "org", "an organization")
	if err != nil {
		return err
	}
	if org == "" {
		return errs.InvalidField("query:org", "must be the UUID of an organization")
	}
	workspace, err := query.UUID(r, "workspace", "a workspace")
	if err != nil {
		return err
	}
	return h.answer(w, r, org, workspace)
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request, org, workspace string) error {
	if h.Records == nil {
		return wire.NoRecords()
	}
	at, err := query.Past(r, "at", h.Clock.Now())
	if err != nil {
		return err
	}
	found, err := h.Records.AccessAt(r.Context(), org, workspace, at)
	if err != nil {
		return err
	}
	return httpapi.Write(w, http.StatusOK, wire.PastAccess(at, found))
}
