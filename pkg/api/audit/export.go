package audit

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

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

// typeNDJSON is the other media type of an export than CSV.
const typeNDJSON = "application/x-ndjson"

// encoder writes the events of an export. begin writes what is before them.
type encoder struct {
	contentType, file string
	begin             func(io.Writer) error
	events            func(io.Writer, []audit.Event) error
}

// encoderOf returns the encoder that a client prefers. It is nil for a list in JSON.
func (f form) encoderOf(r *http.Request) *encoder {
	switch query.Accepted(r, query.TypeCSV, typeNDJSON) {
	case query.TypeCSV:
		return &encoder{
			query.ContentCSV, "audit.csv",
			func(w io.Writer) error { return query.WriteNames(w, f.columns) },
			func(w io.Writer, events []audit.Event) error { return query.WriteCSV(w, f.columns, events) },
		}
	case typeNDJSON:
		return &encoder{typeNDJSON, "audit.ndjson", func(io.Writer) error { return nil }, f.ndjson}
	}
	return nil
}

// export answers with all events that a query selects, page by page: neither the database nor memory holds more for
// a client that reads slowly. An answer that cannot be completed is cut off, so that nobody takes it for a whole one.
func (h *Handler) export(w http.ResponseWriter, r *http.Request, q asked, to *encoder) error {
	for _, name := range []string{"limit", "continue"} {
		if r.URL.Query().Has(name) {
			return errs.InvalidField("query:"+name, "is for lists in JSON; this answer has all events")
		}
	}
	h.await(r.Context())
	q.Limit = exportPage
	page, err := h.Records.Events(r.Context(), q.Query)
	if err != nil {
		return err
	}
	query.Attachment(w, to.contentType, to.file)
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
		if err = q.stillMay(r); err != nil {
			break
		}
		q.After = page.Next
		page, err = h.Records.Events(r.Context(), q.Query)
	}
	if err != nil {
		log.From(r.Context()).Info("an export of the audit log was cut off", zap.String("user", httpmw.CallerOf(r).Key()), zap.Error(err))
		panic(http.ErrAbortHandler)
	}
	return nil
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

// ndjson has a line for each event.
func (f form) ndjson(w io.Writer, events []audit.Event) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for _, e := range events {
		if err := lines.Encode(f.view(e)); err != nil {
			return err
		}
	}
	return nil
}
