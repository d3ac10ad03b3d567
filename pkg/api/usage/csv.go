package usage

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
)

// columns are those of a tenant. They have times and numbers only, so no cell is a formula.
func columns(ofOrg bool) []query.Column[rest.UsageItem] {
	all := []query.Column[rest.UsageItem]{
		{Name: "from", Value: func(i rest.UsageItem) string { return i.From.Format(time.RFC3339) }},
		{Name: "to", Value: func(i rest.UsageItem) string { return i.To.Format(time.RFC3339) }},
	}
	number := func(name string, of func(rest.UsageItem) int64) {
		cell := func(i rest.UsageItem) string { return strconv.FormatInt(of(i), 10) }
		all = append(all, query.Column[rest.UsageItem]{Name: name, Value: cell})
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
func adminColumns(ofOrg bool) []query.Column[rest.AdminUsageItem] {
	all := []query.Column[rest.AdminUsageItem]{
		{Name: "org", Value: func(i rest.AdminUsageItem) string { return i.Org }},
		{Name: "orgDisplayName", Value: func(i rest.AdminUsageItem) string { return i.OrgDisplayName }},
		{Name: "workspace", Value: func(i rest.AdminUsageItem) string { return i.Workspace }},
	}
	for _, c := range columns(ofOrg) {
		cell := func(i rest.AdminUsageItem) string { return c.Value(i.UsageItem) }
		all = append(all, query.Column[rest.AdminUsageItem]{Name: c.Name, Value: cell})
	}
	return all
}

// export answers with CSV.
func export[T any](w http.ResponseWriter, file string, items []T, columns []query.Column[T]) error {
	var b bytes.Buffer
	if err := query.WriteNames(&b, columns); err != nil {
		return err
	}
	if err := query.WriteCSV(&b, columns, items); err != nil {
		return err
	}
	query.Attachment(w, query.ContentCSV, file)
	// The client may have left.
	_, _ = b.WriteTo(w)
	return nil
}
