package audit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/paging"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/tenancy"
)

// Handler serves /api/orgs/{org}/audit.
type Handler struct {
	api.Deps
	// Read is the method of audit.Log.
	Read func(ctx context.Context, q audit.Query) (events []audit.Event, next *audit.Position, err error)
	// Replica is the name of this replica of the hub.
	Replica string
	// LimitReads is the rate limit of reading, a middleware of httpmw.
	LimitReads func(http.Handler) http.Handler
}

// Mount adds the route below /api.
func (h *Handler) Mount(r chi.Router) {
	r.With(h.LimitReads, h.Scopes.Org).Get("/orgs/{org}/audit", httpapi.Handle(h.list))
}

func viewOf(e audit.Event) rest.AuditEvent {
	return rest.AuditEvent{
		ID: e.ID, Time: e.Time, Stage: string(e.Stage), Action: e.Action, Peer: e.Peer, Workspace: e.Workspace, Cluster: e.Cluster, Object: e.Object, Code: e.Code,
		Actor: rest.AuditActor{Kind: e.Actor.Kind, User: e.Actor.User, Bot: e.Actor.Bot, Token: e.Actor.Token},
		Facts: e.Facts, Resource: e.Resource,
	}
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := scope.RequireOrgAdmin("read its audit log"); err != nil {
		return err
	}
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	q.Org = scope.Org.UUID()
	if q.After, err = h.after(r); err != nil {
		return err
	}
	events, next, err := h.Read(r.Context(), q)
	switch {
	case errors.Is(err, audit.ErrNotReadable):
		return errs.New(errs.NotFound, "the audit log of this hub is not in a file; its operator can set --audit-log-file")
	case errors.Is(err, audit.ErrUnknownPosition):
		return elsewhere()
	case err != nil && r.Context().Err() != nil:
		// The client did not wait for its turn, so this is no internal error.
		return errs.Wrap(errs.Unavailable, err, "the request ended before the audit log was read; try again")
	case err != nil:
		return err
	}
	answer := rest.AuditEventList{Replica: h.Replica}
	answer.Items = make([]rest.AuditEvent, 0, len(events))
	for _, e := range events {
		answer.Items = append(answer.Items, viewOf(e))
	}
	if next != nil {
		answer.Continue = paging.Token(r, h.Replica+"/"+next.Rights.File+"/"+next.Writes.File, fmt.Sprintf("%d/%d", next.Rights.Offset, next.Writes.Offset))
	}
	return httpapi.Write(w, http.StatusOK, answer)
}

// after returns the position in ?continue=. It is nil for the first page.
func (h *Handler) after(r *http.Request) (*audit.Position, error) {
	in, offset, ok, err := paging.After(r)
	if err != nil || !ok {
		return nil, err
	}
	files, here := strings.CutPrefix(in, h.Replica+"/")
	var at audit.Position
	var whole bool
	at.Rights.File, at.Writes.File, whole = strings.Cut(files, "/")
	_, err = fmt.Sscanf(offset, "%d/%d", &at.Rights.Offset, &at.Writes.Offset)
	if !here || !whole || err != nil || at.Rights.Offset < 0 || at.Writes.Offset < 0 {
		return nil, elsewhere()
	}
	return &at, nil
}

func elsewhere() error {
	return errs.InvalidField("query:continue", "is of another replica of the hub, or of a file that was removed; begin again without it")
}

func queryOf(r *http.Request) (q audit.Query, err error) {
	if q.Limit, err = paging.Limit(r); err != nil {
		return q, err
	}
	for _, p := range []struct {
		name string
		into *time.Time
	}{{"since", &q.Since}, {"until", &q.Until}} {
		text, err := single(r, p.name)
		if err != nil {
			return q, err
		}
		if text == "" {
			continue
		}
		if *p.into, err = time.Parse(time.RFC3339, text); err != nil {
			return q, errs.InvalidField("query:"+p.name, "must be a time such as 2026-11-21T04:05:01Z")
		}
	}
	if q.Actor, err = single(r, "actor"); err != nil {
		return q, err
	}
	if q.Action, err = single(r, "action"); err != nil {
		return q, err
	}
	if q.Workspace, err = single(r, "workspace"); err == nil && q.Workspace != "" && !tenancy.IsUUID(q.Workspace) {
		err = errs.InvalidField("query:workspace", "must be the UUID of a workspace")
	}
	return q, err
}

// single returns a parameter that may be given once.
func single(r *http.Request, name string) (string, error) {
	values := r.URL.Query()[name]
	if len(values) > 1 {
		return "", errs.InvalidField("query:"+name, "must be given once")
	}
	return strings.Join(values, ""), nil
}
