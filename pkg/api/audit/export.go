package audit

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
	"github.com/faroshq/kedge-hub/pkg/audit"
	"github.com/faroshq/kedge-hub/pkg/errs"
	"github.com/faroshq/kedge-hub/pkg/httpmw"
	"github.com/faroshq/kedge-hub/pkg/log"
)

const (
	// exportPage is the number of events of an export that are in memory at the same time.
	exportPage = 500
	// exportWrite is the time in which a client must have taken a page of an export.
	exportWrite = 30 * time.Second
)

// The media types of an export.
const (
	typeCSV    = "text/csv"
	typeNDJSON = "application/x-ndjson"
)

// encoder writes the events of an export. begin writes what is before them.
type encoder struct {
	contentType, file string
	begin             func(io.Writer) error
	events            func(io.Writer, []audit.Event) error
}

// encoderOf returns the encoder that a client prefers. It is nil for a list in JSON.
func encoderOf(r *http.Request) *encoder {
	switch query.Accepted(r, typeCSV, typeNDJSON) {
	case typeCSV:
		return &encoder{typeCSV + "; charset=utf-8; header=present", "audit.csv", beginCSV, writeCSV}
	case typeNDJSON:
		return &encoder{typeNDJSON, "audit.ndjson", func(io.Writer) error { return nil }, writeNDJSON}
	}
	return nil
}

// export answers with all events that a query selects, page by page: neither the database nor memory holds more for
// a client that reads slowly. An answer that cannot be completed is cut off, so that nobody takes it for a whole one.
func (h *Handler) export(w http.ResponseWriter, r *http.Request, q audit.Query, to *encoder) error {
	for _, name := range []string{"limit", "continue"} {
		if r.URL.Query().Has(name) {
			return errs.InvalidField("query:"+name, "is for lists in JSON; this answer has all events")
		}
	}
	h.await(r.Context())
	q.Limit = exportPage
	page, err := h.Records.Events(r.Context(), q)
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", to.contentType)
	header.Set("Content-Disposition", `attachment; filename="`+to.file+`"`)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	control := http.NewResponseController(w)
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	var b bytes.Buffer
	err = to.begin(&b)
	for err == nil {
		if err = to.events(&b, page.Events); err != nil {
			break
		}
		_ = control.SetWriteDeadline(time.Now().Add(exportWrite))
		if _, err = b.WriteTo(w); err != nil || page.Next == nil {
			break
		}
		_ = control.Flush()
		if err = h.stillMay(r); err != nil {
			break
		}
		q.After = page.Next
		page, err = h.Records.Events(r.Context(), q)
	}
	if err != nil {
		log.From(r.Context()).Info("an export of the audit log was cut off", zap.String("user", httpmw.CallerOf(r).Key()), zap.Error(err))
		panic(http.ErrAbortHandler)
	}
	return nil
}

func writeNDJSON(w io.Writer, events []audit.Event) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for _, e := range events {
		if err := lines.Encode(viewOf(e)); err != nil {
			return err
		}
	}
	return nil
}

// column is a column of CSV, with the name of the field in JSON.
type column struct {
	name  string
	value func(rest.AuditEvent) string
}

// columns are those of CSV. Objects but the actor are JSON in one cell.
func columns() []column {
	return []column{
		{"id", func(e rest.AuditEvent) string { return e.ID }},
		{"time", func(e rest.AuditEvent) string { return e.Time.Format(time.RFC3339Nano) }},
		{"stage", func(e rest.AuditEvent) string { return e.Stage }},
		{"action", func(e rest.AuditEvent) string { return e.Action }},
		{"actor.kind", func(e rest.AuditEvent) string { return e.Actor.Kind }},
		{"actor.user", func(e rest.AuditEvent) string { return e.Actor.User }},
		{"actor.bot", func(e rest.AuditEvent) string { return e.Actor.Bot }},
		{"actor.token", func(e rest.AuditEvent) string { return e.Actor.Token }},
		{"workspace", func(e rest.AuditEvent) string { return e.Workspace }},
		{"cluster", func(e rest.AuditEvent) string { return e.Cluster }},
		{"object", func(e rest.AuditEvent) string { return e.Object }},
		{"code", func(e rest.AuditEvent) string {
			if e.Code == 0 {
				return ""
			}
			return strconv.Itoa(e.Code)
		}},
		{"facts", func(e rest.AuditEvent) string { return cellOf(e.Facts) }},
		{"resource", func(e rest.AuditEvent) string { return cellOf(e.Resource) }},
	}
}

// cellOf is a value as JSON in one cell.
func cellOf[T any](value *T) string {
	if value == nil {
		return ""
	}
	var b bytes.Buffer
	line := json.NewEncoder(&b)
	line.SetEscapeHTML(false)
	if err := line.Encode(value); err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// harmless is a cell that no spreadsheet takes for a formula.
func harmless(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

func beginCSV(w io.Writer) error {
	all := columns()
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	return writeRows(w, func(rows *csv.Writer) error { return rows.Write(names) })
}

func writeCSV(w io.Writer, events []audit.Event) error {
	return writeRows(w, func(rows *csv.Writer) error {
		all := columns()
		cells := make([]string, len(all))
		for _, e := range events {
			view := viewOf(e)
			for i, c := range all {
				cells[i] = harmless(c.value(view))
			}
			if err := rows.Write(cells); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeRows(w io.Writer, write func(*csv.Writer) error) error {
	rows := csv.NewWriter(w)
	rows.UseCRLF = true
	if err := write(rows); err != nil {
		return err
	}
	rows.Flush()
	return rows.Error()
}
