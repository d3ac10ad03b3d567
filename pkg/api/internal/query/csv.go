package query

import (
	"encoding/csv"
	"io"
	"net/http"
	"strings"
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

// separators end a cell or a row for some spreadsheet. Many countries write decimals with a comma, and spreadsheets there
// split CSV at semicolons: the quotes of a cell that does not begin with them then hold nothing together.
const separators = ";\t\r\n"

// Harmless is a cell of CSV that no spreadsheet takes for a formula, or for several cells with one.
func Harmless(cell string) string {
	var b strings.Builder
	if cell != "" && strings.ContainsRune("\t\r\n", rune(cell[0])) {
		b.WriteByte('\'')
	}
	for {
		if isFormula(cell) {
			b.WriteByte('\'')
		}
		end := strings.IndexAny(cell, separators) + 1
		if end == 0 {
			b.WriteString(cell)
			return b.String()
		}
		b.WriteString(cell[:end])
		cell = cell[end:]
	}
}

// isFormula reports whether a spreadsheet that drops blanks and quotes takes a cell for a formula.
func isFormula(cell string) bool {
	cell = strings.TrimLeft(cell, " \"")
	return cell != "" && strings.ContainsRune("=+-@", rune(cell[0]))
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
