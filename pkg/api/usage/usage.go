package usage

import (
	"bytes"
	"context"
	"encoding/csv"
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
	"github.com/faroshq/kedge-hub/pkg/tenancy"
	"github.com/faroshq/kedge-hub/pkg/usage"
)

// maxItems is the number of steps that an answer may have, and defaultHours and defaultDays those of one that names no
// beginning.
const (
	maxItems                  = 1000
	defaultHours, defaultDays = 24, 30
)

const typeCSV = "text/csv"

// Records are what all replicas have counted.
type Records interface {
	Usage(ctx context.Context, q usage.Query) ([]usage.Item, error)
	UsageFreshness(ctx context.Context) ([]audit.Freshness, error)
}

// Handler serves the usage of an Organization and of a Workspace.
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
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) error {
	scope := httpmw.ScopeOf(r)
	if err := mayRead(scope); err != nil {
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
		items = append(items, viewOf(i, span.Step, scope.Workspace == nil))
	}
	w.Header().Set("Vary", "Accept")
	if query.Accepted(r, typeCSV) == typeCSV {
		return export(w, items, scope.Workspace == nil)
	}
	replicas, err := h.Records.UsageFreshness(r.Context())
	if err != nil {
		return err
	}
	answer := rest.UsageList{List: rest.List[rest.UsageItem]{Items: items}, Replicas: wire.Replicas(h.Clock.Now(), replicas)}
	return httpapi.Write(w, http.StatusOK, answer)
}

// mayRead is the rule of both routes.
func mayRead(scope *tenancy.Scope) error {
	if scope.Workspace != nil {
		return scope.RequireWorkspaceAdmin("read its usage")
	}
	return scope.RequireOrgAdmin("read its usage")
}

// spanOf reads the parameters of a request. It begins with a whole step.
func spanOf(r *http.Request, now time.Time) (s usage.Span, err error) {
	step, err := query.Text(r, "step")
	if err != nil {
		return s, err
	}
	back := time.Duration(defaultHours)
	switch s.Step = usage.Step(step); s.Step {
	case "":
		s.Step = usage.Hour
	case usage.Hour:
	case usage.Day:
		back = defaultDays
	default:
		return s, errs.InvalidField("query:step", "must be hour or day")
	}
	if s.From, err = query.Moment(r, "from"); err != nil {
		return s, err
	}
	if s.To, err = query.Moment(r, "to"); err != nil {
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

func viewOf(i usage.Item, step usage.Step, ofOrg bool) rest.UsageItem {
	item := rest.UsageItem{
		From: i.From, To: i.From.Add(step.Duration()), Objects: i.Objects, Bytes: i.Bytes,
		Requests: rest.UsageRequests{Read: i.Reads, Write: i.Writes, Watch: i.Watches},
		BytesOut: i.BytesOut, People: i.People, Bots: i.Bots, StreamSeconds: int64(i.Streamed.Round(time.Second) / time.Second),
	}
	if ofOrg {
		item.Size = &rest.OrgSize{Members: i.Members, Workspaces: i.Workspaces, Entries: i.Entries}
	}
	return item
}

// export answers with CSV. Its columns are named as the fields in JSON. It has times and numbers only, so no
// cell is a formula.
func export(w http.ResponseWriter, items []rest.UsageItem, ofOrg bool) error {
	names := []string{
		"from", "to", "objects", "bytes", "requests.read", "requests.write", "requests.watch", "bytesOut", "people", "bots", "streamSeconds",
	}
	if ofOrg {
		names = append(names, "size.members", "size.workspaces", "size.entries")
	}
	var b bytes.Buffer
	rows := csv.NewWriter(&b)
	rows.UseCRLF = true
	if err := rows.Write(names); err != nil {
		return err
	}
	for _, i := range items {
		cells := []string{i.From.Format(time.RFC3339), i.To.Format(time.RFC3339)}
		numbers := []int64{i.Objects, i.Bytes, i.Requests.Read, i.Requests.Write, i.Requests.Watch, i.BytesOut, i.People, i.Bots, i.StreamSeconds}
		if ofOrg {
			numbers = append(numbers, i.Size.Members, i.Size.Workspaces, i.Size.Entries)
		}
		for _, n := range numbers {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		if err := rows.Write(cells); err != nil {
			return err
		}
	}
	rows.Flush()
	if err := rows.Error(); err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", typeCSV+"; charset=utf-8; header=present")
	header.Set("Content-Disposition", `attachment; filename="usage.csv"`)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	// The client may have left.
	_, _ = b.WriteTo(w)
	return nil
}
