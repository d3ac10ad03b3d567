package usage

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strconv"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
)

// column is a column of CSV, with the name of the field in JSON.
type column[T any] struct {
	name  string
	value func(T) string
}

// columns are those of a tenant. They have times and numbers only, so no cell is a formula.
func columns(ofOrg bool) []column[rest.UsageItem] {
	all := []column[rest.UsageItem]{
		{"from", func(i rest.UsageItem) string { return i.From.Format(time.RFC3339) }},
		{"to", func(i rest.UsageItem) string { return i.To.Format(time.RFC3339) }},
	}
	number := func(name string, of func(rest.UsageItem) int64) {
		all = append(all, column[rest.UsageItem]{name, func(i rest.UsageItem) string { return strconv.FormatInt(of(i), 10) }})
	}
	number("objects", func(i rest.UsageItem) int64 { return i.Objects })
	number("bytes", func(i rest.UsageItem) int64 { return i.Bytes })
	number("requests.read", func(i rest.UsageItem) int64 { return i.Requests.Read })
	number("requests.write", func(i rest.UsageItem) int64 { return i.Requests.Write })
	number("requests.watch", func(i rest.UsageItem) int64 { return i.Requests.Watch })
	number("bytesOut", func(i rest.UsageItem) int64 { return i.BytesOut })
	number("people", func(i rest.UsageItem) int64 { return i.People })
	number("bots", func(i rest.UsageItem) int64 { return i.Bots })
	number("streamSeconds", func(i rest.UsageItem) int64 { return i.StreamSeconds })
	if ofOrg {
		number("size.members", func(i rest.UsageItem) int64 { return i.Size.Members })
		number("size.workspaces", func(i rest.UsageItem) int64 { return i.Size.Workspaces })
		number("size.entries", func(i rest.UsageItem) int64 { return i.Size.Entries })
	}
	return all
}

// adminColumns are those of auditors.
func adminColumns(ofOrg bool) []column[rest.AdminUsageItem] {
	all := []column[rest.AdminUsageItem]{
		{"org", func(i rest.AdminUsageItem) string { return i.Org }},
		{"orgDisplayName", func(i rest.AdminUsageItem) string { return i.OrgDisplayName }},
		{"workspace", func(i rest.AdminUsageItem) string { return i.Workspace }},
	}
	for _, c := range columns(ofOrg) {
		all = append(all, column[rest.AdminUsageItem]{c.name, func(i rest.AdminUsageItem) string { return c.value(i.UsageItem) }})
	}
	return all
}

// export answers with CSV.
func export[T any](w http.ResponseWriter, file string, items []T, columns []column[T]) error {
	var b bytes.Buffer
	rows := csv.NewWriter(&b)
	rows.UseCRLF = true
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.name
	}
	if err := rows.Write(cells); err != nil {
		return err
	}
	for _, item := range items {
		for i, c := range columns {
			cells[i] = query.Harmless(c.value(item))
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
	header.Set("Content-Disposition", `attachment; filename="`+file+`"`)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	// The client may have left.
	_, _ = b.WriteTo(w)
	return nil
}
