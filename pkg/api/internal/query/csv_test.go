package query_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/api/internal/query"
)

// Spreadsheets in many countries split CSV at semicolons, whatever its quotes say, and others at tabs.
func TestHarmless_hidesFormulasBehindEverySeparator(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"":                        "",
		"Acme":                    "Acme",
		"a-b=c+d@e":               "a-b=c+d@e",
		"a;b\tc\nd":               "a;b\tc\nd",
		"2026-11-21":              "2026-11-21",
		"=1":                      "'=1",
		" =1":                     "' =1",
		"-1":                      "'-1",
		"a;=cmd|' /C calc'!A0":    "a;'=cmd|' /C calc'!A0",
		"a;;+1;@x":                "a;;'+1;'@x",
		"a; =1":                   "a;' =1",
		`a;"=1"`:                  `a;'"=1"`,
		"a\t=1":                   "a\t'=1",
		"a\r\n=1":                 "a\r\n'=1",
		"\tx":                     "'\tx",
		"\t=1":                    "'\t'=1",
		"=":                       "'=",
		"a;":                      "a;",
		`{"reason":"left;=1"}`:    `{"reason":"left;'=1"}`,
		`{"reason":"left; \"-1"}`: `{"reason":"left; \"-1"}`,
	} {
		require.Equal(t, want, query.Harmless(cell), "%q", cell)
	}
}

func TestWriteCSV_hidesFormulas(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	columns := []query.Column[string]{{Name: "name", Value: func(s string) string { return s }}}
	require.NoError(t, query.WriteCSV(&b, columns, []string{"Acme;=1", "Acme"}))
	require.Equal(t, "Acme;'=1\r\nAcme\r\n", b.String())
}
