package query

import (
	"encoding/csv"
	"io"
	"net/http"
)

// TypeCSV is the media type of CSV in Accept headers, and ContentCSV that of an answer.
const (
	TypeCSV    = "text/csv"
	ContentCSV = TypeCSV + "; charset=utf-8; header=present"
)

// Column is a column of CSV, with the name of the field in JSON.
type Column[T any] struct {
	Name  string
	Value func(T) string
}

// WriteNames writes the first row of CSV, which has the names of the columns.
func WriteNames[T any](w io.Writer, columns []Column[T]) error {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	rows := csv.NewWriter(w)
	rows.UseCRLF = true
	return rows.WriteAll([][]string{names})
}

// WriteCSV writes a row of CSV for each item. Nothing stays behind in a buffer.
func WriteCSV[T any](w io.Writer, columns []Column[T], items []T) error {
	rows := csv.NewWriter(w)
	rows.UseCRLF = true
	cells := make([]string, len(columns))
	for _, item := range items {
		for i, c := range columns {
			cells[i] = Harmless(c.Value(item))
		}
		if err := rows.Write(cells); err != nil {
			return err
		}
	}
	rows.Flush()
	return rows.Error()
}

// Attachment begins an answer that browsers save as a file and nobody keeps.
func Attachment(w http.ResponseWriter, contentType, file string) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Disposition", `attachment; filename="`+file+`"`)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}
