package usage

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api"
	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
	"github.com/faroshq/kedge-hub/pkg/api/internal/wire"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpapi"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

// maxItems is the number of steps that an answer may have, and defaultHours and defaultDays those of one that names no
// beginning.
const (
	maxItems                  = 1000
	defaultHours, defaultDays = 24, 30
)

const usageFile = "usage.csv"

// Records are what all replicas have counted.
type Records interface {
	Usage(ctx context.Context, q usage.Query) ([]usage.Item, error)
	// UsageOfOrgs returns what each Organization used between two times, by its UUID.
	UsageOfOrgs(ctx context.Context, from, to time.Time) (map[string]*usage.Item, error)
	// Billed returns a page of what bills depended on, the newest first, and where the next one begins.
	Billed(ctx context.Context, q usage.BillingQuery) ([]usage.Billed, *usage.BillingPosition, error)
	UsageFreshness(ctx context.Context) ([]audit.Freshness, error)
}

// Handler serves the usage of an Organization, of a Workspace and of all Organizations, and what bills for Workspaces depend on.
type Handler struct {
	api.Deps
	// Records is nil without a database.
	Records Records
	// LimitReads limits the reads of a person, a middleware of httpmw.
	LimitReads func(http.Handler) http.Handler
}

// Mount adds the routes below /api.
func (h *Handler) Mount(r chi.Router) {
	r.With(h.LimitReads, h.Scopes.Org).Get("/orgs/{org}/usage", httpapi.Handle(h.list))
	r.With(h.LimitReads, h.Scopes.Workspace).Get("/orgs/{org}/workspaces/{ws}/usage", httpapi.Handle(h.list))
	r.With(httpmw.RequireAuditor, h.LimitReads).Get("/admin/usage", httpapi.Handle(h.ofPlatform))
	r.With(httpmw.RequireAuditor, h.LimitReads).Get("/admin/billing", httpapi.Handle(h.billed))
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := scope.RequireAdmin("read its usage"); err != nil {
		return err
	}
	if h.Records == nil {
		return wire.NoRecords()
	}
	span, err := spanOf(r, h.Clock.Now())
	if err != nil {
		return err
	}
	q := usage.OfOrg(scope.Org.UUID(), span)
	if scope.Workspace != nil {
		q = usage.OfWorkspace(scope.Org.UUID(), scope.Workspace.UUID, span)
	}
	found, err := h.Records.Usage(r.Context(), q)
	if err != nil {
		return err
	}
	items := make([]rest.UsageItem, 0, len(found))
	for _, i := range found {
		items = append(items, viewOf(i, i.From.Add(span.Step.Duration()), scope.Workspace == nil))
	}
	w.Header().Set("Vary", "Accept")
	if query.Accepted(r, query.TypeCSV) == query.TypeCSV {
		return export(w, usageFile, items, columns(scope.Workspace == nil))
	}
	replicas, err := h.Records.UsageFreshness(r.Context())
	if err != nil {
		return err
	}
	answer := rest.UsageList{List: rest.List[rest.UsageItem]{Items: items}, Replicas: wire.Replicas(h.Clock.Now(), replicas)}
	return httpapi.Write(w, http.StatusOK, answer)
}

// spanOf reads the parameters of a request. It begins with a whole step.
func spanOf(r *http.Request, now time.Time) (s usage.Span, err error) {
	step, err := query.Text(r, "step")
	if err != nil {
		return s, err
	}
	switch usage.Step(step) {
	case "", usage.Hour:
		return spanIn(r, now, usage.Hour)
	case usage.Day:
		return spanIn(r, now, usage.Day)
	}
	return s, errs.InvalidField("query:step", "must be hour or day")
}

// spanIn reads the parameters of a request for items of a step.
func spanIn(r *http.Request, now time.Time, step usage.Step) (s usage.Span, err error) {
	s.Step = step
	back := time.Duration(defaultHours)
	if step == usage.Day {
		back = defaultDays
	}
	if s.From, s.To, err = query.Between(r, "from", "to"); err != nil {
		return s, err
	}
	length := s.Step.Duration()
	if s.To.IsZero() {
		s.To = now.UTC()
	}
	if s.From.IsZero() {
		s.From = s.To.Add(-back * length)
	}
	if !s.From.Before(s.To) {
		return s, errs.InvalidField("query:to", "must be after from")
	}
	s.From = s.From.UTC().Truncate(length)
	if s.To.Sub(s.From) > maxItems*length {
		return s, errs.InvalidField("query:from", "must be at most "+strconv.Itoa(maxItems)+" hours or days before to, by the step")
	}
	return s, nil
}

func viewOf(i usage.Item, to time.Time, ofOrg bool) rest.UsageItem {
	item := rest.UsageItem{
		From: i.From, To: to, Objects: i.Objects, Bytes: i.Bytes,
		Requests: rest.UsageRequests{Read: i.Reads, Write: i.Writes, Watch: i.Watches},
		BytesOut: i.BytesOut, People: i.People, Bots: i.Bots, StreamSeconds: int64(i.Streamed.Round(time.Second) / time.Second),
	}
	if ofOrg {
		item.Size = &rest.OrgSize{Members: i.Members, Workspaces: i.Workspaces, Entries: i.Entries}
	}
	return item
}
