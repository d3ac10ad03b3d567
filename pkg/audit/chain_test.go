package audit_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/pkg/audit"
)

// A line that is longer than the buffer of a reader is whole, and one that is longer than any event is none.
func TestLinesIn_takesLongLines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		length int
		ok     bool
	}{
		"short": {10, true}, "as long as the buffer": {8 << 10, true}, "longer": {100 << 10, true}, "the longest": {255 << 10, true}, "too long": {300 << 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := `{"apiVersion":"` + audit.APIVersion + `","object":"` + strings.Repeat("x", test.length) + `"}`
			short := `{"apiVersion":"` + audit.APIVersion + `","object":"next"}`
			var got []audit.Line
			require.NoError(t, audit.LinesIn(strings.NewReader(line+"\n"+short+"\n"+line), 0, func(l audit.Line) bool {
				require.True(t, !l.OK || l.Hash == audit.Hash(l.Text))
				got = append(got, l)
				return true
			}))
			require.Len(t, got, 3)
			require.Equal(t, []bool{test.ok, true, test.ok}, []bool{got[0].OK, got[1].OK, got[2].OK})
			require.Equal(t, []bool{true, true, false}, []bool{got[0].Whole, got[1].Whole, got[2].Whole})
			require.Equal(t, "next", got[1].Event.Object)
			require.EqualValues(t, len(line)+1, got[0].End)
			require.EqualValues(t, 2*len(line)+len(short)+2, got[2].End)
			if test.ok {
				require.Len(t, got[0].Event.Object, test.length)
			}
		})
	}
}
